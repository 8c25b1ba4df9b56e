package graph

import (
	"context"

	"github.com/gnnstore/gnnstore/cachetier/device"
	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/train/pipeline"
	"github.com/gnnstore/gnnstore/train/sample"
)

// openRings makes the slots in a region that the host cannot address: a ring for each of
// options.Kept. A ring takes chunks as its slots come into use, and they displace feature rows.
// Package history numbers the slots of a ring from 0 on; a step gets their places in the one table
// of all rings.
func (u *reuse) openRings(region *device.Buffer) (err error) {
	var counts []int
	for _, k := range u.options.Kept {
		counts = append(counts, k.Slots)
	}
	if u.rings, err = region.Rings(u.hidden, counts...); err != nil {
		return err
	}
	for range u.options.Kept {
		u.slots = append(u.slots, u.rings.Table())
	}
	u.options.Takes = u.rings.Take
	return nil
}

// place returns the rows of slots[k] that have these slots. They are valid until the next call with
// the same memory.
func (u *reuse) place(k int, slots []uint32, memory *[]uint32) []uint32 {
	if u.rings == nil {
		return slots
	}
	*memory = (*memory)[:0]
	for _, s := range slots {
		*memory = append(*memory, u.placeOf(k, s))
	}
	return *memory
}

func (u *reuse) placeOf(k int, slot uint32) uint32 {
	place, ok := u.rings.Place(k, slot)
	if !ok {
		panic("graph: a hidden row in a slot that nothing was stored in")
	}
	return place
}

// plans has the batches of a range of steps use rows of earlier steps. before is the number of
// steps before the range.
func (u *reuse) plans(steps *pipeline.Steps, before int) {
	steps.Lag = u.HistoryLag
	steps.Expand = func(from, n int) sample.Expander {
		e := u.cache.Group(before+from, n)
		if u.rings == nil || e == nil {
			return e
		}
		return placing{e, u}
	}
	if u.rings != nil {
		// A step puts its rows together before it stores others.
		steps.Taken = func(step int) int64 { return u.rings.Taken(before + step) }
	}
}

// placing puts places in the origins of rows, instead of the numbers of slots.
type placing struct {
	sample.Expander
	u *reuse
}

// Expand implements sample.Expander.
func (p placing) Expand(ctx context.Context, hop int, found [][][]uint32) ([][][]uint32, [][][]sample.Origin, error) {
	next, origins, err := p.Expander.Expand(ctx, hop, found)
	for k, kept := range p.u.options.Kept {
		if kept.Layer != p.u.options.Layers-1-hop {
			continue
		}
		for _, step := range origins {
			of := step[kept.Type]
			for i := range of {
				if of[i].From == sample.Slot {
					of[i].Index = p.u.placeOf(k, of[i].Index)
				}
			}
		}
	}
	return next, origins, err
}

// eachPiece calls do with all slots, a piece at a time and in their order. A piece without a buffer
// was never stored in.
func (u *reuse) eachPiece(do func(rows kernels.Tensor) error) error {
	for k, s := range u.slots {
		slots := u.options.Kept[k].Slots
		for lo := 0; lo < slots; {
			n := min(u.pieceRows(), slots-lo)
			rows := s
			switch {
			case u.rings == nil:
				rows = s.Slice(lo, lo+n)
			default:
				n = min(n, u.rings.Chunk(lo))
				if place, ok := u.rings.Place(k, uint32(lo)); ok {
					rows = s.Slice(int(place), int(place)+n)
				} else {
					rows.Buf, rows.Rows = nil, n
				}
			}
			if err := do(rows); err != nil {
				return err
			}
			lo += n
		}
	}
	return nil
}
