package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/gnnstore/gnnstore/tools/cli"
)

// leastRuns are trainings that use memory in different ways: kind and scale of the generated data,
// more flags of generate, flags of train.
var leastRuns = []struct{ kind, scale, more, flags string }{
	{"reddit", "0.01", "", "--epochs 1"},
	{"products", "0.004", "--edge-split random:0.9/0.05/0.05", "--task link --decoder dot --epochs 1 --epoch-steps 4"},
	{"products", "0.004", "--edge-split random:0.9/0.05/0.05", "--task link --decoder mlp --epochs 1 --epoch-steps 4"},
	{"kg", "0.0002", "", "--task link --layers 0 --decoder complex --epochs 1 --epoch-steps 20"},
	{"temporal", "0.2", "", "--model tgn --epochs 1 --epoch-steps 40"},
	{"temporal", "0.2", "", "--model jodie --epochs 1 --epoch-steps 40"},
	{"temporal", "0.2", "", "--model apan --epochs 1 --epoch-steps 40"},
}

var leastSaid = regexp.MustCompile(`the least that works is (\d+) MiB`)

// leastThatWorks trains with the least memory that a refusal names. The run must work, and its
// reported peak must stay within it. The gap is printed: a user has to have that memory although
// the run does not need it.
func leastThatWorks(ctx context.Context, a *arxiv) error {
	for i, r := range leastRuns {
		dataset := filepath.Join(a.tmp, fmt.Sprintf("least-%d.gnn", i))
		args := append([]string{"generate", r.kind, dataset, "--scale", r.scale}, strings.Fields(r.more)...)
		if err := a.gnnstore.Run(ctx, args...); err != nil {
			return err
		}
		train := func(memory string) *exec.Cmd {
			dir := filepath.Join(a.tmp, fmt.Sprintf("run-least-%d", i))
			args := append([]string{"train", dataset, "--json", "--memory", memory, "--run", dir}, strings.Fields(r.flags)...)
			return a.gnnstore.Command(ctx, args...)
		}
		message, err := cli.Refused(train("40MiB"))
		if err != nil {
			return fmt.Errorf("%s %s with 40 MiB: %w", r.kind, r.flags, err)
		}
		said := leastSaid.FindStringSubmatch(message)
		if said == nil {
			return fmt.Errorf("%s %s with 40 MiB: %q does not say the least that works", r.kind, r.flags, message)
		}
		out, refusal, err := cli.Outcome(train(said[1] + "MiB"))
		if err == nil && refusal != "" {
			err = errors.New(refusal)
		}
		if err != nil {
			return fmt.Errorf("%s %s with the %s MiB that were said to work: %w", r.kind, r.flags, said[1], err)
		}
		var got cli.Trained
		if err := json.Unmarshal(out, &got); err != nil {
			return err
		}
		var least int64
		fmt.Sscan(said[1], &least)
		fmt.Printf("least of %s %s: %d MiB, peak %d MiB\n", r.kind, r.flags, least, got.PeakRSSBytes>>20)
		if got.PeakRSSBytes > least<<20 {
			return fmt.Errorf("%s %s: it took %d bytes, more than the %d MiB that were said to work", r.kind, r.flags, got.PeakRSSBytes, least)
		}
	}
	return nil
}
