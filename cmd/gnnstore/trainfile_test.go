package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/store/storetest"
	"github.com/gnnstore/gnnstore/train/run"
)

// TestTrainAgain: run.json and --print-config repeat each kind of run, with the same options and
// weights.
func TestTrainAgain(t *testing.T) {
	storetest.Long(t)
	t.Chdir(t.TempDir())
	do := func(args ...string) string {
		t.Helper()
		code, stdout, stderr := gnnstore(t, args...)
		require.Zero(t, code, "%s: %s", args, stderr)
		return stdout
	}
	do("generate", "citations", "graph.gnn", "--nodes", "2000", "--classes", "3")
	do("generate", "kg", "kg.gnn", "--nodes", "300", "--edges", "2000")
	do("generate", "temporal", "stream.gnn", "--nodes", "200", "--edges", "1500")
	do("generate", "mag240m", "typed.gnn", "--nodes", "1000")
	for i, args := range []string{
		"graph.gnn --epochs 2 --layers 1 --sampler labor0 --kappa inf --dependent smoothed --norm none --input-dropout 0.1",
		"graph.gnn --epochs 3 --history --batch 100 --hidden 8 --memory 256MiB",
		"graph.gnn --epochs 2 --dist local:2 --batch 100 --hidden 8 --class-weights 1,2,1",
		"graph.gnn --hidden 4 --fanout 3 --patience 2 --clip-norm 1 --lr 0.05 --schedule step --lr-milestones 2,4",
		"kg.gnn --epochs 1 --input entity=embed:8 --decoder rotate",
		"kg.gnn --epochs 1 --layers 0 --hidden 8",
		"stream.gnn --epochs 1 --model jodie --hidden 8 --fixed-time",
		"typed.gnn --epochs 1 --hidden 8 --seed 18446744073709551615",
		"typed.gnn --epochs 1 --model rgcn --bases 2 --hidden 8 --fanout -1,5 --fanout cites=3,3",
	} {
		dir := string(rune('a'+i)) + "-"
		flags := append([]string{"train"}, strings.Fields(args)...)
		do(append(flags, "--run", dir+"flags")...)
		require.NoError(t, os.WriteFile("flags.yaml", []byte(do(append(flags, "--print-config")...)), 0o666))
		do("train", "-f", "flags.yaml", "--run", dir+"yaml")
		do("train", "-f", dir+"flags/run.json", "--run", dir+"record")
		require.NoError(t, os.WriteFile("record.yaml", []byte(do("train", "-f", dir+"flags/run.json", "--print-config")), 0o666))
		do("train", "-f", "record.yaml", "--run", dir+"again")

		want := recordOf(t, dir+"flags")
		for _, other := range []string{"yaml", "record", "again"} {
			require.Equal(t, want, recordOf(t, dir+other), "%s by %s", args, other)
		}
	}
}

// recordOf returns the dataset, options and weights of a run.
func recordOf(t *testing.T, dir string) (all []string) {
	t.Helper()
	r, err := run.Read(dir)
	require.NoError(t, err)
	text, err := json.Marshal(r.Options)
	require.NoError(t, err)
	return []string{r.Seal, string(text), r.ParamsXXH3}
}
