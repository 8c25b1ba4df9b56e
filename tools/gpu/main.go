// Gpu looks at the CUDA backend on a borrowed machine that has an NVIDIA GPU and its driver, for
// some minutes, and perhaps no Go. It packs all that such a machine needs into a folder:
//
//	go run ./tools/gpu -pack DIR
//
// There, run.sh of that folder runs the stages that are named, or stages 0 to 9:
//
//	bash DIR/run.sh [-small] [-out FOLDER] [-limit 480s] [-keep FOLDER] [-data FOLDER] [STAGE...]
//
// A stage runs programs under a time limit. It prints a line: its number and name, whether it
// passed, its seconds, and its key figures. A stage that fails does not stop the next. "slow" marks
// a stage whose results are right while a figure misses its target.
// FOLDER, by default $OUT, gets log.txt, table.md and stages.json. The exit code is 1 if a stage
// failed.
//
//	0 machine      the driver, the device, cuBLAS, limits
//	1 driver       contexts on eight threads, PTX, page-locked memory, order of events
//	2 conformance  every operation, in one process
//	3 sanitizers   compute-sanitizer's memcheck and racecheck on the same
//	4 repeat       20 steps twice: equal weights
//	5 losses       100 steps on cpu and cuda: losses within 1e-4
//	6 speed        copies, gather, mean, Adam, products
//	7 training     200 steps on a graph of papers100M's shape, 5.5 M nodes
//	8 pyg          steps on one batch of it, and PyTorch Geometric's where that is installed
//	9 resume       SIGINT, and --resume on either device
//	10 tiers       10 M nodes; the device and the host hold a fifth of the rows each
//	11 loader      steps with sampling, and PyTorch Geometric's with its native sampler, pyg-lib
//
// Stages 10 and 11 run only where they are named.
//
// -small has the stages take what a libcuda.so.1 that runs kernels on the host can bear, and sets
// no targets for speed. So the script is tried without a GPU:
//
//	go run ./tools/libcuda -host LIBRARY
//	LD_LIBRARY_PATH=LIBRARY bash DIR/run.sh -small
//
// Stages 1, 2, 3 and 6 are the tests TestGPU of package kernels/cuda. Stage 8 is tools/gpu/step and
// tools/cuda/pyg.py. The others are commands of gnnstore-cuda, stage 11 beside
// tools/cuda/pyg_loader.py. Start at stages, then visit.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

func main() {
	failed, err := run(os.Args[1:], os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "gpu:", err)
	}
	var misuse *misuseError
	switch {
	case errors.As(err, &misuse):
		os.Exit(2)
	case err != nil || failed:
		os.Exit(1)
	}
}

// misuseError is a wrong command line.
type misuseError struct{ error }

// run packs, or runs stages and reports whether one failed.
func run(args []string, stdout io.Writer) (failed bool, err error) {
	flags := flag.NewFlagSet("gpu", flag.ContinueOnError)
	packed := flags.String("pack", "", "build what a machine with a GPU needs into this `folder`, and run nothing")
	folder := flags.String("folder", "", "`folder` of the programs, unpacked")
	small := flags.Bool("small", false, "take little, for a driver that runs kernels on the host")
	out := flags.String("out", os.Getenv("OUT"), "`folder` of log and table; default $OUT, else the working directory")
	limit := flags.Duration("limit", 480*time.Second, "time for all stages together")
	keep := flags.String("keep", "", "an empty `folder` for datasets and runs, which stay there; default a temporary one")
	data := flags.String("data", "", "`folder` of datasets that were made before, named KIND.gnn as the stages name theirs: large.gnn")
	if err := flags.Parse(args); err != nil {
		return false, &misuseError{err}
	}
	if *packed != "" {
		if flags.NArg() > 0 {
			return false, &misuseError{errors.New("-pack runs no stages")}
		}
		return false, pack(stdout, *packed)
	}
	chosen, err := choose(stages, flags.Args())
	if err != nil {
		return false, &misuseError{err}
	}
	if *folder == "" {
		return false, &misuseError{errors.New("-pack DIR packs; run.sh of the folder runs the stages")}
	}
	work := *keep
	if work == "" {
		if work, err = os.MkdirTemp("", "gpu-"); err != nil {
			return false, err
		}
		defer os.RemoveAll(work)
	}
	for _, made := range []string{work, filepath.Join(*out, ".")} {
		if err := os.MkdirAll(made, 0o777); err != nil {
			return false, err
		}
	}
	if *data != "" { // programs run in work
		if *data, err = filepath.Abs(*data); err != nil {
			return false, err
		}
	}
	entries, err := os.ReadDir(work)
	if err != nil {
		return false, err
	}
	if len(entries) > 0 {
		return false, &misuseError{fmt.Errorf("-keep: %s is not empty", work)}
	}
	log, err := os.Create(filepath.Join(*out, "log.txt"))
	if err != nil {
		return false, err
	}
	v := &visit{
		folder: *folder, work: work, data: *data, small: *small, stdout: stdout, log: &shared{w: log},
		end: time.Now().Add(*limit), grace: 3 * time.Second,
	}
	if err := v.prepare(); err != nil {
		return false, err
	}
	outcomes := v.run(chosen)
	return anyFailed(outcomes), errors.Join(log.Close(), writeReport(*out, outcomes))
}
