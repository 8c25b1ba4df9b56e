package graph

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/dist"
	"github.com/gnnstore/gnnstore/train/infer"
	"github.com/gnnstore/gnnstore/train/pipeline"
	"github.com/gnnstore/gnnstore/train/plan"
	"github.com/gnnstore/gnnstore/train/run"
	"github.com/gnnstore/gnnstore/train/sample"
	"github.com/gnnstore/gnnstore/train/step"
	tasks "github.com/gnnstore/gnnstore/train/task"
	"github.com/gnnstore/gnnstore/train/tiers"
)

// sums adds up the gradients of the workers of a run.
type sums struct {
	group *dist.Group
	be    kernels.Backend
	host  []float32 // a copy of all gradients, one after the other
}

// reduce replaces gradients by the sums over all workers, and returns the sum of their tallies.
func (s *sums) reduce(ctx context.Context, at dist.At, own step.Tally, grads []kernels.Tensor) (*step.Tally, error) {
	if s.host == nil {
		n := 0
		for _, g := range grads {
			n += g.Len()
		}
		s.host = make([]float32, n)
	}
	s.each(grads, s.be.DownloadF32)
	text, err := binary.Append(nil, binary.LittleEndian, own)
	if err != nil {
		return nil, err
	}
	all, err := s.group.Sum(ctx, at, text, s.host)
	if err != nil {
		return nil, err
	}
	sum := new(step.Tally)
	for _, text := range all {
		var a step.Tally
		if _, err := binary.Decode(text, binary.LittleEndian, &a); err != nil {
			return nil, err
		}
		sum.Add(a)
	}
	s.each(grads, func(host []float32, g kernels.Tensor) { s.be.UploadF32(g, host) })
	return sum, nil
}

// each calls copy with each gradient and its place on the host.
func (s *sums) each(grads []kernels.Tensor, copy func(host []float32, g kernels.Tensor)) {
	rest := s.host
	for _, g := range grads {
		copy(rest[:g.Len()], g)
		rest = rest[g.Len():]
	}
}

// parts connects this worker with the owners of nodes. It returns nil if each worker reads for
// itself.
func (c *core) parts() *tiers.Parts {
	g := c.Hooks.Group
	if g.Size() == 1 || !c.ByOwners() {
		return nil
	}
	drawing, rows := g.Drawing(), g.Rows()
	var owners []store.Owners // by input
	for t := range len(c.data.Types) + len(c.data.EdgeTables) {
		owners = append(owners, c.data.Owners(t, g.Size()))
	}
	var place func(t int, v uint32) uint32
	if c.data.OwnPart() != nil {
		place = func(t int, v uint32) uint32 {
			if c.data.Input(t).Features == nil { // a table of learnt rows has places for all nodes
				return v
			}
			return owners[t].RowOf(v)
		}
	}
	p := &tiers.Parts{Cooperative: c.Parallel == run.Cooperative, Parts: sample.Parts{
		Rank: g.Rank(), Workers: g.Size(),
		Owner: func(t int, v uint32) int { return owners[t].Owner(v) }, Place: place,
		Exchange: func(ctx context.Context, send [][]byte) ([][]byte, error) {
			return drawing.Exchange(ctx, dist.At{}, send)
		},
	}}
	p.Rows = func(ctx context.Context, send [][]byte) ([][]byte, error) { return rows.Exchange(ctx, dist.At{}, send) }
	p.Agree = func(ctx context.Context, n int) (int, error) {
		send, own := make([][]byte, g.Size()), binary.LittleEndian.AppendUint32(nil, uint32(n))
		for q := range send {
			send[q] = own
		}
		came, err := drawing.Exchange(ctx, dist.At{}, send)
		for q, b := range came {
			if err == nil && len(b) != 4 {
				err = fmt.Errorf("%s sent %d bytes for the size of a group; 4 were expected", g.Name(q), len(b))
			} else if err == nil {
				n = min(n, int(binary.LittleEndian.Uint32(b)))
			}
		}
		return n, err
	}
	p.Left = func(stage pipeline.Stage, err error) {
		if errors.Is(err, context.Canceled) { // another stage failed, and the Group tells its error
			err = nil
		}
		if stage == pipeline.Draws {
			drawing.Leave(err)
		} else {
			rows.Leave(err)
		}
	}
	return p
}

// sumCounts returns a function that replaces counts by the sums over all workers. It returns nil
// unless workers compute together.
func (c *core) sumCounts(ctx context.Context, at dist.At) func(counts []int64) error {
	if !c.tiers.Cooperative() {
		return nil
	}
	return func(counts []int64) error {
		all, err := gatherOf(c.Hooks.Group, counts, func(own []byte) ([][]byte, error) {
			return c.Hooks.Group.Gather(ctx, at, own)
		})
		if err != nil {
			return err
		}
		clear(counts)
		for _, others := range all {
			for i, n := range others {
				counts[i] += n
			}
		}
		return nil
	}
}

// haloBytes returns the memory of the messages in the largest exchange of hidden rows for b: of
// those sent and those that come, once here and once in MPI.
func (c *core) haloBytes(b *sample.Batch) (most int64) {
	for l, h := range b.Halos() {
		rows := 0
		for t := range h.Own {
			for q := range h.Send[t] {
				rows += len(h.Send[t][q]) + len(h.Take[t][q])
			}
		}
		most = max(most, 2*4*int64(rows*c.model.Width(max(l-1, 0))))
	}
	return most
}

// deal returns a function that orders the seeds of a step by their owners, where parts own ranges.
// It returns nil where the rule deals out nodes: then shares are as if workers read for themselves.
func (c *core) deal() func(seeds []uint32) {
	workers, owner := c.Hooks.Group.Size(), c.internal.owner
	if part := c.data.OwnPart(); part != nil && part.Owner == store.ByRange {
		owner = c.data.Owners(c.data.Target, workers).Owner
	}
	if workers == 1 || owner == nil {
		return nil
	}
	return func(seeds []uint32) { dist.Deal(seeds, workers, owner) }
}

// checkPart refuses a dataset that is a part, unless worker N has part N, and all parts are of one
// whole.
func (c *core) checkPart(ctx context.Context) error {
	part, g := c.data.OwnPart(), c.Hooks.Group
	if part == nil {
		return nil
	}
	about := c.data.Set.About
	switch {
	case g.Size() != part.Parts || part.Index != g.Rank():
		return about(fmt.Errorf("it is part %d of %d, and worker %d of %d cannot train on it alone; give the directory of all parts, and {dist} local:%d",
			part.Index, part.Parts, g.Rank(), g.Size(), part.Parts))
	case c.History && c.HistoryAudit > 0:
		return about(fmt.Errorf("{history_audit} %d: an audit reads the lists of all nodes, and it is a part; "+
			"leave {history_audit} out", c.HistoryAudit))
	case !c.ByOwners() && c.internal.fixed == nil:
		return about(fmt.Errorf("{parallel} %s: each worker has only its own part; take {parallel} %s or %s",
			cmp.Or(c.Parallel, run.Independent), run.ByParts, run.Cooperative))
	}
	all, err := g.Gather(ctx, dist.At{}, []byte(part.Of))
	for p, of := range all {
		if err == nil && string(of) != part.Of {
			err = about(fmt.Errorf("it is a part of the dataset with seal %s, and %s has a part of %s; give all workers parts of one whole", part.Of, g.Name(p), of))
		}
	}
	return err
}

// checkWeighed refuses LABOR-* with --parallel cooperative if blocks are sampled for evaluation:
// owners draw these as with ByParts, and LABOR-* compares lists of several owners.
func (c *core) checkWeighed() error {
	if c.draws.Kind == sample.LaborStar && c.tiers.Cooperative() && c.eval.Sampled() {
		return fmt.Errorf("{parallel} %s: {sampler} %s compares lists, which have different owners where blocks are sampled for "+
			"evaluation; take {eval} full, with more {eval_bytes} if need be", c.Parallel, c.draws.Kind)
	}
	return nil
}

// owned reports whether each worker has the learnt rows of its own nodes alone.
func (c *core) owned() bool { return c.Hooks.Group.Size() > 1 && c.data.Learns() }

// ownedPart returns the part of the nodes whose rows this worker has, or nil if it has all.
func (c *core) ownedPart() *store.Part {
	if part := c.data.OwnPart(); part != nil || !c.owned() {
		return part
	}
	return &store.Part{Index: c.Hooks.Group.Rank(), Parts: c.Hooks.Group.Size(), Owner: store.ByRule}
}

// share returns a function that gives this worker's part of n seeds; nil where one worker trains.
func (c *core) share() func(n int) (lo, hi int) {
	p, g := c.internal.planned, c.Hooks.Group
	if p == nil && g.Size() == 1 {
		return nil
	}
	return func(n int) (lo, hi int) {
		switch {
		case c.tracing != nil:
			return dist.Share(n, *c.tracing, c.workerCount())
		case p != nil:
			return dist.Share(n, p.rank, p.workers)
		}
		return g.Share(n)
	}
}

// workerCount returns the number of workers of the run, or of a plan.
func (c *core) workerCount() int {
	if p := c.internal.planned; p != nil {
		return p.workers
	}
	return c.Hooks.Group.Size()
}

// gatherOpening returns the exchange of workers that open their parts; nil for a whole dataset.
func (c *core) gatherOpening(ctx context.Context, ds *store.Dataset) func(own []byte) ([][]byte, error) {
	if g := c.Hooks.Group; ds.Manifest().Part != nil && g.Size() > 1 {
		return func(own []byte) ([][]byte, error) { return c.gather(ctx, own) }
	}
	return nil
}

// edgeWorkers connects the task with the workers that own edges; nil where this worker has all of
// them.
func (c *core) edgeWorkers() *tasks.Workers {
	g := c.Hooks.Group
	if c.data.OwnPart() == nil || g.Size() == 1 {
		return nil
	}
	drawing := g.Drawing()
	return &tasks.Workers{
		Ahead: func(ctx context.Context, own []byte) ([][]byte, error) {
			return drawing.Exchange(ctx, dist.At{}, slices.Repeat([][]byte{own}, g.Size()))
		},
		Gather: c.workers().Gather,
	}
}

// gather returns the bytes that each worker gives while they open.
func (c *core) gather(ctx context.Context, own []byte) (all [][]byte, err error) {
	err = c.unlocked(func() error {
		all, err = c.Hooks.Group.Gather(ctx, dist.At{}, own)
		return err
	})
	return all, err
}

// gatherNumbers is gather for numbers.
func (c *core) gatherNumbers(ctx context.Context, own []float64) ([][]float64, error) {
	return gatherOf(c.Hooks.Group, own, func(text []byte) ([][]byte, error) { return c.gather(ctx, text) })
}

// gatherOf returns the numbers that each worker of g gives; all give equally many. gather exchanges
// their bytes.
func gatherOf[T int64 | float64](g *dist.Group, own []T, gather func(own []byte) ([][]byte, error)) ([][]T, error) {
	text, err := binary.Append(nil, binary.LittleEndian, own)
	if err != nil {
		return nil, err
	}
	all, err := gather(text)
	if err != nil {
		return nil, err
	}
	numbers := make([][]T, len(all))
	for p, got := range all {
		numbers[p] = make([]T, len(own))
		if len(got) != len(text) {
			return nil, fmt.Errorf("%s sends %d bytes of numbers; %d were expected", g.Name(p), len(got), len(text))
		}
		if _, err := binary.Decode(got, binary.LittleEndian, numbers[p]); err != nil {
			return nil, err
		}
	}
	return numbers, nil
}

// agree takes the smallest memory for evaluation that a worker has, so that all evaluate alike.
// opened is the error of opening this worker. If the memory of several workers is not enough, all
// fail with the error of the one that needs most.
func (c *core) agree(ctx context.Context, opened error) error {
	g, short := c.Hooks.Group, &plan.NotEnough{}
	if g.Size() == 1 || opened != nil && !errors.As(opened, &short) {
		return opened
	}
	type memory struct{ Evaluation, Least int64 }
	own, err := binary.Append(nil, binary.LittleEndian, memory{c.EvalBytes, short.Least.Total})
	if err != nil {
		return err
	}
	all, err := g.Gather(ctx, dist.At{}, own)
	if err != nil {
		return err
	}
	most, least := 0, int64(0)
	for p, text := range all {
		var m memory
		if n, err := binary.Decode(text, binary.LittleEndian, &m); err != nil || n != len(text) {
			return fmt.Errorf("%s sends %d bytes for its memory, and not 16", g.Name(p), len(text))
		}
		c.EvalBytes = min(c.EvalBytes, m.Evaluation)
		if m.Least > least {
			most, least = p, m.Least
		}
	}
	switch {
	case least > 0 && most == g.Rank():
		return opened
	case least > 0: // the next exchange fails with the error of that worker
		_, err := g.Gather(ctx, dist.At{}, nil)
		return err
	}
	c.eval.Bytes = min(c.eval.Bytes, c.EvalBytes)
	return nil
}

// workers returns what evaluation needs to be shared among the workers of a run, or nil.
func (c *core) workers() *infer.Workers {
	g := c.Hooks.Group
	if g.Size() == 1 {
		return nil
	}
	at := func() dist.At { return dist.At{Epoch: len(c.Result.Epochs) + 1, Step: c.Partial.Steps} }
	return &infer.Workers{
		Rank: g.Rank(), Of: g.Size(),
		Gather:   func(ctx context.Context, own []byte) ([][]byte, error) { return g.Gather(ctx, at(), own) },
		Exchange: func(ctx context.Context, send [][]byte) ([][]byte, error) { return g.Exchange(ctx, at(), send) },
	}
}
