package history

import (
	"fmt"
	"slices"

	"github.com/gnnstore/gnnstore/train/sample"
)

// SizedBy is the number of batches, from the first of a run on, that decide which rows are worth
// keeping.
const SizedBy = 16

// SlotBytes returns the bytes of a row of so many columns, in float16 and with its place in the
// index.
func SlotBytes(columns int) int64 { return int64(2*columns) + BytesPerSlot }

// Sizing finds, from the first batches of a run, the hidden rows to keep: see Settings.Slots.
type Sizing struct {
	all        []Kept
	heats      []*Heat // by type, of those in all
	candidates []Candidate
	batches    float64
	bytes      float64   // of input rows
	live       []float64 // nodes, by layer
}

// NewSizing returns a Sizing for a number of batches with the nodes that reach names. heatOf
// returns the heat of a type with nodes, and nil for other types.
func NewSizing(reach sample.Reach, batches int, heatOf func(typ int) *Heat) *Sizing {
	layers := len(reach.Relations)
	z := &Sizing{heats: make([]*Heat, len(reach.Types[0])), batches: float64(batches), live: make([]float64, layers)}
	for l := 1; l < layers; l++ {
		for typ, reached := range reach.Types[l] {
			if !reached {
				continue
			}
			if z.heats[typ] == nil {
				z.heats[typ] = heatOf(typ)
			}
			if z.heats[typ] == nil {
				continue
			}
			var c Candidate
			nodes := 0
			for _, n := range z.heats[typ].nodes {
				c.Classes = append(c.Classes, Class{Nodes: n})
				nodes += n
			}
			z.candidates, z.all = append(z.candidates, c), append(z.all, Kept{Layer: l, Type: typ, Nodes: nodes})
		}
	}
	return z
}

// Add counts a batch. rowBytes has the bytes of a row for each of its Inputs, 0 for inputs that are
// not read.
func (z *Sizing) Add(b *sample.Batch, rowBytes []int64) {
	for i, k := range z.all {
		for _, v := range b.Live(k.Layer, k.Type) {
			z.candidates[i].Classes[z.heats[k.Type].class(v)].Met += 1 / z.batches
		}
	}
	inputs := b.Inputs()
	if b.Halos() != nil { // each row counts once, at its owner
		inputs = b.Reads()
	}
	for n, ids := range inputs {
		z.bytes += float64(len(ids)) * float64(rowBytes[n])
	}
	for l := 1; l < len(z.live); l++ {
		for t := range b.Layers[l].Nodes {
			z.live[l] += float64(len(b.Live(l, t)))
		}
	}
}

// Sums returns the sums over the batches, for Merge.
func (z *Sizing) Sums() []float64 {
	all := append([]float64{z.bytes}, z.live...)
	for _, c := range z.candidates {
		for _, class := range c.Classes {
			all = append(all, class.Met)
		}
	}
	return all
}

// Merge replaces the sums over the batches by the Sums of all workers, added up and divided by
// divisor. Then all workers choose the same nodes to keep. divisor is 1 if workers share each
// batch, and the number of workers if each has batches of its own. Each has a Sizing of the same
// nodes.
func (z *Sizing) Merge(workers [][]float64, divisor float64) error {
	merged := make([]float64, len(z.Sums()))
	for p, sums := range workers {
		if len(sums) != len(merged) {
			return fmt.Errorf("history: worker %d has %d sums of batches, and there are %d here", p, len(sums), len(merged))
		}
		for i, x := range sums {
			merged[i] += x / divisor
		}
	}
	rest := merged[1+copy(z.live, merged[1:]):]
	z.bytes = merged[0]
	for _, c := range z.candidates {
		for i := range c.Classes {
			c.Classes[i].Met, rest = rest[0], rest[1:]
		}
	}
	return nil
}

// Kept is whose rows are kept by s, which is resolved, where a slot takes so many bytes.
func (z *Sizing) Kept(s Settings, slotBytes int64) []Kept {
	for i, k := range z.all {
		z.candidates[i].Saved = z.bytes / max(z.live[k.Layer], 1)
	}
	slots, admitted := s.Slots(z.candidates, slotBytes)
	return z.keep(slots, admitted)
}

// Hottest keeps a share of the nodes of each layer and type, the hottest, at least one.
func (z *Sizing) Hottest(share float64) []Kept {
	slots := make([]int, len(z.all))
	for i, c := range z.candidates {
		for _, class := range c.Classes {
			slots[i] += class.Nodes
		}
		slots[i] = max(1, int(share*float64(slots[i])))
	}
	return z.keep(slots, slots)
}

// keep gives each of z.all its slots, and admits its hottest nodes, up to admitted.
func (z *Sizing) keep(slots, admitted []int) []Kept {
	all := slices.Clone(z.all)
	for i, n := range slots {
		heat := z.heats[all[i].Type]
		if all[i].Slots, all[i].Admits = n, heat.First(admitted[i]); heat.below {
			all[i].Nodes = admitted[i]
		}
	}
	return slices.DeleteFunc(all, func(k Kept) bool { return k.Slots == 0 })
}
