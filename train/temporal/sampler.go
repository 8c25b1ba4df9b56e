package temporal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/sample"
)

// SamplerOptions configures a Sampler. The zero value works, and draws no neighbours.
type SamplerOptions struct {
	// Fanout is the largest number of neighbours of a root. Default 0: none, so no lists are read
	// and there are no cursors.
	Fanout int
	// Uniform draws from all candidates, with replacement, where there are more than Fanout.
	// Default: the newest are taken.
	Uniform bool
	// Deliver sends mail to neighbours, as APAN does, and gives them no rows: see Batch.Mails.
	// Negatives have no neighbours then.
	Deliver bool
	// Blend blends memories that are out of date with the memories of similar nodes: see
	// Batch.Blended. Default false. With RandomPartners it blends with nodes drawn by that key
	// instead: see Blends.Random.
	Blend          bool
	RandomPartners uint64
	// Pairs fills in Batch.Pairs, the features of scored pairs: see OpenPairs.
	Pairs   bool
	Workers int          // goroutines that make batches; default 1
	Disk    disk.Options // how lists are read
}

// Validate reports every option that cannot be followed.
func (o SamplerOptions) Validate() error {
	var errs sample.Problems
	errs.If(o.Fanout < 0, "{fanout} %d: at least 0", o.Fanout)
	errs.If(o.Workers < 0, "{workers} %d: at least 1, or 0 for the default", o.Workers)
	return errors.Join(append(errs, o.Disk.Validate())...)
}

// Step describes one batch to draw.
type Step struct {
	From, To int64 // events From to To-1
	// StateOnly makes the batch change state and embed nothing. Its rows are the rows that Writes
	// and Mails name, without neighbours and negatives.
	StateOnly bool
	// Seen is the number of events that the step's state has seen. It decides which memories are
	// out of date: see Blends. 0: none is blended.
	Seen int64
	Negatives
	// Asks, of a step without events, are pairs to embed and score like an event's ends, in the
	// order of their times. Times do not decrease across steps either. Events that are drawn behind
	// Asks are no earlier, except in StateOnly steps.
	Asks []Ask
}

// Ask is a pair of nodes at a time. To ask for one node is to name it twice: it is one root.
type Ask struct {
	Src, Dst uint32  // places
	Time     float64 // as the stream has it, not before its first event
}

// askers returns the number of requests for neighbours in a step, each asker counted as often as it
// asks. Roots ask, or the ends of events that deliver mail.
func (o *SamplerOptions) askers(p *Step) int {
	switch n := int(p.To - p.From); {
	case o.Deliver:
		return 2 * n
	case p.StateOnly:
		return 0
	default:
		return n*(2+p.Each) + 2*len(p.Asks)
	}
}

// Negatives are destinations to tell from an event's own: drawn uniformly, with replacement,
// whether the event has them or not.
type Negatives struct {
	Population []uint32 // places: see [Destinations] and [AllNodes]
	Each       int      // of an event
	// Key is made of the seed, the part of the stream and the epoch; of evaluation it is the same
	// in all epochs. Uniform neighbours are drawn by it as well.
	Key uint64
}

// Of is negative j of an event: a function of Key, the event's number in the stream and j, so that
// batches of any size have the same.
func (n *Negatives) Of(event int64, j int) uint32 {
	return n.Population[below(sample.Hash(n.Key, uint64(event), uint64(j)), len(n.Population))]
}

// below is a number below n, of a hash.
func below(hash uint64, n int) int {
	hi, _ := bits.Mul64(hash, uint64(n)) // Lemire's range reduction; its bias is n/2⁶⁴
	return int(hi)
}

// Sampler draws batches from a stream, in the order of its events. It is used by one goroutine at a
// time, and has workers of its own at work inside Draw.
type Sampler struct {
	options  SamplerOptions
	events   *store.Events
	firstDst uint32  // the place of destination 0
	first    float64 // the time of event 0
	next     int64   // the event that Draw goes on with, -1 after an error
	cursors
	lists
	makers  []maker
	blender blender
	past    pairPast
	similar *Similar // of Blend
	stats   Stats
}

// Stats counts what a Sampler has drawn. Its JSON keys are stable. Seconds apart, all of it depends
// on the options, the steps, which of them were drawn together, and the engine.
type Stats struct {
	Events    int64 `json:"events"`
	Roots     int64 `json:"roots"`             // of batches: each once in a batch
	Neighbors int64 `json:"neighbors"`         // of these
	Blended   int64 `json:"blended,omitempty"` // of these roots
	Mails     int64 `json:"mails,omitempty"`   // of Deliver: to ends of events, and to their neighbours
	// Near is the reading of lists. Its rows are pieces of lists: one a root, or of Uniform one a
	// neighbour; repeated is one that overlaps with another of the same Draw.
	Near disk.Account `json:"near"`
}

// NewSampler draws from e, from its first event on. e stays the caller's, and its dataset must stay
// open until Close. ctx is for NewSampler alone.
func NewSampler(ctx context.Context, e *store.Events, o SamplerOptions) (_ *Sampler, err error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("temporal: %w", err)
	}
	if err := numbered(e); err != nil {
		return nil, err
	}
	s := &Sampler{options: o, events: e, firstDst: uint32(e.Place(0)), makers: make([]maker, max(1, o.Workers))}
	for i := range s.makers {
		s.makers[i].s = s
	}
	defer func() {
		if err != nil {
			s.Close()
		}
	}()
	if err := store.Guard(s.begin); err != nil {
		return nil, fmt.Errorf("temporal: %w", err)
	}
	if o.Fanout > 0 {
		if s.memory, err = kernels.NewHostBuf(int(4 * e.Places())); err != nil {
			return nil, fmt.Errorf("temporal: cursors of %d nodes: %w", e.Places(), err)
		}
		s.counts = s.memory.Uint32s()
		if s.reader, err = disk.Open(ctx, []store.SectionFile{e.NearFile()}, o.Disk.For(e.NearFile().Size)); err != nil {
			return nil, fmt.Errorf("temporal: %w", err)
		}
	}
	if o.Blend {
		if s.blender.memory, err = kernels.NewHostBuf(int(8 * e.Places())); err != nil {
			return nil, fmt.Errorf("temporal: times of %d nodes: %w", e.Places(), err)
		}
		s.blender.last = s.blender.memory.Float64s()
		s.blender.forget()
		s.blender.found.Random, s.blender.found.FirstDst = o.RandomPartners, s.firstDst
		if s.similar, err = NewSimilar(e); err != nil {
			return nil, err
		}
	}
	return s, s.Seek(ctx, 0)
}

// numbered refuses a stream whose places 32 bits do not number.
func numbered(e *store.Events) error {
	if e.Places() > math.MaxUint32 {
		return fmt.Errorf("temporal: stream %s has %d nodes at its ends; at most %d can be numbered", e.Stream.Name, e.Places(), uint32(math.MaxUint32))
	}
	return nil
}

// begin looks at the times of the first event and the last.
func (s *Sampler) begin() error {
	n := s.events.Len()
	if n == 0 {
		return nil
	}
	s.first = s.events.Times(0, 1)[0]
	last := s.events.Times(n-1, n)[0]
	if last-last != 0 {
		return s.events.Corrupt(&s.events.Stream.Times, 8*(n-1), "event %d has the time %v; times are finite", n-1, last)
	}
	if span := s.scaled(last); span-span != 0 {
		return fmt.Errorf("stream %s: times from %v to %v, times %v, are too large for float64; ingest smaller ones",
			s.events.Stream.Name, s.first, last, s.events.Stream.TimeScale)
	}
	return nil
}

// scaled is a time as batches have it.
func (s *Sampler) scaled(t float64) float64 { return (t - s.first) * s.events.Stream.TimeScale }

// Close gives up the memory, and the reader. A second Close does nothing.
func (s *Sampler) Close() {
	if s.memory != nil {
		s.memory.Close()
		s.counts = nil
	}
	if s.blender.memory != nil {
		s.blender.memory.Close()
		s.blender.last = nil
	}
	s.past.close()
	if s.similar != nil {
		s.similar.Close()
	}
	if s.reader != nil {
		s.reader.Close()
	}
}

// Seek has Draw go on with an event, from 0 to as many as there are. Cursors are made anew by a
// scan of the events before it, or, where they are before it, of those in between.
func (s *Sampler) Seek(ctx context.Context, event int64) error {
	if event < 0 || event > s.events.Len() {
		panic(fmt.Sprintf("temporal: Seek(%d), and there are %d events", event, s.events.Len()))
	}
	s.next = -1
	if s.counts != nil {
		if err := store.Guard(func() error { return s.seek(ctx, s.events, event) }); err != nil {
			return fmt.Errorf("temporal: %w", err)
		}
	}
	s.next = event
	return nil
}

// Draw fills into[i] with what steps[i] asks for. The first step begins where the last Draw or Seek
// ended, and each other one where the one before it ended. The lists that all of them need are read
// together, each byte once: the more steps, the fewer reads. A batch is the same, bit for bit,
// whatever else is drawn with it, and whoever makes it.
//
// The error is a *store.SectionError, one of reading, or ctx's. Batches are undefined then, and
// Seek has to come before the next Draw.
func (s *Sampler) Draw(ctx context.Context, steps []Step, into []*Batch) (err error) {
	s.check(steps, into)
	if len(steps) == 0 {
		return nil
	}
	s.next = -1
	if s.options.Fanout > 0 {
		if err := store.Guard(func() error { return s.walk(ctx, steps) }); err != nil {
			return fmt.Errorf("temporal: %w", err)
		}
		traffic, err := s.lists.read(ctx)
		if err != nil {
			return fmt.Errorf("temporal: lists: %w", err)
		}
		s.stats.Near.Count(int64(len(s.wants)), int64(s.repeated), s.wanted*store.HalfEdgeBytes, traffic)
	}
	if err := s.make(ctx, steps, into); err != nil {
		return fmt.Errorf("temporal: %w", err)
	}
	if s.options.Blend {
		if err := store.Guard(func() error { return s.blend(ctx, steps, into) }); err != nil {
			return fmt.Errorf("temporal: %w", err)
		}
	}
	if s.options.Pairs {
		if err := store.Guard(func() error { return s.know(ctx, steps, into) }); err != nil {
			return fmt.Errorf("temporal: %w", err)
		}
	}
	for _, b := range into {
		s.stats.Blended += int64(len(b.Blended))
		s.stats.Events += b.To - b.From
		s.stats.Roots += int64(len(b.Roots))
		s.stats.Neighbors += int64(len(b.NearRow))
		s.stats.Mails += int64(len(b.Mails))
	}
	s.next = steps[len(steps)-1].To
	return nil
}

// check panics where steps are a bug.
func (s *Sampler) check(steps []Step, into []*Batch) {
	if len(steps) != len(into) {
		panic(fmt.Sprintf("temporal: Draw: %d steps, and %d batches", len(steps), len(into)))
	}
	next := s.next
	for i := range steps {
		p := &steps[i]
		switch {
		case p.From != next || p.To < p.From || p.To > s.events.Len():
			panic(fmt.Sprintf("temporal: Draw: events %d to %d of %d, and %d is next", p.From, p.To, s.events.Len(), next))
		case p.Seen < 0 || p.Seen > p.From:
			panic(fmt.Sprintf("temporal: Draw: events from %d on see the state of %d", p.From, p.Seen))
		case p.Each < 0 || p.Each > 0 && len(p.Population) == 0:
			panic(fmt.Sprintf("temporal: Draw: %d negatives each of a population of %d", p.Each, len(p.Population)))
		case len(p.Asks) > 0 && (p.From < p.To || p.StateOnly):
			panic(fmt.Sprintf("temporal: Draw: %d asks beside events %d to %d", len(p.Asks), p.From, p.To))
		case uint64(p.To-p.From)*(2+uint64(p.Each)) > math.MaxUint32/(1+uint64(s.options.Fanout)):
			panic(fmt.Sprintf("temporal: Draw: %d events with %d negatives each have more than 4,294,967,295 rows; use smaller batches", p.To-p.From, p.Each))
		}
		next = p.To
	}
}

// make has workers make the batches.
func (s *Sampler) make(ctx context.Context, steps []Step, into []*Batch) error {
	s.starts = s.starts[:0]
	askers := 0
	for i := range steps {
		s.starts = append(s.starts, askers)
		askers += s.options.askers(&steps[i])
	}
	var taken atomic.Int64
	work := func(m *maker) error {
		return store.Guard(func() error {
			for i := int(taken.Add(1)) - 1; i < len(steps); i = int(taken.Add(1)) - 1 {
				if err := ctx.Err(); err != nil {
					return err
				}
				m.make(into[i], &steps[i], s.starts[i])
			}
			return nil
		})
	}
	var g errgroup.Group
	for i := range s.makers[1:min(len(s.makers), len(steps))] {
		g.Go(func() error { return work(&s.makers[1+i]) })
	}
	err := work(&s.makers[0])
	return cmp.Or(err, g.Wait())
}

// Stats counts what was drawn so far. Do not call it during Draw.
func (s *Sampler) Stats() Stats { return s.stats }

// Engine returns the engine that reads lists, and a sentence with the reason. Without neighbours
// there is none.
func (s *Sampler) Engine() (kind disk.Kind, why string) {
	if s.reader == nil {
		return "", "no neighbours are drawn"
	}
	return s.reader.Kind(), s.reader.Why()
}

// Bytes returns the memory of the Sampler in bytes, without the batches and the reader's buffers:
// Fixed, and the most that Draw has needed.
func (s *Sampler) Bytes() int64 {
	steps, makers := s.Scratch()
	return s.Fixed() + steps + makers
}

// Scratch returns the most bytes that Draw has needed: for its steps, about equally for each, and
// for the makers of batches.
func (s *Sampler) Scratch() (steps, makers int64) {
	for i := range s.makers {
		makers += s.makers[i].bytes()
	}
	steps = s.lists.bytes() + s.blender.bytes()
	if s.similar != nil {
		steps += s.similar.bytes()
	}
	return steps, makers
}

// Fixed is the memory taken from the start: 4 bytes a node with neighbours, and 14 with Blend.
func (s *Sampler) Fixed() int64 {
	fixed := int64(4*len(s.counts) + 8*len(s.blender.last))
	if s.similar != nil {
		fixed += SimilarBytes(s.events.Places())
	}
	return fixed
}

// Costs returns the measured costs of reading lists, disk.Assumed where none are read.
func (s *Sampler) Costs() disk.Costs {
	if s.reader == nil {
		return disk.Assumed
	}
	return s.reader.Costs()
}
