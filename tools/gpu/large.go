package main

import (
	"errors"
	"fmt"
	"runtime"
	"strconv"
)

// trainSAGE trains GraphSAGE of three layers on a graph of papers100M's shape, in run, a new run
// directory.
func (t *turn) trainSAGE(data, run, device string, epochs, steps int, args ...string) (*result, error) {
	return t.gnnstore(append([]string{
		"train", data, "--run", run, "--device", device, "--seed", "1", "--json",
		"--epochs", strconv.Itoa(epochs), "--epoch-steps", strconv.Itoa(steps), "--batch", strconv.Itoa(t.batch()),
		"--fanout", "15,10,5", "--hidden", strconv.Itoa(t.hidden()),
		"--eval", "sampled", "--eval-nodes", "100", "--patience", "0",
	}, args...)...)
}

// batch and hidden are the batch and the width of trainSAGE.
func (t *turn) batch() int  { return t.pick(1000, 50) }
func (t *turn) hidden() int { return t.pick(256, 32) }

// workers returns how many batches are drawn at a time.
func (t *turn) workers() int { return max(2, runtime.NumCPU()-2) }

// training times steps on the GPU, and on the CPU beside it.
func (t *turn) training() error {
	data, err := t.dataset(large)
	if err != nil {
		return err
	}
	steps := t.pick(200, 20)
	workers := strconv.Itoa(t.workers())
	train := func(device string, steps int) (*result, error) {
		return t.trainSAGE(data, "training-"+device, device, 1, steps, "--workers", workers)
	}
	r, err := train("cuda", steps)
	if err != nil {
		return err
	}
	n := float64(r.steps())
	if r.steps() != int64(steps) || r.Bus.Steps != r.steps() {
		return fmt.Errorf("%v steps, %d of them counted, instead of %d", n, r.Bus.Steps, steps)
	}
	step := 1e3 * r.Stages.Step / n
	t.target(step <= 4, "want 4", "step %.2f ms", step)
	t.note("%.2f ms with what it waits for", 1e3*r.Stages.Run/n)
	t.note("%s limits", r.Limiting)
	t.note("sampling %.2f ms, gathering %.2f ms", 1e3*r.Stages.Sample/n, 1e3*r.Stages.Gather/n)
	t.note("%.0f k inputs", float64(r.Inputs)/n/1e3)
	waits, launches := float64(r.Bus.Waits)/n, float64(r.Bus.Launches)/n
	t.target(waits <= 1.05, "want 1", "%.2f waits", waits)
	t.target(launches <= 40, "want 40", "%.1f launches", launches)
	t.note("%.1f copies of %.1f MB up", float64(r.Bus.Uploads)/n, float64(r.Bus.Bytes)/n/1e6)
	t.note("%.2f GB of the device", float64(r.Memory.OnDevice)/1e9)
	few := t.pick(10, 5)
	r, err = train("cpu", few)
	if err != nil {
		return fmt.Errorf("on the CPU: %w", err)
	}
	t.note("on %d processors %.0f ms", runtime.NumCPU(), 1e3*r.Stages.Step/float64(max(1, r.steps())))
	return nil
}

// tiers trains where the device and the host hold a fifth of the rows each, and the disk the
// others. With κ = 64 fewer bytes go to the device than with κ = 1. With history a run repeated has
// equal weights.
func (t *turn) tiers() error {
	data, err := t.dataset(deep)
	if err != nil {
		return err
	}
	held, memory := "512MiB", "6GiB"
	if t.small {
		held, memory = "1MiB", "256MiB"
	}
	steps := t.pick(100, 20)
	train := func(run string, args ...string) (*result, error) {
		r, err := t.trainSAGE(data, "tiers-"+run, "cuda", 1, steps, append([]string{
			"--memory", memory, "--device-memory", held, "--host-memory", held, "--device-policy", "lru",
		}, args...)...)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", run, err)
		}
		n, rows := float64(r.steps()), float64(r.Inputs)
		share := func(t tier) float64 { return 100 * float64(t.Hits) / rows }
		t.note("%s: %.1f ms a step, %s limits, %.0f MB up", run, 1e3*r.Stages.Run/n, r.Limiting, float64(r.Bus.Bytes)/n/1e6)
		t.note("rows of the device %.0f %%, host %.0f %%, disk %.0f %%", share(r.Tiers.Device), share(r.Tiers.Host), share(r.Tiers.Disk))
		for name, of := range map[string]tier{"device": r.Tiers.Device, "host": r.Tiers.Host, "disk": r.Tiers.Disk} {
			if of.Hits == 0 {
				return nil, fmt.Errorf("%s: no row came from the %s", run, name)
			}
		}
		return r, nil
	}
	independent, err := train("κ=1")
	if err != nil {
		return err
	}
	dependent, err := train("κ=64", "--kappa", "64")
	if err != nil {
		return err
	}
	if dependent.Bus.Bytes >= independent.Bus.Bytes {
		err = fmt.Errorf("κ=64 copies %d bytes up, and κ=1 %d", dependent.Bus.Bytes, independent.Bus.Bytes)
	}
	var history [2]string
	for i := range history {
		r, err := train(fmt.Sprintf("history-%d", i+1), "--kappa", "64", "--history", "--history-start", "20")
		if err != nil {
			return err
		}
		history[i] = r.Params
	}
	if history[0] == "" || history[0] != history[1] {
		err = errors.Join(err, fmt.Errorf("history: params_xxh3 %q and %q", history[0], history[1]))
	}
	return err
}
