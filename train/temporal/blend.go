package temporal

import (
	"context"

	"github.com/gnnstore/gnnstore/kernels"
)

// blender finds which memories of batches are blended. It knows the last times of nodes as of the
// state that the last batch has seen.
type blender struct {
	memory *kernels.HostBuf
	last   []float64 // by place, scaled: the last time in events 0 to seen-1, or noEvent
	seen   int64
	found  Blends
	roots  []uint32 // of a batch: their places
	times  []float64
	nodes  table // of a batch
}

// blend adds to batches what is blended, and the nodes that are read for it.
func (s *Sampler) blend(ctx context.Context, steps []Step, into []*Batch) error {
	x := &s.blender
	for i, b := range into {
		seen := steps[i].Seen
		if seen == 0 || len(b.Roots) == 0 {
			continue
		}
		if err := x.see(ctx, s, seen); err != nil {
			return err
		}
		x.roots, x.times = x.roots[:0], x.times[:0]
		for _, row := range b.Roots {
			x.roots, x.times = append(x.roots, b.Nodes[b.RowNode[row]]), append(x.times, b.RowTime[row])
		}
		from := steps[i].From // later partners would show the events to predict
		x.found.Find(x.roots, x.times, x.last, func(place uint32) []uint32 { return s.similar.Of(place, from) })
		if len(x.found.Rows) > 0 {
			x.add(b)
		}
	}
	return nil
}

// see brings last times up to an event, from the one before on, or from the first where they are
// too new.
func (x *blender) see(ctx context.Context, s *Sampler, to int64) error {
	if to < x.seen {
		x.forget()
	}
	return eachScan(ctx, &x.seen, to, func(lo, hi int64) error {
		src, dst := s.events.Ends(lo, hi)
		for i, t := range s.events.Times(lo, hi) {
			t = s.scaled(t)
			x.last[src[i]], x.last[s.firstDst+dst[i]] = t, t
		}
		return nil
	})
}

// forget marks all nodes as without an event.
func (x *blender) forget() {
	for i := range x.last {
		x.last[i] = noEvent
	}
	x.seen = 0
}

// add has b blend what was found.
func (x *blender) add(b *Batch) {
	for _, root := range x.found.Rows {
		b.Blended = append(b.Blended, b.Roots[root])
	}
	b.BlendStart = append(b.BlendStart, x.found.Start...)
	x.nodes.begin()
	for _, place := range b.Nodes {
		x.nodes.number(place)
	}
	for _, place := range x.found.Nodes {
		node, isNew := x.nodes.number(place)
		if isNew {
			b.Nodes = append(b.Nodes, place)
		}
		b.Similar = append(b.Similar, node)
	}
	b.size()
}

func (x *blender) bytes() int64 {
	f := &x.found
	return 4*int64(cap(x.roots)+cap(f.Rows)+cap(f.Start)+cap(f.Nodes)) + 8*int64(cap(x.times)+cap(f.since)+cap(f.sorted)+len(x.nodes.slots))
}
