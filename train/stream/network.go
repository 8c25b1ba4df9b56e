package stream

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"

	"github.com/gnnstore/gnnstore/cachetier/mutable"
	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/run"
	"github.com/gnnstore/gnnstore/train/temporal"
)

// Network is the trained network of a run, to replay a stream with: to measure it, to embed nodes
// and to score pairs at any time. Each of its methods computes state from the first event on,
// within the memory budget of a training run. One goroutine at a time.
//
// A batch sees the state that the batches before it left. Batches are as in evaluation: each part
// of the split is cut into batches from its first event on. Neighbours are strictly before the time
// asked for.
type Network struct {
	run.Used
	c    *core
	eval *evaluation
	all  int64 // events that the current replay goes through
}

// OpenNetwork loads the weights of the run that run.Look found. ds is the dataset that the run
// trained on, or another whose stream has the same name, scale of times and columns of features; it
// may have more events and other nodes. The run may go on meanwhile.
func OpenNetwork(ctx context.Context, ds *store.Dataset, dir *run.Dir, u run.Use, h run.Hooks) (_ *Network, err error) {
	defer kernels.RecoverMemory(&err)
	if err := u.Validate(); err != nil {
		return nil, err
	}
	in := internal{fixed: true, beside: u.Beside, lenient: u.EvalNegatives == ""}
	n := new(Network)
	if n.c, err = newCore(ctx, ds, optionsOf(u, dir.Record()), h, in); err != nil {
		return nil, err
	}
	n.eval = &evaluation{core: n.c}
	defer func() {
		if err != nil {
			n.Close()
		}
	}()
	n.c.Dir = dir
	if ds.Manifest().Seal != dir.Record().Seal {
		reads := func(t *store.Table) bool { return t.Stream == n.c.Stream || t.NodeType != "" }
		if err := dir.CheckColumns(ds, reads, n.c.Note); err != nil {
			return nil, fmt.Errorf("run %s: %w", dir.Path(), err)
		}
	}
	if err := n.load(u); err != nil {
		return nil, dir.About(err)
	}
	if s := n.c.tables.state; s != nil {
		s.In(mutable.Place{Dir: u.Scratch, Run: "replay of " + n.c.Result.Seal})
		if err := s.Begin(ctx); err != nil {
			return nil, err
		}
	}
	return n, nil
}

// optionsOf returns the options of a network: the ones that u gives it, without what only training
// needs.
func optionsOf(u run.Use, record *run.Record) run.Options {
	o := u.Of(record)
	o.Eval = ""
	o.Staleness, o.Mitigate, o.MitigateAudit, o.Inflight, o.WarmEvents, o.EpochSteps, o.KeepCheckpoints = 1, 0, 0, 0, 0, 0, 1
	return o
}

// load loads the weights that u chooses.
func (n *Network) load(u run.Use) error {
	c := n.c
	name, s, err := c.Dir.LoadLatest(u.OlderCheckpoint, c.Note)
	if err != nil {
		return err
	}
	at := progress{Progress: new(run.Progress)}
	if err := json.Unmarshal([]byte(s.Meta[progressKey]), &at); err != nil {
		return fmt.Errorf("%s: %s: %w", name, progressKey, err)
	}
	if of := at.SoFar.Stream; of != nil && of.TimeScale != c.events.Stream.TimeScale {
		return fmt.Errorf("it learnt from times that were multiplied with %v, and %s has them multiplied with %v; ingest it with {time_scale} %v", of.TimeScale,
			c.set.Path(), c.events.Stream.TimeScale, of.TimeScale)
	}
	if of := at.SoFar.Stream; of != nil && of.NodeColumns != c.Result.Stream.NodeColumns {
		return fmt.Errorf("it learnt from %d columns of features of nodes, and %s has %d", of.NodeColumns, c.set.Path(), c.Result.Stream.NodeColumns)
	}
	if err := n.sameIDs(); err != nil {
		return err
	}
	if n.Used, err = u.Pick(at.Progress); err != nil {
		return err
	}
	prefix := ""
	if n.Checkpoint == run.BestWeights {
		prefix = run.BestPrefix
	}
	weights, err := c.step.Model.Find(s.Tensors, prefix)
	if err != nil {
		if c.Result.Seal != c.Dir.Record().Seal {
			err = fmt.Errorf("%w; the events of %s need as many features as those that it learnt from", err, c.set.Path())
		}
		return fmt.Errorf("%s: %w", name, err)
	}
	c.step.Model.Upload(weights)
	return nil
}

// sameIDs refuses identity columns on another dataset than the run trained on, if its nodes have
// names. Their rows in the source may differ there, and so would each node's columns.
func (n *Network) sameIDs() error {
	if n.c.Identity == 0 || n.c.Result.Seal == n.c.Dir.Record().Seal || !n.c.ids.named() {
		return nil
	}
	return errors.New("it tells nodes apart by their rows in the source, since they have names, and these rows may be others in " + n.c.set.Path() +
		"; take the dataset that it learnt from, or train with {identity} 0")
}

// Close gives up memory and files.
func (n *Network) Close() error {
	n.c.Close()
	return nil
}

// Follow calls show after each batch with the number of events done, and of all events of the
// replay.
func (n *Network) Follow(show func(done, all int64)) {
	n.eval.follow = func(done int64) { show(done, n.all) }
}

// Columns returns the number of columns of an embedding.
func (n *Network) Columns() int { return n.c.Hidden }

// Cost returns the bytes of state and features read from disk so far, and the peaks of memory.
func (n *Network) Cost() run.Cost { return n.c.Peak.Cost(n.eval.read.BytesRead) }

// Measure returns the figures of the weights on the validation and the test part, and of scores
// without a network on the test part.
func (n *Network) Measure(ctx context.Context) (s *run.StreamOf, err error) {
	defer kernels.RecoverMemory(&err)
	s, n.all = n.c.Result.Stream, n.c.events.Len()
	if s.Replay, err = n.eval.replayed(ctx); err == nil {
		s.Heuristics, err = n.eval.baselines(ctx)
	}
	if err != nil {
		return nil, err
	}
	s.Compare(n.c.Metric)
	return s, n.c.set.Unchanged()
}

// Embeddings calls do with the embeddings of the nodes at places, by all events before a time. No
// place may be there twice. do gets Columns numbers a node, some nodes at a time, in their order;
// both slices are lent for the length of the call. The last batch of state ends with the last event
// before the time.
func (n *Network) Embeddings(ctx context.Context, at float64, places []uint32, do func(places []uint32, rows []float32) error) error {
	if err := CheckTime(n.c.events, at); err != nil {
		return fmt.Errorf("time %v: %w", at, err)
	}
	var rows []float32
	next, to := 0, int64(0)
	if err := guarded(func() { to = n.before(at, 0) }); err != nil {
		return err
	}
	ask := func(lo, hi int) (asks []temporal.Ask) {
		for _, v := range places[lo:hi] {
			asks = append(asks, temporal.Ask{Src: v, Dst: v, Time: at})
		}
		return asks
	}
	return n.replay(ctx, n.stops(to, len(places), func(int) int64 { return to }), ask, func(in temporal.Input) error {
		z, err := n.c.step.Embed(in)
		if err != nil || len(in.Src) == 0 {
			return err
		}
		rows = rows[:0]
		for _, root := range in.Src {
			rows = append(rows, z[int(root)*n.Columns():][:n.Columns()]...)
		}
		some := places[next:][:len(in.Src)]
		next += len(some)
		return do(some, rows)
	})
}

// Scores returns the scores of pairs at any times, in the order of pairs. A score uses only events
// before the pair's time. So a pair that was an event in evaluation gets its score there, unless
// the event shares its time with an event of an earlier batch. It takes 40 bytes a pair beside
// pairs.
func (n *Network) Scores(ctx context.Context, pairs []temporal.Ask) ([]float32, error) {
	order := make([]uint32, len(pairs))
	for i := range order {
		order[i] = uint32(i)
		if err := CheckTime(n.c.events, pairs[i].Time); err != nil {
			return nil, fmt.Errorf("pair %d, time %v: %w", i, pairs[i].Time, err)
		}
	}
	slices.SortStableFunc(order, func(a, b uint32) int { return cmp.Compare(pairs[a].Time, pairs[b].Time) })
	at, scores, next := make([]int64, len(pairs)), make([]float32, len(pairs)), 0
	err := guarded(func() {
		last := int64(0)
		for i, k := range order {
			if i == 0 || pairs[k].Time != pairs[order[i-1]].Time {
				last = n.before(pairs[k].Time, last)
			}
			at[i] = last
		}
	})
	if err != nil {
		return nil, err
	}
	ask := func(lo, hi int) (asks []temporal.Ask) {
		for _, k := range order[lo:hi] {
			asks = append(asks, pairs[k])
		}
		return asks
	}
	all := n.stops(n.c.events.Len(), len(pairs), func(i int) int64 { return at[i] })
	err = n.replay(ctx, all, ask, func(in temporal.Input) error {
		out, err := n.c.step.Compute(in)
		for i, score := range out.Positives {
			scores[order[next+i]] = score
		}
		next += len(out.Positives)
		return err
	})
	return scores, err
}

// CheckTime returns an error if a stream cannot be asked about a time: it has no events, or the
// time is before its first event or not finite.
func CheckTime(e *store.Events, at float64) error {
	if e.Len() == 0 {
		return fmt.Errorf("stream %s has no events", e.Stream.Name)
	}
	var first float64
	if err := guarded(func() { first = e.Times(0, 1)[0] }); err != nil {
		return err
	}
	switch scaled := (at - first) * e.Stream.TimeScale; {
	case math.IsNaN(scaled) || math.IsInf(scaled, 0):
		return fmt.Errorf("it is not finite, or too far from %v, the time of the first event", first)
	case at < first:
		return fmt.Errorf("it is before the first event, which is at %v, and networks know nothing from before that; give a later time", first)
	}
	return nil
}

// before returns the number of events before a time. The caller knows that the first known
// events are among them.
func (n *Network) before(at float64, known int64) int64 {
	e := n.c.events
	return known + int64(sort.Search(int(e.Len()-known), func(i int) bool { return !(e.Times(known+int64(i), known+int64(i)+1)[0] < at) }))
}

// stop is a step of a replay in a part of the split. It computes the state of events from to to-1,
// or if there are none, the asks lo to hi-1.
type stop struct {
	from, to int64
	lo, hi   int
	phase    int
}

// stops lists the steps up to the last of count asks. Event at(i) is the first one that ask i does
// not see, and at does not decrease. The last batch ends with event to-1.
func (n *Network) stops(to int64, count int, at func(i int) int64) (all []stop) {
	c, next := n.c, 0
	most := max(1, 3*c.Batch/2) // asks of a step: they take no more memory than a batch of evaluation
	ask := func(phase int, from int64, seen func(at int64) bool) {
		if !c.remembers() {
			from = 0 // no event is looked at
		}
		for next < count && seen(at(next)) {
			lo := next
			for next < count && next-lo < most && seen(at(next)) {
				next++
			}
			all = append(all, stop{from, from, lo, next, phase})
		}
	}
	last := training
	for phase, p := range []part{training: {to: c.split.Train, batch: int64(c.Batch)}, validation: c.part(validation), test: c.part(test)} {
		if to >= p.from {
			last = phase
		}
		p.to = min(p.to, to)
		for i := 0; p.from < p.to && i < p.steps() && next < count; i++ {
			s := p.step(i)
			ask(phase, s.From, func(at int64) bool { return at < s.To })
			if next < count && c.remembers() {
				all = append(all, stop{from: s.From, to: s.To, phase: phase})
			}
		}
	}
	ask(last, to, func(int64) bool { return true })
	return all
}

// replay clears the state, goes through stops and calls use with the input of each.
func (n *Network) replay(ctx context.Context, all []stop, asks func(lo, hi int) []temporal.Ask, use func(in temporal.Input) error) (err error) {
	defer kernels.RecoverMemory(&err)
	c := n.c
	if err := c.tables.clear(ctx); err != nil {
		return err
	}
	if len(all) == 0 {
		return nil
	}
	phases := []temporal.Negatives{c.negatives(training, 0), c.negatives(validation, 0), c.negatives(test, 0)}
	of := func(i int) temporal.Step {
		p := &all[i]
		s := temporal.Step{From: p.from, To: p.to, StateOnly: p.lo == p.hi, Asks: asks(p.lo, p.hi)}
		s.Key = phases[p.phase].Key // of neighbours, as evaluation draws them
		return s
	}
	n.all = all[len(all)-1].to
	states := 0 // steps before the first that embeds something
	for states < len(all) && all[states].lo == all[states].hi {
		states++
	}
	rest := func(i int) temporal.Step { return of(states + i) }
	if states > 0 {
		err = n.eval.through(ctx, c.states, states, of, use)
	}
	if err == nil && states < len(all) {
		err = n.eval.through(ctx, c.replays, len(all)-states, rest, use)
	}
	if err != nil {
		return err
	}
	return c.set.Unchanged()
}
