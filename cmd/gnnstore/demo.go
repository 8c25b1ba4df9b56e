package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/spf13/cobra"

	"github.com/gnnstore/gnnstore/ingest/build"
	"github.com/gnnstore/gnnstore/ingest/npz"
	"github.com/gnnstore/gnnstore/ingest/sampledata"
	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store/setting"
	"github.com/gnnstore/gnnstore/train/run"
)

func newDemo() *cobra.Command {
	o := trainOptions{Options: demoOptions(), brief: true}
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Ingest a bundled real graph, train on it, show the tiers",
		Long: "Ingest Amazon Computers (13,752 products, 491,722 co-purchases; Shchur et al. 2018), which is part of this\n" +
			"program, train GraphSAGE on 20 labelled products a class, and show what each tier of the memory did.",
		Args: exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if _, err := kernels.ParseDevice(o.Device); err != nil {
				return misuse(fmt.Errorf("--device %w", err))
			}
			autoDevice(cmd.ErrOrStderr(), &o.Device)
			return runDemo(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), o)
		},
	}
	cmd.Flags().Uint64Var(&o.Seed, "seed", o.Seed, "seed of split, weights, batches and dropout")
	cmd.Flags().Var(run.DeviceValue(&o.Device), "device", run.DeviceHelp)
	cmd.Flags().BoolVar(&o.json, "json", false, "print the result of the training as JSON; the rest goes to stderr")
	return cmd
}

// demoOptions returns the hyperparameters that tools/accuracy uses for every dataset, but with
// fewer evaluations.
func demoOptions() run.Options {
	o := run.DefaultOptions()
	o.Cache.DeviceBytes, o.Cache.HostBytes = 2<<20, 8<<20
	o.Hidden, o.Epochs, o.EvalEvery, o.LR, o.Optim.WeightDecay, o.Dropout, o.InputDropout = 64, 100, 5, 0.01, 5e-4, 0.6, 0.6
	return o
}

// demoMemory is the memory budget of the demo's ingest; its training takes less.
const demoMemory = 192 << 20

// demoBytes is the disk space that the demo asks for: 22 MB of dataset, 22 MB of temporaries while
// it is made, and a reserve.
const demoBytes = 100 << 20

func runDemo(ctx context.Context, stdout, stderr io.Writer, o trainOptions) (err error) {
	say := stdout
	if o.json {
		say = stderr
	}
	dir, err := os.MkdirTemp("", "gnnstore-demo-")
	if err != nil {
		return fmt.Errorf("demo: %w; set TMPDIR to a directory that can be written", err)
	}
	defer func() { // a failed demo leaves nothing
		if err != nil {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}()
	if usage, err := vfs.Default.GetDiskUsage(dir); err == nil && usage.AvailBytes < demoBytes {
		return fmt.Errorf("demo: %s has %s free, and the demo wants %s; set TMPDIR to another disk",
			filepath.Dir(dir), size(int64(usage.AvailBytes)), size(demoBytes))
	}
	if err := addressSpace("the demo takes up to "+size(demoMemory), demoMemory, ""); err != nil {
		return err
	}
	start := time.Now()
	out := filepath.Join(dir, "computers.gnn")
	printf(say, "1. ingest Amazon Computers into %s\n\n", out)
	raw := sampledata.AmazonComputers()
	source, err := npz.OpenReader("amazon_electronics_computers.npz", bytes.NewReader(raw), int64(len(raw)))
	if err != nil {
		return err
	}
	defer source.Close()
	report, err := buildShown(ctx, stderr, source, out,
		build.Options{Memory: demoMemory, Undirected: true, Split: "per-class:20/30", Seed: o.Seed, Name: "computers", Text: withFlags})
	if err != nil {
		return err
	}
	printReport(say, report)

	fmt.Fprintf(say, "\n2. train with %s of device region and %s of host cache; the features are %s\n\n",
		setting.FormatBytes(o.Cache.DeviceBytes), setting.FormatBytes(o.Cache.HostBytes), size(report.NodeTypes[0].Count*int64(report.Tables[0].Dim)*2))
	o.run = filepath.Join(dir, "run")
	ds, err := openDataset(stderr, out, 0)
	if err != nil {
		return err
	}
	defer ds.Close()
	r, err := trainOn(ctx, stdout, stderr, ds, &o, o.newDir(out), nil)
	if err != nil {
		return err
	}
	printResult(say, r)
	if o.json {
		if err := printJSON(stdout, r); err != nil {
			return err
		}
	}
	if r.Status == run.Interrupted {
		return errors.New("interrupted")
	}
	fmt.Fprintf(say, `
3. %s in all. Try next:

   %[6]s inspect %[2]s
   %[6]s train %[2]s --seed 2 --host-memory 0 --run %[3]s
   %[6]s stats %[4]s
   %[6]s predict %[4]s computers.parquet

Everything is in %[5]s; delete it when you are done.
`, seconds(time.Since(start).Seconds()), out, filepath.Join(dir, "run-2"), o.run, dir, called())
	return nil
}
