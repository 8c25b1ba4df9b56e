package main

import (
	"cmp"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/train"
)

func newStats() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "stats RUN",
		Short: "Show what each tier of a run did",
		Long: "Show what each tier of a run did: of a finished run, or of one that is running or died, up to the\n" +
			"last step or epoch on record (train --log-every).",
		Args: exactArgs("RUN"),
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := train.ReadRun(args[0])
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(cmd.OutOrStdout(), r)
			}
			w := cmd.OutOrStdout()
			fmt.Fprintf(w, "run %s   dataset %s\n%s\n\n", r.Run, r.Dataset, outcome(r))
			printTiers(w, r)
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print as JSON")
	return cmd
}

// printTiers is the tier table: where each row that training asked for came from.
func printTiers(w io.Writer, r *train.Result) {
	rows := [][]string{{"tier", "capacity", "used", "rows served", "share", "bytes served", "bytes read in", "evictions"}}
	for _, t := range []struct {
		name string
		cachetier.Tier
	}{{"device", r.Tiers.Device}, {"host", r.Tiers.Host}, {"disk", r.Tiers.Disk}} {
		share := "-"
		if r.InputRows > 0 {
			share = percent(float64(t.RowsHit) / float64(r.InputRows))
		}
		rows = append(rows, []string{t.name, size(t.CapacityBytes), size(t.UsedBytes), count(t.RowsHit), share,
			size(t.BytesOut), size(t.BytesRead), count(t.Evictions)})
	}
	rows = append(rows, []string{"all", "", "", count(r.InputRows), "", size(r.InputRows * r.RowBytes), "", ""})
	tabulate(w, rows)
	d := r.Disk
	fmt.Fprintf(w, "\ndisk: %s   wanted %s, read %s (amplification %.2f) in %s reads, %s\n",
		r.DiskEngine, size(d.BytesWanted), size(d.BytesRead), d.Amplification, count(d.Reads), seconds(d.Seconds))
	s := r.Stages
	fmt.Fprintf(w, "time: of %s, %d samplers drew for %s each, gathering took %s, steps %s, and they waited %s; %s limits\n",
		seconds(s.Run), s.Samplers, seconds(s.Sample/float64(max(s.Samplers, 1))), seconds(s.Gather), seconds(s.Step), seconds(s.Wait),
		cmp.Or(r.LimitingStage, "nothing"))
	fmt.Fprintf(w, "evaluation (%s): %s, %s read\n", r.Evaluation.Method, seconds(r.Evaluation.Seconds), size(r.Evaluation.Disk.BytesRead))
	fmt.Fprintf(w, "memory: peak %s, and %s of mapped files\n", size(r.PeakRSSBytes), size(r.PeakFileBytes))
}
