package sample

import (
	"context"
	"fmt"
	"slices"
)

// Values of edges are read once all hops of a group are drawn. Draws do not depend on them, and a
// destination is one at every later hop too, so its lists are then read once. Until then a block
// keeps the place of each neighbour in its list.

// Bring makes blocks bring along Values, one for each relation; nil for relations without. It is
// called before the first Sample. Values of another number of relations panic. So do values with
// walks, which visit nodes and draw no edges, and with self loops, which no list has.
func (s *Sampler) Bring(values []Values) {
	if len(values) != s.known {
		panic(fmt.Sprintf("sample: Bring: %d relations, and values of %d", s.known, len(values)))
	}
	for i, v := range values[:len(s.relations)] {
		if v == nil {
			continue
		}
		if s.how().walks || s.SelfLoops {
			panic("sample: Bring: walks and self loops have no values")
		}
		s.relations[i].values, s.relations[i].columns = v, v.Columns()
	}
}

// bring fills the Values of batches that are drawn.
func (s *Sampler) bring(ctx context.Context, batches []*Batch) error {
	for i := range s.relations {
		if s.relations[i].columns == 0 {
			continue
		}
		if err := s.fillValues(ctx, s.beginValues(&s.relations[i], batches)); err != nil {
			return err
		}
	}
	return s.bringRows(ctx, batches)
}

// fillValues fills the Values of the blocks of jobs, all of one relation.
func (s *Sampler) fillValues(ctx context.Context, jobs []job) error {
	_, misses, err := s.all(ctx, jobs, func(_ *drawer, j *job) (hits, misses int, err error) { return j.takeValues(ctx) })
	for c := 0; misses > 0 && err == nil && c < jobs[0].columns; c++ {
		err = s.readValues(ctx, jobs, misses, c)
	}
	return err
}

// beginValues makes the jobs of r at all hops of batches where it is drawn from.
func (s *Sampler) beginValues(r *relation, batches []*Batch) []job {
	n := 0
	for hop := range s.Fanouts {
		if s.FanoutOf(hop, r.number) == 0 {
			continue
		}
		for _, b := range batches {
			if n == len(s.jobs) {
				s.jobs = append(s.jobs, job{})
			}
			s.beginDrawn(&s.jobs[n], r, b, hop)
			n++
		}
	}
	return s.jobs[:n]
}

// beginDrawn makes j the job to bring what the edges of r in b have, where a hop is drawn.
func (s *Sampler) beginDrawn(j *job, r *relation, b *Batch, hop int) {
	layer := &b.Layers[len(s.Fanouts)-1-hop]
	j.begin(r, &layer.Blocks[r.number], layer.Nodes[r.Dst].destinations(), draws{relation: r.number})
	j.drawn = true
}

// takeValues makes room for the values of j's edges and takes those that are resident. It counts
// these lists, and others.
func (j *job) takeValues(ctx context.Context) (hits, misses int, err error) {
	b := j.block
	b.Values = resize(b.Values, len(b.Nbr)*b.columns)
	return j.take(ctx, func(i int, v uint32, places []uint32) error {
		values := b.Values[int(b.Start[i])*b.columns:][:len(places)*b.columns]
		j.values.TakeValues(values, v, places)
		if bad := slices.IndexFunc(values, notFinite); bad >= 0 {
			return &ValueError{j.number, bad % b.columns, v, int(places[bad/b.columns]), values[bad]}
		}
		return nil
	})
}

// take calls resident with each destination of j that has edges and whose list is resident: its
// place and number, and the places of the edges in the list. It counts these lists, and others.
func (j *job) take(ctx context.Context, resident func(i int, v uint32, places []uint32) error) (hits, misses int, err error) {
	for i, v := range j.dst {
		if i%ahead == 0 && ctx.Err() != nil {
			return 0, 0, ctx.Err()
		}
		switch places := j.block.placesOf(i); {
		case len(places) == 0:
		case v >= j.resident:
			misses++
		default:
			hits++
			if err := resident(i, v, places); err != nil {
				return 0, 0, err
			}
		}
	}
	return hits, misses, nil
}

func notFinite(x float32) bool { return x-x != 0 }

// readValues takes a column of the values of edges whose lists are not resident. There are at most
// misses such lists.
func (s *Sampler) readValues(ctx context.Context, jobs []job, misses int64, column int) error {
	return s.passes(jobs, misses, func() error {
		return jobs[0].values.ReadValues(ctx, column, s.nodes, func(i, from int, part []float32) error {
			for at := s.first[i]; at < s.first[i+1]; at++ {
				if err := s.serveValues(jobs, int(at), column, from, part); err != nil {
					return err
				}
			}
			return ctx.Err()
		})
	})
}

// serveValues takes the values of pair number at from a part of a column of its list, which begins
// at neighbour from.
func (s *Sampler) serveValues(jobs []job, at, column, from int, part []float32) error {
	j, n, v := s.of(jobs, at)
	b := j.block
	for e := b.Start[n]; e < b.End[n]; e++ {
		i := int(b.places[e]) - from
		if i < 0 || i >= len(part) {
			continue
		}
		if notFinite(part[i]) {
			return &ValueError{j.number, column, v, int(b.places[e]), part[i]}
		}
		b.Values[int(e)*b.columns+column] = part[i]
	}
	return nil
}
