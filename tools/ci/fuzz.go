package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os/exec"
	"strings"
	"time"
)

// A target is a fuzz test of a package.
type target struct{ pkg, name string }

func runFuzz(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("fuzz", flag.ExitOnError)
	total := flags.Duration("for", time.Minute, "the `time` that all targets share")
	_ = flags.Parse(args) // ExitOnError
	list, err := exec.CommandContext(ctx, "go", "test", "-list", "^Fuzz", "./...").CombinedOutput()
	if err != nil {
		return fmt.Errorf("go test -list: %w\n%s", err, list)
	}
	all := targets(string(list))
	if len(all) == 0 {
		return errors.New("no fuzz target found")
	}
	share := max(*total/time.Duration(len(all)), time.Second)
	for _, t := range all {
		out, err := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-fuzz", "^"+t.name+"$", "-fuzztime", share.String(), t.pkg).CombinedOutput()
		if err != nil {
			return fmt.Errorf("%s %s: %w\n%s", t.pkg, t.name, err, out)
		}
		fmt.Printf("%s %s: %s\n", t.pkg, t.name, lastProgress(string(out)))
	}
	return nil
}

// targets reads go test -list: names, then the line of their package.
func targets(list string) []target {
	var all []target
	var names []string
	for line := range strings.Lines(list) {
		fields := strings.Fields(line)
		switch {
		case len(fields) == 1 && strings.HasPrefix(fields[0], "Fuzz"):
			names = append(names, fields[0])
		case len(fields) > 1 && fields[0] == "ok":
			for _, name := range names {
				all = append(all, target{pkg: fields[1], name: name})
			}
			names = nil
		}
	}
	return all
}

// lastProgress picks the last line in which the fuzzer says how far it came.
func lastProgress(output string) string {
	last := "no progress line"
	for line := range strings.Lines(output) {
		if progress, ok := strings.CutPrefix(strings.TrimSpace(line), "fuzz: "); ok {
			last = progress
		}
	}
	return last
}
