// Crash kills gnnstore train where it hurts, and proves that every run goes on exactly: see package
// resume.
//
//	go run ./tools/crash [-data DIR] [-kills 50] [-seed 1] [-bin FILE]
//	go run ./tools/crash -ingest [-scale 0.02] [-bin FILE]
//
// With -ingest it kills generate in each of its passes instead, in 256 MiB, on graphs in the shape
// of papers100M and MAG240M and on a stream, and wants the dataset that an undisturbed one makes,
// and nothing beside it.
//
// It trains on ogbn-arxiv below DIR or, without it, on the graph that gnnstore ships. It exits 1 at
// the first difference, and leaves dataset and run for a look.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/gnnstore/gnnstore/ingest/sampledata"
	"github.com/gnnstore/gnnstore/tools/cli"
	"github.com/gnnstore/gnnstore/tools/resume"
)

func main() {
	data := flag.String("data", os.Getenv("GNNSTORE_DATA"), "`directory` of the real graphs; default $GNNSTORE_DATA, else the bundled one")
	kills := flag.Int("kills", 50, "how often to kill")
	seed := flag.Uint64("seed", 1, "of where to kill")
	ingest := flag.Bool("ingest", false, "kill generate, not train")
	scale := flag.Float64("scale", 0.02, "of what -ingest generates")
	binary := flag.String("bin", "", "a built `gnnstore`; default: built now")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := fmt.Errorf("-kills %d: at least 1", *kills)
	if *ingest || *kills > 0 {
		began := time.Now()
		err = resume.InDir(ctx, func(dir string) error {
			gnnstore, err := cli.Binary(*binary), error(nil)
			if gnnstore == "" {
				gnnstore, err = cli.Build(ctx, dir)
			}
			switch {
			case err != nil:
				return err
			case *ingest:
				return killGenerate(ctx, os.Stdout, gnnstore, dir, *scale)
			}
			return killTrain(ctx, os.Stdout, gnnstore, dir, *data, *kills, *seed)
		})
		if err == nil {
			fmt.Printf("in %.0f s\n", time.Since(began).Seconds())
		}
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "crash:", err)
		os.Exit(1)
	}
}

// killGenerate kills what makes datasets.
func killGenerate(ctx context.Context, w io.Writer, binary cli.Binary, dir string, scale float64) error {
	for _, flags := range []string{
		"papers100m --order access", "mag240m --undirected", // one node type, and three
		"mag240m --undirected --reverse --features mean --dim 32",
		"temporal --nodes 5M --edges 100M --dim 8 --span 1e9", // a stream
	} {
		fmt.Fprintf(w, "generate %s\n", flags)
		kind, rest, _ := strings.Cut(flags, " ")
		p := &resume.Ingest{Binary: binary, Dir: dir, Out: w, Args: func(out, tmp string) []string {
			args := []string{"generate", kind, out, "--memory", "256MiB", "--tmp", tmp, "--scale", fmt.Sprint(scale)}
			return append(args, strings.Fields(rest)...)
		}}
		if err := p.KillInPasses(ctx, false); err != nil {
			return err
		}
	}
	return nil
}

// killTrain kills training on a graph of data or, without it, on the one that gnnstore ships.
func killTrain(ctx context.Context, w io.Writer, binary cli.Binary, dir, data string, kills int, seed uint64) error {
	p := &resume.Prover{Binary: binary, Dataset: filepath.Join(dir, "graph.gnn"), Dir: dir, Seed: seed, Out: w}
	source := []string{"ogb", filepath.Join(data, "ogbn_arxiv"), p.Dataset, "--features", "fastrp:8"}
	p.Batch = 1000 // 91 steps an epoch
	if data == "" {
		raw := filepath.Join(dir, "amazon_electronics_computers.npz")
		if err := os.WriteFile(raw, sampledata.AmazonComputers(), 0o666); err != nil {
			return err
		}
		source, p.Batch = []string{"npz", raw, p.Dataset, "--split", "random:0.6/0.2/0.2"}, 200 // 42 steps an epoch
	}
	if err := binary.Run(ctx, append([]string{"ingest", "--undirected"}, source...)...); err != nil {
		return err
	}
	return p.Kill(ctx, resume.Configs, kills)
}
