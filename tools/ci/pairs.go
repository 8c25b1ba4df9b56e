package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os/exec"
	"strings"
)

// pairs runs TestCombinations of cmd/gnnstore with every pair of values of options and kinds of
// data. It prints the output of the test without command lines; after a panic, it prints the last
// one.
func pairs(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("pairs", flag.ExitOnError)
	seed := flags.Uint64("seed", 1, "of the combinations that are drawn")
	_ = flags.Parse(args) // ExitOnError
	cmd := exec.CommandContext(ctx, "go", "test", "-vet=off", "-count=1", "-v", "-timeout=20m", "-run", "^TestCombinations", "./cmd/gnnstore",
		"-every-pair", fmt.Sprintf("-pairs-seed=%d", *seed))
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		return err
	}
	last := printButCommands(out)
	if err := cmd.Wait(); err != nil {
		return errors.Join(fmt.Errorf("the last command was %s", last), err)
	}
	return nil
}

// printButCommands prints all lines except command lines, and returns the last of those.
func printButCommands(r io.Reader) (last string) {
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadString('\n')
		if strings.HasPrefix(line, "gnnstore '") {
			last = strings.TrimSpace(line)
		} else if line != "" {
			fmt.Print(line)
		}
		if err != nil {
			return last
		}
	}
}
