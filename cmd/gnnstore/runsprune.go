package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gnnstore/gnnstore/train/run"
)

type pruneOptions struct {
	keep   int // runs to keep of each dataset and task; 0: all
	failed bool
	yes    bool
	json   bool
}

const noCheckpoint = "no checkpoint"

// prunedRun is a run in the output of runs prune; its JSON keys are stable.
type prunedRun struct {
	Run    string `json:"run"` // directory
	Status string `json:"status"`
	Why    string `json:"why"`
	Bytes  int64  `json:"bytes"`
	// Removed reports whether the run was removed. Error says why a removal failed.
	Removed bool   `json:"removed"`
	Error   string `json:"error,omitempty"`

	*listedRun `json:"-"`
}

func newRunsPrune() *cobra.Command {
	var o pruneOptions
	cmd := &cobra.Command{
		Use:   "prune [DIR]",
		Short: "List runs that are no longer of use, and remove them with --yes",
		Long: "List the runs in DIR (default runs) that are no longer of use, and remove them with --yes: runs that failed or were\n" +
			"interrupted before their first checkpoint, so that --resume would begin anew. --failed and --keep add others.\n\n" +
			"A run that is at work stays, and so does a run that cannot be read. A directory with files that no run has made\n" +
			"stays too. No link is followed.",
		Example: "  gnnstore runs prune\n" +
			"  gnnstore runs prune runs --keep 3 --yes",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return exactArgs("DIR")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := "runs"
			if len(args) > 0 {
				dir = args[0]
			}
			if cmd.Flags().Changed("keep") && o.keep < 1 {
				return misuse(fmt.Errorf("--keep %d: at least 1; without it all runs that ended well stay", o.keep))
			}
			if run.Begun(dir) {
				return misuse(fmt.Errorf("%s is a run; name the directory that holds runs", dir))
			}
			return o.prune(cmd.OutOrStdout(), cmd.ErrOrStderr(), dir)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.IntVar(&o.keep, "keep", 0, "also runs that ended well, except the best K by validation of each dataset and task (default: keep all)")
	f.BoolVar(&o.failed, "failed", false, "also runs that failed after a checkpoint, from which --resume goes on")
	f.BoolVar(&o.yes, "yes", false, "remove the runs")
	f.BoolVar(&o.json, "json", false, "print as JSON")
	return cmd
}

// prune lists the runs in dir that are no longer of use, and removes them with --yes.
func (o *pruneOptions) prune(stdout, stderr io.Writer, dir string) error {
	paths, err := findRuns([]string{dir})
	if err != nil {
		return err
	}
	list := o.choose(listRuns(paths, runOrders["valid"]).Runs)
	failures, bytes := 0, int64(0)
	for _, p := range list {
		if o.yes {
			err := run.Remove(p.Run, func() error { return p.unchanged() })
			if err != nil {
				failures++
				p.Error = withFlags(oneLine(err))
				printf(stderr, "%s\n", clean(p.Error))
				continue
			}
			p.Removed = true
		}
		bytes += p.Bytes
	}
	if o.json {
		err = printJSON(stdout, map[string]any{"runs": list})
	} else {
		o.print(stdout, dir, list, len(list)-failures, bytes)
	}
	if failures > 0 {
		err = errors.Join(err, fmt.Errorf("%d of %d runs were not removed", failures, len(list)))
	}
	return err
}

// choose returns the runs to remove. It expects runs in the order of listRuns: by dataset and
// metric, then the best first.
func (o *pruneOptions) choose(runs []*listedRun) []*prunedRun {
	list := []*prunedRun{}
	better := map[string]int{} // counts runs so far, by dataset and task
	for _, l := range runs {
		why := ""
		switch l.Status {
		case run.Failed, run.Interrupted, run.Died:
			switch kept := run.Checkpointed(l.Run); {
			case !kept:
				why = noCheckpoint
			case o.failed && l.Status == run.Failed:
				why = "failed"
			}
		case run.Done, run.StoppedEarly:
			if o.keep == 0 || l.Valid == nil {
				break
			}
			what := strings.Join([]string{l.Seal, l.Metric, l.all.Task, l.all.Target, l.all.EdgeLabel, l.all.Split}, "\x00")
			if better[what]++; better[what] > o.keep {
				why = fmt.Sprintf("number %d by validation", better[what])
			}
		}
		if why != "" {
			list = append(list, &prunedRun{Run: l.Run, Status: l.Status, Why: why, Bytes: bytesIn(l.Run), listedRun: l})
		}
	}
	return list
}

// unchanged returns an error if the run went on since it was listed.
func (p *prunedRun) unchanged() error {
	now, err := readBegun(p.Run)
	if err != nil {
		return err
	}
	// the status of a run that died is running while the removal holds its lock
	same := now.Status == p.Status || p.Status == run.Died && now.Status == run.Running
	if !same || len(now.Epochs) != p.Epochs || p.Why == noCheckpoint && run.Checkpointed(p.Run) {
		return fmt.Errorf("run %s: it went on since it was listed; look at it again", p.Run)
	}
	return nil
}

func (o *pruneOptions) print(w io.Writer, dir string, list []*prunedRun, count int, bytes int64) {
	if len(list) == 0 {
		printf(w, "nothing to prune: no run in %s failed or was interrupted before its first checkpoint; see --keep and --failed\n", clean(dir))
		return
	}
	rows := [][]string{{"run", "status", "valid", "size", "why"}}
	for _, p := range list {
		if p.Error == "" {
			rows = append(rows, []string{clean(p.Run), p.Status, measured(p.kind, p.Valid), size(p.Bytes), p.Why})
		}
	}
	if count > 0 {
		tabulate(w, rows)
	}
	if o.yes {
		printf(w, "removed %s, %s\n", run.Counted(count, "run"), size(bytes))
		return
	}
	printf(w, "%s, %s; the same command with --yes removes them\n", run.Counted(count, "run"), size(bytes))
}

// bytesIn returns the size of the files below a directory. It follows no link.
func bytesIn(dir string) (n int64) {
	_ = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil {
			return nil // what cannot be read is not counted
		}
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			n += info.Size()
		}
		return nil
	})
	return n
}
