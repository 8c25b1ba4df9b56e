package build

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/store"
)

// defaultStreamSplit is the split of TGN, DyGLib and TGB.
var defaultStreamSplit = splitPlan{kind: "time", fractions: [3]float64{0.7, 0.15, 0.15}}

// chooseStreamSplit settles how streams are split.
func (b *builder) chooseStreamSplit() error {
	parted := !slices.ContainsFunc(b.schema.Relations, func(r ingest.Relation) bool { return !r.Parted })
	switch b.split.kind {
	case "":
		if b.split = (splitPlan{kind: "given"}); !parted {
			b.split = defaultStreamSplit
			b.note("the source has no split: made %v, by quantiles of the times", b.split)
		}
	case "given":
		if !parted {
			return errors.New("{split} given: the source has no split; choose time:a/b/c with the parts' shares, as in time:0.7/0.15/0.15")
		}
	case "time":
		if parted {
			b.drop("the source's split: {split} %v takes its place", b.split)
		}
	default:
		return fmt.Errorf("{split} %v: it parts nodes, and the source is a stream of events, which is parted by time; choose time:0.7/0.15/0.15", b.split)
	}
	return nil
}

// streamSplit counts the events of the parts as they come.
type streamSplit struct {
	plan   splitPlan
	n      int64
	counts [3]int64
	at     [2]quantile // the last times of the first two parts
}

// quantile is found as the values come in ascending order: by linear interpolation, as NumPy has
// it.
type quantile struct {
	place  int64 // of the value before it
	beyond float64
	before float64
	bound  float64
	known  bool
}

func (q *quantile) add(n int64, t float64) {
	switch {
	case n == q.place:
		q.before, q.bound, q.known = t, t, q.beyond == 0
	case n == q.place+1 && !q.known:
		if d := t - q.before; q.beyond < 0.5 {
			q.bound = q.before + d*q.beyond
		} else {
			q.bound = t - d*(1-q.beyond)
		}
		q.known = true
	}
}

func (b *builder) newStreamSplit(events int64) streamSplit {
	s := streamSplit{plan: b.split, n: events}
	share := 0.0
	for k := range s.at {
		share += b.split.fractions[k]
		at := float64(events-1) * share
		s.at[k].place = int64(at)
		s.at[k].beyond = at - math.Floor(at)
	}
	return s
}

// add takes event number n, which the source has in part given.
func (s *streamSplit) add(n int64, t float64, given ingest.Part) error {
	if s.plan.kind == "given" {
		for later := given + 1; later <= ingest.Test; later++ {
			if s.counts[later] > 0 {
				return fmt.Errorf("it is to %s, and one before it in time is to %s; a stream is parted by time: choose {split} time:0.7/0.15/0.15", partVerb[given], partVerb[later])
			}
		}
		s.counts[given]++
		return nil
	}
	part := ingest.Test
	for k := range s.at {
		if s.at[k].add(n, t); part == ingest.Test && (!s.at[k].known || t <= s.at[k].bound) {
			part = ingest.Part(k)
		}
	}
	s.counts[part]++
	return nil
}

var partVerb = [...]string{"train", "validate", "test"}

func (s *streamSplit) report() store.StreamSplit {
	return store.StreamSplit{Name: s.plan.String(), Train: s.counts[ingest.Train], Valid: s.counts[ingest.Valid], Test: s.counts[ingest.Test]}
}
