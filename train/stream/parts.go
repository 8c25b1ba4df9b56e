package stream

import (
	"fmt"

	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/run"
	"github.com/gnnstore/gnnstore/train/sample"
	"github.com/gnnstore/gnnstore/train/temporal"
)

// parts cuts a stream into the parts that a run learns from and measures on, with their negatives.
type parts struct {
	options *run.Options
	events  *store.Events
	split   store.StreamSplit
	// known and all are the populations of negatives: of training, and of evaluation.
	known, all []uint32
	lag        int // the staleness in force: 1 while Auto is not decided
}

// part is a range of events that is taken in steps.
type part struct {
	from, to  int64
	batch     int64
	stateOnly bool
	lag       int64 // staleness, if memories that are out of date are blended; else 0
	temporal.Negatives
}

// Phases of negatives.
const (
	training = iota
	validation
	test
)

// streamTag is for hashes of negatives.
const streamTag = 24

// guarded calls read, as store.Guard does. read fails only if the mapped dataset does.
func guarded(read func()) error {
	return store.Guard(func() error {
		read()
		return nil
	})
}

// fits returns an error if the options do not fit the stream, of the dataset at path.
func (p *parts) fits(path string) error {
	fail := func(format string, args ...any) error {
		return fmt.Errorf("%s, stream %s: %w", path, p.options.Stream, fmt.Errorf(format, args...))
	}
	switch warm := p.options.WarmEvents; {
	case p.split.Train == 0:
		return fail("none of its %d events is to learn from; ingest it with a split that has some", p.split.Valid+p.split.Test)
	case warm >= p.split.Train:
		return fail("{warm_events} %d: it has %d events to learn from, which would all be before the first step", warm, p.split.Train)
	case p.lag > p.steps():
		return fail("{staleness} %d: an epoch has %d steps, and the last one would see nothing of the first", p.lag, p.steps())
	}
	return nil
}

// populations makes the lists of negatives.
func (p *parts) populations() (err error) {
	if p.options.NegativePopulation == run.AllNodes {
		p.known = temporal.AllNodes(p.events)
		p.all = p.known
		return nil
	}
	if p.known, err = temporal.Destinations(p.events, 0, p.split.Train); err == nil {
		p.all, err = temporal.Destinations(p.events, 0, p.events.Len())
	}
	return err
}

// steps returns the number of training steps of an epoch, without its warm-up.
func (p *parts) steps() int {
	o := p.options
	batch := int64(o.Batch)
	n := int((p.split.Train - o.WarmEvents + batch - 1) / batch)
	if o.EpochSteps > 0 {
		n = min(n, o.EpochSteps)
	}
	return n
}

// negatives returns the negatives of a phase. In evaluation they are the same in all epochs.
func (p *parts) negatives(phase, epoch int) temporal.Negatives {
	population := p.all
	if phase == training {
		population = p.known
	} else {
		epoch = 0
	}
	return temporal.Negatives{Population: population, Each: 1, Key: sample.Hash(p.options.Seed, streamTag, uint64(phase), uint64(epoch))}
}

// learning returns the part of an epoch that is trained on, after its warm-up.
func (p *parts) learning(epoch int) part {
	o := p.options
	l := part{from: o.WarmEvents, to: p.split.Train, batch: int64(o.Batch), Negatives: p.negatives(training, epoch)}
	if o.Mitigate > 0 {
		l.lag = int64(p.lag)
	}
	if o.EpochSteps > 0 {
		l.to = min(l.to, l.from+int64(o.EpochSteps)*l.batch)
	}
	return l
}

// part returns the part of a phase, validation or test.
func (p *parts) part(phase int) part {
	m := part{from: p.split.Train, to: p.split.Train + p.split.Valid, batch: int64(p.options.Batch), Negatives: p.negatives(phase, 0)}
	if phase == test {
		m.from, m.to = m.to, p.events.Len()
	}
	return m
}

// stateOf returns the events from to to-1, in batches that only update the state.
func (p *parts) stateOf(from, to int64) *part {
	return &part{from: from, to: to, batch: int64(p.options.Batch), stateOnly: true}
}

// steps returns the number of batches of the part.
func (p *part) steps() int { return int((p.to - p.from + p.batch - 1) / p.batch) }

// step returns the events of step i.
func (p *part) step(i int) temporal.Step {
	from := p.from + int64(i)*p.batch
	s := temporal.Step{From: from, To: min(from+p.batch, p.to), StateOnly: p.stateOnly, Negatives: p.Negatives}
	if p.lag > 0 {
		s.Seen = max(p.from, from-(p.lag-1)*p.batch)
	}
	return s
}
