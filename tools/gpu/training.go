package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// network is a training of stages 4, 5 and 9.
type network struct {
	name, data string
	args       []string
	drifts     bool // even two kernel sets of the CPU differ by more than the tolerance
}

var networks = []network{
	{name: "SAGE", data: papers, args: []string{"--model", "sage"}},
	{name: "GCN", data: papers, args: []string{"--model", "gcn"}},
	{name: "GAT", data: papers, args: []string{"--model", "gat"}},
	{name: "HGT", data: mag, args: []string{"--model", "hgt", "--fanout", "4,4"}},
	{name: "TGN", data: events, args: []string{"--model", "tgn"}, drifts: true},
	{name: "history", data: papers,
		args: []string{"--model", "sage", "--history", "--history-start", "20", "--t-stale", "10"}},
}

// named returns the networks with these names.
func named(names ...string) (some []network) {
	for _, name := range names {
		for _, n := range networks {
			if n.name == name {
				some = append(some, n)
			}
		}
	}
	return some
}

// arguments returns the command line of a training of so many steps an epoch.
func (t *turn) arguments(n network, run, device string, epochs, steps int) ([]string, error) {
	data, err := t.dataset(n.data)
	if err != nil {
		return nil, err
	}
	args := []string{
		"train", data, "--run", run, "--device", device, "--seed", "1", "--json", "--log-every", "1", "--patience", "0",
		"--epochs", strconv.Itoa(epochs), "--epoch-steps", strconv.Itoa(steps),
		"--batch", strconv.Itoa(t.pick(100, 50)), "--hidden", strconv.Itoa(t.pick(64, 32)),
	}
	if n.data == events {
		args = append(args, "--eval", "none")
	} else {
		args = append(args, "--eval", "sampled", "--eval-nodes", "100")
	}
	return append(args, n.args...), nil
}

// train trains in run, a new run directory.
func (t *turn) train(n network, run, device string, epochs, steps int) (*result, error) {
	args, err := t.arguments(n, run, device, epochs, steps)
	if err != nil {
		return nil, err
	}
	r, err := t.gnnstore(args...)
	if err == nil && r.steps() != int64(epochs*steps) {
		err = fmt.Errorf("%d steps instead of %d", r.steps(), epochs*steps)
	}
	return r, err
}

// gnnstore runs a command that prints the result of a training.
func (t *turn) gnnstore(args ...string) (*result, error) {
	text, err := t.command(t.program("gnnstore-cuda"), args...)
	if err != nil {
		return nil, err
	}
	return readResult(text)
}

// repeat trains twice with one seed, and wants equal weights.
func (t *turn) repeat() error {
	var errs []error
	for _, n := range named("SAGE", "GAT", "HGT", "TGN") {
		var params [2]string
		var err error
		for i := range params {
			var r *result
			if r, err = t.train(n, fmt.Sprintf("repeat-%s-%d", n.name, i+1), "cuda", 1, 20); err != nil {
				break
			}
			params[i] = r.Params
		}
		if err == nil && (params[0] == "" || params[0] != params[1]) {
			err = fmt.Errorf("params_xxh3 %q and %q", params[0], params[1])
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", n.name, err))
			continue
		}
		t.note("%s equal", n.name)
	}
	return errors.Join(errs...)
}

// losses trains on the CPU and on the GPU, and compares the loss of each step.
func (t *turn) losses() error {
	var errs []error
	for _, n := range networks {
		if err := t.compare(n); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", n.name, err))
		}
	}
	return errors.Join(errs...)
}

// drift bounds how far losses of the GPU may be from the CPU's in a network that drifts: so many
// times as far as the losses of another kernel set of the CPU are. Rounding differs, and each step
// makes the difference larger.
const drift = 10

// compare compares the losses of a network.
func (t *turn) compare(n network) error {
	want, err := t.lossesOf(n, "cpu")
	if err != nil {
		return err
	}
	got, err := t.lossesOf(n, "cuda")
	if err != nil {
		return err
	}
	most, err := compareLosses(want, got)
	if !n.drifts || most == 0 {
		t.note("%s %.1g", n.name, most)
		return err
	}
	if got, err = t.lossesOf(n, "cpu", "--kernels", "portable"); err != nil {
		return err
	}
	other, _ := compareLosses(want, got) // it may be far
	t.note("%s %.1g (another set of the CPU %.1g)", n.name, most, other)
	if most > max(tolerance, drift*other) {
		return fmt.Errorf("the GPU is more than %d times as far from the CPU as another kernel set", drift)
	}
	return nil
}

// lossesOf returns the losses of 100 steps.
func (t *turn) lossesOf(n network, device string, args ...string) ([]float64, error) {
	run := strings.Join(append([]string{"losses", n.name, device}, args...), "-")
	n.args = slices.Concat(n.args, args)
	if _, err := t.train(n, run, device, 1, 100); err != nil {
		return nil, err
	}
	return losses(filepath.Join(t.work, run))
}

const (
	resumeEpochs = 3  // of stage 9
	resumedSteps = 50 // behind the interruption whose losses are compared
)

// resume interrupts a run, and goes on with it on the GPU and on the CPU.
func (t *turn) resume() error {
	n, steps := named("SAGE")[0], t.pick(100, 20)
	whole, err := t.train(n, "whole", "cuda", resumeEpochs, steps)
	if err != nil {
		return err
	}
	at, err := t.interrupted(n, steps, t.pick(50, 10))
	if err != nil {
		return err
	}
	t.note("interrupted after %d steps", at)
	if err := os.CopyFS(filepath.Join(t.work, "cut-cpu"), os.DirFS(filepath.Join(t.work, "cut"))); err != nil {
		return err
	}
	r, err := t.gnnstore("train", "--resume", "--run", "cut", "--json")
	if err != nil {
		return fmt.Errorf("on cuda: %w", err)
	}
	if r.Params == "" || r.Params != whole.Params {
		return fmt.Errorf("resumed on cuda: params_xxh3 %q, and %q without an interruption", r.Params, whole.Params)
	}
	t.note("on cuda: equal weights")
	p, err := t.start(nil, t.program("gnnstore-cuda"),
		"train", "--resume", "--run", "cut-cpu", "--device", "cpu", "--json")
	if err != nil {
		return err
	}
	if _, err := p.wait(); err != nil {
		return fmt.Errorf("on cpu: %w", err)
	}
	if !strings.Contains(p.trouble.String(), "goes on on cpu") {
		return errors.New("on cpu: the other device is not noted")
	}
	want, err := losses(filepath.Join(t.work, "whole"))
	if err != nil {
		return err
	}
	got, err := losses(filepath.Join(t.work, "cut-cpu"))
	if err != nil {
		return err
	}
	compared := min(at+resumedSteps, len(want), len(got))
	most, err := compareLosses(want[:compared], got[:compared])
	t.note("on cpu: noted, losses within %.1g", most)
	return err
}

// interrupted trains until so many updates are made, sends SIGINT, and returns after how many the
// run ended. steps is the length of an epoch.
func (t *turn) interrupted(n network, steps, updates int) (made int, err error) {
	args, err := t.arguments(n, "cut", "cuda", resumeEpochs, steps)
	if err != nil {
		return 0, err
	}
	p, err := t.start(nil, t.program("gnnstore-cuda"), args...)
	if err != nil {
		return 0, err
	}
	run := filepath.Join(t.work, "cut")
	for waiting := true; waiting; {
		select {
		case <-p.ended: // too early, which its status shows
			waiting = false
		case <-time.After(time.Millisecond):
			// An error is a file that is not there, or a line that is not whole, yet.
			if all, err := losses(run); err == nil && len(all) >= updates {
				waiting = false
				_ = p.cmd.Process.Signal(syscall.SIGINT) // where it has ended meanwhile, its status shows it
			}
		}
	}
	text, ended := p.wait() // with a code of its own
	r, err := readResult(text)
	if err != nil {
		return 0, errors.Join(ended, err)
	}
	if r.Status != "interrupted" {
		return 0, fmt.Errorf("after SIGINT the run is %q", r.Status)
	}
	all, err := losses(run)
	return len(all), err
}
