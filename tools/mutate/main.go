// Mutate breaks the source on purpose, one small edit at a time, and prints the test that notices.
// The edits are in table.go and the files beside it: each names a declaration, a text in it, the
// text to put there, and what that breaks. The tree is never written: go test -overlay reads a copy
// of the one file.
//
//	go run ./tools/mutate [-only REGEXP] [-run REGEXP] [-n N -seed S] [-timeout D]
//
// It prints a line a mutant: killed, and by which test; SURVIVED; STALE, when the text is not there
// any more; or DOES NOT COMPILE. Whatever is not killed makes it exit 1. Run it in the module's
// root. Tests run without real data.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"syscall"
	"time"
)

type options struct {
	only, tests string
	n           int
	seed        uint64
	timeout     time.Duration
}

func main() {
	var o options
	flag.StringVar(&o.only, "only", "", "a `regexp` of mutants, by id or file; default all")
	flag.StringVar(&o.tests, "run", "", "a `regexp` of the tests that are to notice; default those that the table lists, then all of the package")
	flag.IntVar(&o.n, "n", 0, "try this `number` of mutants, chosen by -seed; default all")
	flag.Uint64Var(&o.seed, "seed", uint64(time.Now().Unix()/86400), "`seed` of the choice, decimal or 0x…; default the day")
	flag.DurationVar(&o.timeout, "timeout", 2*time.Minute, "the `time` that the tests may take before a mutant counts as killed by it")
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "usage: go run ./tools/mutate [-only REGEXP] [-run REGEXP] [-n N -seed S] [-timeout D]")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Stdout, ".", slices.Concat(tables...), o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

// run tries the mutants that o chooses on the module at root, one after the other.
func run(ctx context.Context, w io.Writer, root string, all []mutant, o options) error {
	chosen, err := choose(all, o)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "%d of %d mutants", len(chosen), len(all))
	if o.n > 0 {
		fmt.Fprintf(w, ", seed %d", o.seed)
	}
	fmt.Fprintln(w)
	count := map[verdict]int{}
	for _, m := range chosen {
		began := time.Now()
		r := try(ctx, root, m, o)
		if ctx.Err() != nil {
			return errors.New("interrupted")
		}
		if r.err != nil {
			return fmt.Errorf("%s: %w", m.id, r.err)
		}
		count[r.verdict]++
		fmt.Fprintf(w, "%-28s %-16s %5.1f s  %s\n", m.id, r.verdict, time.Since(began).Seconds(), r.detail)
		if r.verdict != killed {
			fmt.Fprintf(w, "    %s, %s: %s\n", m.file, m.in, m.breaks)
		}
	}
	fmt.Fprintf(w, "%d killed, %d survived, %d stale, %d do not compile\n",
		count[killed], count[survived], count[stale], count[broken])
	if bad := len(chosen) - count[killed]; bad > 0 {
		return fmt.Errorf("%d of %d mutants are not killed: where one survived, a test is missing; "+
			"where one is stale or does not compile, bring its text in tools/mutate up to date", bad, len(chosen))
	}
	return nil
}

// choose is the mutants that o.only matches, or o.n of them at random, in the order of the table.
func choose(all []mutant, o options) ([]mutant, error) {
	pattern, err := regexp.Compile(o.only)
	if err != nil {
		return nil, fmt.Errorf("-only: %w", err)
	}
	if _, err := regexp.Compile(o.tests); err != nil {
		return nil, fmt.Errorf("-run: %w", err)
	}
	var chosen []mutant
	for _, m := range all {
		if pattern.MatchString(m.id) || pattern.MatchString(m.file) {
			chosen = append(chosen, m)
		}
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("-only %s: none of %d mutants is called so", o.only, len(all))
	}
	if o.n <= 0 || o.n >= len(chosen) {
		return chosen, nil
	}
	some := rand.New(rand.NewPCG(o.seed, 0)).Perm(len(chosen))[:o.n]
	slices.Sort(some)
	picked := make([]mutant, len(some))
	for i, at := range some {
		picked[i] = chosen[at]
	}
	return picked, nil
}
