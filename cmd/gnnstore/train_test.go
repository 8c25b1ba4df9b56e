package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/train/metric"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/optim"
	"github.com/gnnstore/gnnstore/train/run"
	"github.com/gnnstore/gnnstore/train/sample"
	"github.com/gnnstore/gnnstore/train/tiers"
)

// TestOverride: where no flag is given, a run goes on with the options on record. None of them is a
// default here.
func TestOverride(t *testing.T) {
	want := run.Options{
		Config: model.Config{
			Kind: model.RGAT, Layers: 3, Hidden: 12, Dropout: 0.1, InputDropout: 0.2, Norm: "none", Heads: 3, AttnDropout: 0.3, Bases: 2, LabelInput: 5,
		},
		Fanouts: []int{-1, 4, 2}, RelationFanouts: map[string][]int{"cites": {0, 1, -1}}, Target: "paper", Relation: "cites",
		Inputs: map[string]string{"author": "constant", "paper": "table:feat"}, Sampler: sample.Labor0, LayerDependency: true, Poisson: true, Kappa: sample.Forever,
		Dependent: run.Smoothed, Walk: sample.Walk{Length: 7, Walks: 11, Restart: 0.75}, Batch: 7, Epochs: 8, LR: 0.25, Seed: 1 << 63, Patience: 6, EvalEvery: 9,
		Optim: optim.Options{Kind: optim.AdamW, WeightDecay: 1e-7, ClipNorm: 2.5, Rows: optim.RowAdagrad},
		Schedule: optim.Schedule{
			Kind: optim.Step, Warmup: 4, Gamma: 0.7, Milestones: []int{2, 11},
		},
		ClassWeights: "1,2.5,0", Metric: metric.MacroF1, EvalTest: "epoch", Eval: "full", EvalBytes: 1001, EvalNodes: 12, LayerDtype: "f16", Split: "public",
		CheckpointEvery: 3, KeepCheckpoints: 4, LogEvery: 1, Device: "cpu", Kernels: "portable",
		Options: tiers.Options{
			Workers: 5, BatchBytes: 1 << 20, MemoryBytes: 3<<20 + 1,
			Cache: cachetier.Options{DeviceBytes: 1500, HostBytes: 2000, Policy: cachetier.None, Engine: disk.Pread},
		},
	}
	record := &run.Record{Options: want, Kernels: want.Kernels}
	again, err := run.ResumeOptions(record, flagsOf(t, "").given)
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(want, again))
	require.NoError(t, again.Resumes(want))
}

// TestResumeKernels: a run goes on with the kernels that it had. If they do not compute in its
// precision of products, or not here, the error names them and all that do.
func TestResumeKernels(t *testing.T) {
	o := parsed(t, "--kernels portable --matmul bf16")
	again, err := run.ResumeOptions(&run.Record{Options: o, Kernels: "portable"}, flagsOf(t, "").given)
	require.NoError(t, err)
	require.Equal(t, "portable", again.Kernels)
	record := &run.Record{Options: o, Kernels: "avx2"}
	_, err = run.ResumeOptions(record, flagsOf(t, "").given)
	require.ErrorContains(t, err, `{kernels}: kernel set "avx2" computes products in f32 alone; for bf16 there is: `)
	_, err = run.ResumeOptions(record, flagsOf(t, "--kernels portable").given)
	require.NoError(t, err)
	record.Options.MatMul = ""
	for _, set := range kernels.SetsOf(kernels.BF16) {
		if record.Kernels = string(set); set != kernels.Portable {
			_, err = run.ResumeOptions(record, flagsOf(t, "").given)
			require.ErrorContains(t, err, `computes products in bf16 alone; for f32 there is: auto, `)
			require.ErrorContains(t, err, `portable; or take {matmul} bf16`)
		}
	}
}

// TestDefaultLR: rows alone have a learning rate of their own, unless one is given, and a resumed
// run keeps the one it began with.
func TestDefaultLR(t *testing.T) {
	for args, want := range map[string]float64{
		"":                                 0.003,
		"--task link":                      0.003,
		"--task link --layers 0":           0.03,
		"--task link --layers 0 --lr 0.5":  0.5,
		"--task link --layers 0 --lr=.003": 0.003,
		"--task link --layers 0 --embed-optimizer adagrad": 0.1,
	} {
		o := parsed(t, args)
		require.Equal(t, want, o.LR, args)
		again, err := run.ResumeOptions(&run.Record{Options: o}, flagsOf(t, "").given)
		require.NoError(t, err)
		require.Equal(t, want, again.LR, args)
	}
}

// TestFlagsRefused: a graph has no batch to choose, settings of history go with it whatever their
// value, and numbers are decimal.
func TestFlagsRefused(t *testing.T) {
	for args, want := range map[string]string{
		"--batch -1":                               `--batch: "-1" is neither auto nor a number from 1 on`,
		"--batch auto":                             "{batch} auto: only networks for streams choose it; give a number of seeds",
		"--batch 2147483648":                       "{batch} 2147483648: from 1 to 2147483647, or auto",
		"--t-stale 0":                              "{t_stale} 0: it goes with {history}",
		"--p-grad 0 --history-memory 0":            "{p_grad} 0: it goes with {history}\n{history_bytes} 0: it goes with {history}",
		"--model tgn --t-stale 0":                  "{t_stale} 0: only networks for graphs have it; leave it out with {model} tgn",
		"--epochs -1":                              `--epochs: "-1" is neither auto nor a number from 0 on`,
		"--hidden 99999999999999999999 --lr 1e400": `--hidden: "99999999999999999999" is out of range` + "\n" + `--lr: "1e400" is out of range`,
	} {
		require.EqualError(t, flagsOf(t, args).complete(), want, args)
	}
	o := parsed(t, "--epochs 010 --patience 010 --model tgn --batch auto")
	require.Equal(t, []int{10, 10, run.Auto}, []int{o.Epochs, o.Patience, o.Batch})
	saved := &run.Record{Options: parsed(t, "")}
	for _, args := range []string{"--p-grad 0", "--t-stale 5"} {
		_, err := run.ResumeOptions(saved, flagsOf(t, args).given)
		require.ErrorContains(t, err, "it goes with {history}", args)
	}
	bad := run.DefaultOptions()
	bad.Batch = run.Auto
	require.EqualError(t, bad.Validate(), "{batch} auto: only networks for streams choose it; give a number of seeds")

	// The same command line begins a run and goes on with it.
	const args = "--model tgn --fixed-time --times learnt"
	saved = &run.Record{Options: parsed(t, args)}
	again, err := run.ResumeOptions(saved, flagsOf(t, args).given)
	require.NoError(t, err)
	require.NoError(t, again.Resumes(saved.Options))
}
