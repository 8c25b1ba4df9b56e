package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
)

type verifyReport struct {
	Path     string   `json:"path"`
	Seal     string   `json:"seal"`
	OK       bool     `json:"ok"`
	Problems []string `json:"problems"`
	Sections int      `json:"sections"`
	Bytes    int64    `json:"bytes"`
	Seconds  float64  `json:"seconds"`
}

func newVerify() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "verify DATASET",
		Short: "Check every checksum and every invariant of a dataset",
		Args:  exactArgs("DATASET"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runVerify(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), args[0], asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the report as JSON")
	return cmd
}

func runVerify(ctx context.Context, stdout, stderr io.Writer, path string, asJSON bool) error {
	start := time.Now()
	ds, err := openAny(stderr, path, 0)
	if err != nil {
		return err
	}
	defer ds.Close()
	p := newProgress(stderr)
	problems, err := ds.Verify(ctx, func(done, total int64) { p.show("verify", done, total, "bytes") })
	p.clear()
	if err != nil {
		return err
	}
	m := ds.Manifest()
	r := verifyReport{Path: path, Seal: m.Seal, OK: len(problems) == 0, Problems: []string{}, Sections: len(m.Files()) + len(m.Blobs()), Bytes: m.Bytes(), Seconds: time.Since(start).Seconds()}
	for _, problem := range problems {
		r.Problems = append(r.Problems, problem.Error())
		printf(stderr, "%s\n", problem)
	}
	if asJSON {
		if err := printJSON(stdout, r); err != nil {
			return err
		}
	} else if r.OK {
		printf(stdout, "%s: %d sections, %s, every checksum and invariant holds (%s)\nseal %s\n", path, r.Sections, size(r.Bytes), seconds(r.Seconds), r.Seal)
	}
	if !r.OK {
		return fmt.Errorf("%s: %d of %d sections are damaged; restore them or ingest again", path, len(problems), r.Sections)
	}
	return nil
}
