// Package resume proves what train's --resume promises: a run that is killed with SIGKILL, wherever
// it is, goes on and ends as if nothing had happened. Start at [Prover.Kill]. The same runs prove
// what a full disk leaves, in [Prover.FullDisk], and that two runs keep out of each other's way, in
// [Prover.Twice].
//
// [Ingest.KillInPasses] and [Ingest.KillAtLines] prove the same of what makes datasets. All of
// them, and the proofs of tools/ci, kill by [Kill].
//
// A run is killed at an update or in the middle of a write, and both are recognised by what the
// process did to its files: the update's line in metrics.jsonl, the change to a temporary file. No
// proof waits for a time to pass. A Prover's methods run one at a time.
package resume

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/gnnstore/gnnstore/tools/cli"
)

// Prover trains on one dataset and kills what it trains.
type Prover struct {
	Binary  cli.Binary
	Dataset string
	Batch   int       // seeds a step: an epoch should have some tens of steps
	Dir     string    // holds the runs; a run that did as it should is removed, another stays
	Seed    uint64    // of where to kill and of what to change at a resumption
	Out     io.Writer // a line a kill

	references map[string]*outcome
	tally      tally
	pending    string // the line of the last kill, until it is known how its run went on
}

// A Config is a network to train, and how its run keeps checkpoints.
type Config struct {
	Model       string
	Flags       []string // of train, beside
	Every, Keep int      // --checkpoint-every, --keep-checkpoints
	Full        string   // the directory, below the run's, that a full disk has no room for; default checkpoints
}

// Configs differ in what a checkpoint has to carry: epochs that are not evaluated, the weights of
// the best one, learnt rows, one file to keep, a spill, dropout in rows and in attention, batches
// that share their draws across it, hidden rows of earlier steps.
var Configs = []Config{
	{"sage", strings.Fields("--epochs 3 --fanout 5,5 --eval-every 2 --host-memory 16MiB --spill 64MiB"), 5, 2, ""},
	{"rsage", strings.Fields("--epochs 2 --fanout 5,5 --input node=embed:16 --host-memory 2MiB --clip-norm 1"), 5, 1, ""},
	{"gcn", strings.Fields("--epochs 2 --fanout 5,5 --eval-test epoch --weight-decay 1e-4 " +
		"--sampler labor0 --kappa 7 --dependent smoothed --history --history-start 4 --t-stale 6 --history-memory 4MiB"), 5, 1, ""},
	{"gat", strings.Fields("--epochs 2 --fanout 3,3 --heads 2 --attn-dropout 0.3 --sampler rw --kappa 7"), 5, 3, ""},
}

// StreamConfigs are of networks for streams: with state that later steps must not see yet, with
// mailboxes, and with epochs that begin without loss.
var StreamConfigs = []Config{
	{"tgn", strings.Fields("--epochs 2 --fanout 5 --staleness 3 --host-memory 32KiB"), 5, 2, "state"},
	{"apan", strings.Fields("--epochs 2 --fanout 3 --staleness 2 --publish late --mails 4 --host-memory 64KiB"), 5, 1, ""},
	{"jodie", strings.Fields("--epochs 3 --eval-every 2 --warm-events 2000 --clip-norm 1"), 5, 3, ""},
}

// variations has the flags, and their values, that may change when a run goes on.
var variations = map[string][]string{
	"--workers": {"1", "8"}, "--host-memory": {"0", "64KiB"}, "--device-memory": {"64KiB"}, "--policy": {"none"},
	"--disk-engine": {"pread"}, "--batch-memory": {"0"}, "--checkpoint-every": {"3"}, "--spill": {"0", "32MiB"},
}

// args starts a run of c in dir.
func (p *Prover) args(c Config, dir string) []string {
	args := []string{"train", p.Dataset, "--run", dir, "--json", "--model", c.Model, "--hidden", "32", "--seed", "1",
		"--batch", strconv.Itoa(p.Batch), "--patience", "0", "--log-every", "1",
		"--checkpoint-every", strconv.Itoa(c.Every), "--keep-checkpoints", strconv.Itoa(c.Keep)}
	return append(args, c.Flags...)
}

// again goes on with the run of c in dir from what is left, under options drawn anew. They hold for
// this time only.
func (p *Prover) again(random *rand.Rand, c Config, dir string, l *left) (args, changed []string) {
	flags := slices.Sorted(maps.Keys(variations))
	for _, i := range random.Perm(len(flags))[:random.IntN(3)] {
		values := variations[flags[i]]
		changed = append(changed, flags[i], values[random.IntN(len(values))])
	}
	args = append(p.args(c, dir), "--resume")
	if l.begun && random.IntN(2) == 0 { // the record has the rest
		args = []string{"train", "--run", dir, "--resume", "--json", "--checkpoint-every", strconv.Itoa(c.Every)} // the record has the interval of the last time
	}
	return append(args, changed...), changed
}

// start runs gnnstore, and hands its process to reached, if not nil, once the run in dir is at the
// point. It returns what [Kill] does.
func (p *Prover) start(ctx context.Context, args []string, dir string, at point, reached func(*os.Process) error) (
	printed []byte, killed bool, err error) {
	cmd := p.Binary.Command(ctx, args...)
	if reached == nil {
		return Kill(ctx, cmd, never)
	}
	come := make(chan struct{})
	stop, err := when(dir, at, func() error { close(come); return nil })
	if err != nil {
		return nil, false, err
	}
	printed, killed, err = disturb(ctx, cmd, atEvent(come), reached)
	return printed, killed, errors.Join(err, stop())
}

// when calls reached as soon as the run in dir, which may begin later, is at the point. The
// returned function ends the wait and returns its error; to end before the point is none.
func when(dir string, at point, reached func() error) (stop func() error, err error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	w, err := watch(dir)
	if err != nil {
		return nil, err
	}
	done := make(chan error, 1)
	go func() {
		err := w.await(dir, at)
		switch {
		case err == nil:
			err = reached()
		case errors.Is(err, os.ErrClosed):
			err = nil
		}
		done <- err
	}()
	return func() error { return errors.Join(w.close(), <-done) }, nil
}

// reference returns the outcome of a run of c that nothing disturbs.
func (p *Prover) reference(ctx context.Context, c Config) (*outcome, error) {
	if o := p.references[c.Model]; o != nil {
		return o, nil
	}
	dir, err := os.MkdirTemp(p.Dir, c.Model+"-whole-")
	if err != nil {
		return nil, err
	}
	printed, _, err := p.start(ctx, p.args(c, dir), dir, point{}, nil)
	if err != nil {
		return nil, err
	}
	o, err := readOutcome(printed, dir)
	if err != nil {
		return nil, err
	}
	if len(o.Steps) != o.total() || o.total() < 3*c.Every {
		return nil, fmt.Errorf("a run of %s has %d steps, %d of them on record: too few to kill at; choose a smaller batch",
			c.Model, o.total(), len(o.Steps))
	}
	if p.references == nil {
		p.references = map[string]*outcome{}
	}
	p.references[c.Model] = o
	fmt.Fprintf(p.Out, "%s: %d steps in %d epochs, params_xxh3 %s\n", c.Model, o.total(), len(o.Epochs), o.ParamsXXH3)
	return o, os.RemoveAll(dir)
}

// tally counts kills by what they left.
type tally struct {
	kills, resumed, runs, missed      int
	inCheckpoint, inOther, noneBefore int
	owed                              bool // a kill was to be in the write of a checkpoint and was not
}

// Kill kills runs of configs in turn, so often in all, some of them several times, and lets each
// end: it must end as the reference does. The first difference is the error, which says where to
// look.
func (p *Prover) Kill(ctx context.Context, configs []Config, kills int) error {
	p.tally = tally{}
	for t := &p.tally; t.kills < kills; t.runs++ {
		if t.missed > kills {
			return fmt.Errorf("%d runs ended before they could be killed", t.missed)
		}
		c := configs[t.runs%len(configs)]
		want, err := p.reference(ctx, c)
		if err != nil {
			return err
		}
		dir, err := os.MkdirTemp(p.Dir, c.Model+"-")
		if err != nil {
			return err
		}
		if err := p.killAndResume(ctx, c, want, dir, kills); err != nil {
			if p.pending != "" {
				fmt.Fprintln(p.Out, p.pending)
			}
			return fmt.Errorf("seed %d, kill %d, %s in %s: %w", p.Seed, t.kills, c.Model, dir, err)
		}
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	}
	t := p.tally
	if t.inCheckpoint == 0 {
		return fmt.Errorf("none of %d kills came inside the write of a checkpoint: choose a directory on a disk", kills)
	}
	var hashes []string
	for _, c := range configs {
		if o := p.references[c.Model]; o != nil {
			hashes = append(hashes, c.Model+" "+o.ParamsXXH3)
		}
	}
	fmt.Fprintf(p.Out, "%d kills (%d inside a checkpoint write, %d inside another, %d before the first checkpoint) of %d runs, "+
		"%d resumed: params_xxh3 %s every time\n",
		t.kills, t.inCheckpoint, t.inOther, t.noneBefore, t.runs, t.resumed, strings.Join(hashes, ", "))
	return nil
}

// killAndResume kills a run of c, and one time in three what goes on with it, until it ends by
// itself.
func (p *Prover) killAndResume(ctx context.Context, c Config, want *outcome, dir string, kills int) error {
	t := &p.tally
	before := &left{}
	for first := true; ; first = false {
		number := t.kills + 1
		random := rand.New(rand.NewPCG(p.Seed, uint64(number)<<32|uint64(t.missed))) // a kill that missed is drawn again
		args, changed := p.args(c, dir), []string(nil)
		if !first {
			args, changed = p.again(random, c, dir, before)
		}
		var kill func(*os.Process) error
		var at point
		if first || number <= kills && random.IntN(3) == 0 {
			at, kill = draw(random, number, t.owed, before.begun, before.from(), want.total(), c.Every), (*os.Process).Kill
		}
		printed, killed, err := p.start(ctx, args, dir, at, kill)
		if err != nil {
			return err
		}
		after, err := look(dir)
		if err != nil {
			return err
		}
		if !first {
			said, err := before.wentOn(after, killed)
			if err != nil {
				return err
			}
			t.resumed++
			if len(changed) > 0 {
				said += " with " + strings.Join(changed, " ")
			}
			fmt.Fprintln(p.Out, p.pending+said)
			p.pending = ""
		}
		if !killed {
			if kill != nil {
				t.missed++
			}
			return p.ended(ctx, want, printed, dir, before.checkpointsAfter(changed, c, want), after)
		}
		t.count(after, at)
		p.pending = fmt.Sprintf("kill %*d  %-4s %v: %v; ", len(strconv.Itoa(kills)), number, c.Model, at, after)
		if err := p.readable(ctx, dir, after); err != nil {
			return err
		}
		before = after
	}
}

// count adds a kill.
func (t *tally) count(l *left, at point) {
	t.kills++
	t.owed = at.write == checkpointWrite && !l.inCheckpoint()
	switch {
	case l.inCheckpoint():
		t.inCheckpoint++
	case len(l.half) > 0:
		t.inOther++
	case len(l.checkpoints) == 0:
		t.noneBefore++
	}
}

// readable wants stats to show the killed run in dir as it stands, or to say in a line that there
// is nothing to show.
func (p *Prover) readable(ctx context.Context, dir string, l *left) error {
	if !l.lines && !l.finished {
		_, err := cli.Refused(p.Binary.Command(ctx, "stats", dir))
		return err
	}
	var got struct {
		Status string `json:"status"`
	}
	if err := p.Binary.JSON(ctx, &got, "stats", dir); err != nil {
		return err
	}
	if want := map[bool]string{false: "died", true: "done"}[l.finished]; got.Status != want {
		return fmt.Errorf("stats of a killed run has status %q, want %q", got.Status, want)
	}
	return nil
}

// wentOn tells how a run went on from l, by what it left later.
func (l *left) wentOn(later *left, killed bool) (string, error) {
	fresh := len(later.resumed) - len(l.resumed)
	switch {
	case fresh == 0 && killed:
		return "killed again before that was on record", nil
	case fresh == 0 && l.finished:
		return "had finished", nil
	case fresh == 0 && !l.begun:
		return "began anew", nil
	case fresh != 1:
		return "", fmt.Errorf("%d resumptions are on record after %d, want one more", len(later.resumed), len(l.resumed))
	}
	from := later.resumed[len(l.resumed)]
	if from != l.from() {
		return "", fmt.Errorf("resumed after step %d, and the newest checkpoint is of step %d", from, l.from())
	}
	return fmt.Sprintf("resumed after step %d", from), nil
}

// checkpointsAfter lists the checkpoints that a run of c keeps which goes on from l, its options
// changed, to its end.
func (l *left) checkpointsAfter(changed []string, c Config, want *outcome) []int {
	every := c.Every
	if i := slices.Index(changed, "--checkpoint-every"); i >= 0 {
		every, _ = strconv.Atoi(changed[i+1]) // ours
	}
	all := slices.Clone(l.checkpoints)
	at := 0
	for _, e := range want.Epochs {
		for range e.Steps {
			if at++; at > l.from() && at%every == 0 {
				all = append(all, at)
			}
		}
		if at > l.from() && at%every != 0 { // the end of an epoch
			all = append(all, at)
		}
	}
	return all[max(0, len(all)-c.Keep):]
}

// ended compares a run that ended by itself with the reference, and looks at what it left.
func (p *Prover) ended(ctx context.Context, want *outcome, printed []byte, dir string, checkpoints []int, l *left) error {
	got, err := readOutcome(printed, dir)
	if err != nil {
		return err
	}
	if err := got.differs(want); err != nil {
		return err
	}
	if len(l.half) > 0 {
		return fmt.Errorf("%s is left", filepath.Join(dir, l.half[0]))
	}
	if err := differ("checkpoints", l.checkpoints, checkpoints); err != nil {
		return err
	}
	var stats outcome
	if err := p.Binary.JSON(ctx, &stats, "stats", dir); err != nil {
		return err
	}
	stats.Files, stats.Steps = got.Files, got.Steps
	if err := stats.differs(want); err != nil {
		return fmt.Errorf("stats: %w", err)
	}
	return nil
}
