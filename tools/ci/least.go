package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/gnnstore/gnnstore/tools/cli"
)

// leastRuns are trainings that use memory in different ways.
var leastRuns = []struct {
	generate string   // kind, and flags
	train    []string // flags of each training on it
}{
	{"reddit --scale 0.01", []string{"--epochs 1"}},
	{"products --scale 0.004 --edge-split random:0.9/0.05/0.05", []string{
		"--task link --decoder dot --epochs 1 --epoch-steps 4", "--task link --decoder mlp --epochs 1 --epoch-steps 4",
	}},
	{"kg --scale 0.0002", []string{"--task link --layers 0 --decoder complex --epochs 1 --epoch-steps 20"}},
	{"temporal --scale 0.2", []string{
		"--model tgn --epochs 1 --epoch-steps 40", "--model jodie --epochs 1 --epoch-steps 40", "--model apan --epochs 1 --epoch-steps 40",
	}},
}

var leastSaid = regexp.MustCompile(`the least that works is (\d+) MiB`)

// leastThatWorks trains with the least memory that a refusal names. The run must work, and its
// reported peak must stay within it. The gap is printed: a user has to have that memory although
// the run does not need it.
func leastThatWorks(ctx context.Context, a *arxiv) error {
	for i, r := range leastRuns {
		dataset := filepath.Join(a.tmp, fmt.Sprintf("least-%d.gnn", i))
		kind := strings.Fields(r.generate)
		if err := a.gnnstore.Run(ctx, append([]string{"generate", kind[0], dataset}, kind[1:]...)...); err != nil {
			return err
		}
		for j, flags := range r.train {
			args := append([]string{"train", dataset, "--json", "--run", filepath.Join(a.tmp, fmt.Sprintf("run-least-%d-%d", i, j))}, strings.Fields(flags)...)
			if err := leastOf(ctx, a.gnnstore, args); err != nil {
				return fmt.Errorf("%s, train %s: %w", r.generate, flags, err)
			}
		}
	}
	return nil
}

// leastOf runs one training of leastThatWorks.
func leastOf(ctx context.Context, gnnstore cli.Binary, train []string) error {
	within := func(memory string) *exec.Cmd { return gnnstore.Command(ctx, append(train, "--memory", memory)...) }
	message, err := cli.Refused(within("40MiB"))
	if err != nil {
		return fmt.Errorf("with 40 MiB: %w", err)
	}
	said := leastSaid.FindStringSubmatch(message)
	if said == nil {
		return fmt.Errorf("with 40 MiB: %q does not say the least that works", message)
	}
	least, err := strconv.ParseInt(said[1], 10, 64)
	if err != nil {
		return err
	}
	out, refusal, err := cli.Outcome(within(said[1] + "MiB"))
	if err == nil && refusal != "" {
		err = errors.New(refusal)
	}
	if err != nil {
		return fmt.Errorf("with the %d MiB that were said to work: %w", least, err)
	}
	var got cli.Trained
	if err := json.Unmarshal(out, &got); err != nil {
		return err
	}
	fmt.Printf("least of %s: %d MiB, peak %d MiB\n", strings.Join(train[5:], " "), least, got.PeakRSSBytes>>20)
	if got.PeakRSSBytes > least<<20 {
		return fmt.Errorf("it took %d bytes, more than the %d MiB that were said to work", got.PeakRSSBytes, least)
	}
	return nil
}
