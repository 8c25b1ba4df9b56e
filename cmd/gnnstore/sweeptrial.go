package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store/setting"
	"github.com/gnnstore/gnnstore/train/plan"
	"github.com/gnnstore/gnnstore/train/run"
	"github.com/gnnstore/gnnstore/train/sweep"
)

// sweeping is a sweep that a command checks, plans or trains.
type sweeping struct {
	grid     *sweep.Grid
	settings []sweep.Setting
	ladder   []sweep.Rung
	dir      string
	epochs   int
	every    int // epochs between evaluations
	seed     uint64
	stderr   *onceWriter
	progress io.Writer // gets a line for each run

	number      int // of the run under way
	interrupted bool
}

// trial returns the options of train for a setting: the fixed ones, the setting's, and more.
func (s *sweeping) trial(one sweep.Setting, more []setting.Choice) (*trainOptions, *pflag.FlagSet, error) {
	o := &trainOptions{Options: run.DefaultOptions()}
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	o.flags(f)
	for _, list := range [][]setting.Choice{s.grid.Fixed, one.Choices, more} {
		for _, c := range list {
			if err := o.given.Give(c.Flag, c.Text); err != nil {
				return nil, nil, fmt.Errorf("--%s: %w", c.Flag, err)
			}
		}
	}
	return o, f, nil
}

// expected returns the number of runs to train. A run counts once in each rung.
func (s *sweeping) expected() (n int) {
	if s.ladder == nil {
		return len(s.settings) * s.grid.Seeds
	}
	for _, r := range s.ladder {
		n += r.Settings * s.grid.Seeds
	}
	return n
}

// train trains all runs.
func (s *sweeping) train(ctx context.Context) (*sweep.Outcome, error) {
	printf(s.progress, "sweep %s   %s; gnnstore stats RUN --watch shows a run while it trains\n", s.dir, s.bySeeds())
	for i, r := range s.ladder {
		printf(s.progress, "rung %d: %d settings up to epoch %d\n", i+1, r.Settings, r.Epochs)
	}
	all := &sweep.Sweep{
		Settings: s.settings, Seed: s.seed, Seeds: s.grid.Seeds, Ladder: s.ladder, Train: s.trainOne, Tell: s.tell,
	}
	return all.Do(ctx)
}

// trainOne trains a run up to t.Epochs, from its newest checkpoint if it has one.
func (s *sweeping) trainOne(ctx context.Context, t sweep.Trial) (ran sweep.Ran, err error) {
	ran.Run = filepath.Join(s.dir, t.Name(len(s.settings)))
	if !t.Test {
		s.number++
	}
	if t.Epochs > 0 && !t.Test {
		r, err := run.Read(ran.Run)
		if err == nil && len(r.Epochs) >= t.Epochs && r.Options.Epochs > t.Epochs { // an earlier part of the sweep trained it for a later rung
			ran.Result = r
			return ran, nil
		}
	}
	test := run.TestNone
	if t.Test {
		test = run.TestBest
	}
	more := []setting.Choice{{Key: "seed", Flag: "seed", Text: strconv.FormatUint(t.Seed, 10)}, {Key: "eval_test", Flag: "eval-test", Text: test}}
	if t.Epochs > 0 {
		more = append(more, setting.Choice{Key: "epochs", Flag: "epochs", Text: strconv.Itoa(t.Epochs)})
	}
	o, f, err := s.trial(t.Setting, more)
	if err != nil {
		return ran, err
	}
	o.run, o.resume = ran.Run, true
	if !run.Begun(ran.Run) {
		if err := o.chooseTask(f, s.grid.Dataset); err != nil {
			return ran, err
		}
	}
	s.stderr.run = s.name(t.Setting, t.Seed) + ": "
	cmd := &cobra.Command{}
	cmd.SetContext(ctx)
	cmd.SetOut(io.Discard)
	cmd.SetErr(s.stderr)
	err = o.train(cmd, s.grid.Dataset)
	var device *kernels.DeviceError
	switch stopped := new(interruptedError); {
	case err == nil:
		ran.Result, err = run.Read(ran.Run)
		return ran, err
	case errors.As(err, &stopped), ctx.Err() != nil:
		s.interrupted = true
		return ran, err
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT), errors.As(err, &device):
		return ran, err // the next run would fail too
	}
	ran.Failed = withFlags(oneLine(err))
	if !run.Begun(ran.Run) {
		return ran, nil
	}
	r, rerr := run.Read(ran.Run)
	if rerr != nil || r.Status != run.Failed {
		return ran, err
	}
	ran.Result = r
	return ran, nil
}

// name returns the name of a run in messages.
func (s *sweeping) name(one sweep.Setting, seed uint64) string {
	name := fmt.Sprintf("trial %*d", len(strconv.Itoa(len(s.settings))), one.Number)
	if s.grid.Seeds > 1 {
		name += fmt.Sprintf(", seed %d", seed)
	}
	return name
}

// bySeeds returns the numbers of settings and seeds as text.
func (s *sweeping) bySeeds() string {
	if s.grid.Seeds == 1 {
		return fmt.Sprintf("%d settings", len(s.settings))
	}
	return fmt.Sprintf("%d settings by %d seeds", len(s.settings), s.grid.Seeds)
}

// tell prints a line about a run.
func (s *sweeping) tell(t sweep.Trial, r *sweep.Ran) {
	line := ""
	if len(s.ladder) > 1 {
		line = fmt.Sprintf("rung %d   ", t.Rung)
	}
	line += s.name(t.Setting, t.Seed)
	if r.Failed != "" {
		printf(s.progress, "%s failed   %s: %s\n", line, settingText(t.Setting), r.Failed)
		return
	}
	kind := r.Result.Best.Metric
	printf(s.progress, "%s   %s %s   %s   %s   %s\n", line, column("valid", kind), measured(kind, r.Valid), run.Counted(r.Epochs, "epoch"), seconds(r.Seconds),
		settingText(t.Setting))
}

// mostPlans is the largest number of settings whose memory and time plan estimates.
const mostPlans = 16

// plannedSetting is a setting in the output of --plan; its JSON keys are stable.
type plannedSetting struct {
	Trial   int               `json:"trial"`
	Options map[string]string `json:"options"`
	Memory  *plan.Budget      `json:"memory,omitempty"` // of one run
	// EpochSeconds is the estimated time of an epoch.
	EpochSeconds float64 `json:"epoch_seconds,omitempty"`
	Error        string  `json:"error,omitempty"` // why it cannot train
}

// plan lists the settings, and the memory and time of the first ones.
func (s *sweeping) plan(ctx context.Context, stdout io.Writer, asJSON bool) error {
	list := []plannedSetting{}
	for i, one := range s.settings {
		p := plannedSetting{Trial: one.Number, Options: optionsOf(one)}
		if i < mostPlans {
			if err := s.planOne(ctx, one, &p); ctx.Err() != nil {
				return ctx.Err()
			} else if err != nil {
				p.Error = withFlags(oneLine(err))
			}
		}
		list = append(list, p)
	}
	if asJSON {
		return printJSON(stdout, map[string]any{"settings": list, "seeds": s.grid.Seeds, "rungs": s.ladder, "runs": len(list) * s.grid.Seeds})
	}
	rows := [][]string{append([]string{"trial"}, append(s.columns(), "memory", "epoch")...)}
	for i, one := range s.settings {
		row := []string{strconv.Itoa(one.Number)}
		for _, c := range one.Choices {
			row = append(row, c.Text)
		}
		switch p := list[i]; {
		case p.Error != "":
			row = append(row, "fails", "-")
		case p.Memory != nil:
			row = append(row, size(p.Memory.Total), seconds(p.EpochSeconds))
		default:
			row = append(row, "-", "-")
		}
		rows = append(rows, row)
	}
	tabulate(stdout, rows)
	for _, p := range list {
		if p.Error != "" {
			printf(stdout, "trial %d: %s\n", p.Trial, p.Error)
		}
	}
	printf(stdout, "\n%s, %d runs, one after the other, so the sweep takes the memory of one run\n", s.bySeeds(), len(list)*s.grid.Seeds)
	for i, r := range s.ladder {
		printf(stdout, "rung %d: %d settings up to epoch %d\n", i+1, r.Settings, r.Epochs)
	}
	if len(list) > mostPlans {
		printf(stdout, "memory and time are shown for the first %d settings\n", mostPlans)
	}
	return nil
}

// planOne sets the memory and the time that a run of a setting takes.
func (s *sweeping) planOne(ctx context.Context, one sweep.Setting, p *plannedSetting) error {
	o, f, err := s.trial(one, nil)
	if err != nil {
		return err
	}
	if err := o.chooseTask(f, s.grid.Dataset); err != nil {
		return err
	}
	var text bytes.Buffer
	cmd := &cobra.Command{}
	cmd.SetContext(ctx)
	cmd.SetOut(&text)
	cmd.SetErr(s.stderr)
	o.plan, o.json = true, true
	if err := o.train(cmd, s.grid.Dataset); err != nil {
		return err
	}
	var made struct {
		Memory       *plan.Budget `json:"memory"`
		EpochSeconds float64      `json:"epoch_seconds"`
	}
	if err := json.Unmarshal(text.Bytes(), &made); err != nil {
		return err
	}
	p.Memory, p.EpochSeconds = made.Memory, made.EpochSeconds
	return nil
}

// columns returns the names of the options that vary.
func (s *sweeping) columns() (names []string) {
	for _, a := range s.grid.Axes {
		names = append(names, a.Flag)
	}
	return names
}

// command returns the command that repeats the runs of a setting.
func (s *sweeping) command(one sweep.Setting) string {
	words := []string{"gnnstore", "train", shellWord(s.grid.Dataset)}
	for _, list := range [][]setting.Choice{s.grid.Fixed, one.Choices} {
		for _, c := range list {
			words = append(words, flagText(c.Flag, shellWord(c.Text)))
		}
	}
	if s.grid.Seeds > 1 {
		words = append(words, "--seeds", strconv.Itoa(s.grid.Seeds))
	}
	return strings.Join(words, " ")
}

func optionsOf(one sweep.Setting) map[string]string {
	options := map[string]string{}
	for _, c := range one.Choices {
		options[c.Key] = c.Text
	}
	return options
}

// settingText returns the choices of a setting as flags.
func settingText(one sweep.Setting) string {
	var all []string
	for _, c := range one.Choices {
		all = append(all, flagText(c.Flag, c.Text))
	}
	return strings.Join(all, " ")
}
