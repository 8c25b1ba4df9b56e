package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/sync/errgroup"
)

// pairs runs TestCombinations of cmd/gnnstore with every pair of values of options and kinds of
// data. Each processor runs a process, which meets one share of the pairs after the other. With
// -draw the seed draws some shares, and the others are left out. pairs prints the output without
// command lines; after a panic, it prints the last one.
func pairs(ctx context.Context, args []string) (err error) {
	flags := flag.NewFlagSet("pairs", flag.ExitOnError)
	seed := flags.Uint64("seed", 1, "of the combinations that are drawn")
	parts := flags.Int("parts", runtime.NumCPU(), "equal `shares` of the pairs, each met by a process of its own")
	draw := flags.Int("draw", 0, "meet so many of the `shares` alone; 0: all")
	_ = flags.Parse(args) // ExitOnError
	if *parts < 1 || *draw < 0 || *draw > *parts {
		return fmt.Errorf("-parts %d -draw %d: want at least 1 share, and at most all drawn", *parts, *draw)
	}
	shares := rand.New(rand.NewPCG(*seed, 0)).Perm(*parts)
	if *draw > 0 {
		shares = shares[:*draw]
	}
	// Syncs cost nothing in memory.
	tmp, err := os.MkdirTemp("/dev/shm", "gnnstore-pairs-")
	if err != nil {
		tmp, err = os.MkdirTemp("", "gnnstore-pairs-")
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(tmp)) }()
	test := filepath.Join(tmp, "pairs.test")
	if out, err := exec.CommandContext(ctx, "go", "test", "-vet=off", "-c", "-o", test, "./cmd/gnnstore").CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	said := make([]bytes.Buffer, len(shares))
	var group errgroup.Group
	group.SetLimit(runtime.NumCPU())
	for i, part := range shares {
		group.Go(func() error { return somePairs(ctx, test, *seed, fmt.Sprintf("%d/%d", part, *parts), &said[i]) })
	}
	err = group.Wait()
	for i := range said {
		_, failed := said[i].WriteTo(os.Stdout)
		err = errors.Join(err, failed)
	}
	return err
}

// somePairs meets a share of the pairs, and writes what the test says.
func somePairs(ctx context.Context, test string, seed uint64, share string, w io.Writer) error {
	cmd := exec.CommandContext(ctx, test, "-test.count=1", "-test.v", "-test.timeout=60m", "-test.run=^TestCombinations$", "-every-pair",
		fmt.Sprintf("-pairs-seed=%d", seed), "-pair-share="+share)
	cmd.Dir = "cmd/gnnstore" // where the test finds testdata
	cmd.Env = append(os.Environ(), "TMPDIR="+filepath.Dir(test))
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		return err
	}
	last := printButCommands(out, w)
	if err := cmd.Wait(); err != nil {
		return errors.Join(fmt.Errorf("share %s: the last command was %s", share, last), err)
	}
	return nil
}

// printButCommands copies r to w without command lines, and returns the last command line.
func printButCommands(r io.Reader, w io.Writer) (last string) {
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadString('\n')
		if strings.HasPrefix(line, "gnnstore '") {
			last = strings.TrimSpace(line)
		} else if line != "" {
			fmt.Fprint(w, line)
		}
		if err != nil {
			return last
		}
	}
}
