package cachetier

import (
	"fmt"

	"github.com/gnnstore/gnnstore/cachetier/policy"
	"github.com/gnnstore/gnnstore/kernels"
)

// dynamic is a part of a device region that is apart. Rows that came for a step stay in it as long
// as the policy wants them. This is its index, on the host, which planning uses: a step's rows are
// known as soon as the step is expected.
//
// A step first puts its rows together, and then copies the rows that stay to their slots. So they
// may take slots of rows that the same step reads.
type dynamic struct {
	cache *policy.Cache
	words *kernels.HostBuf
	sets  []policy.Set // of a step, and of the steps behind it
}

// dynamicAhead is the most expected steps that Belady foresees. Each step costs a bit per row of
// the table, and a pass over these bits. To know of uses still later gains little.
const dynamicAhead = 16

// foreseen returns how many steps the policy of a dynamic part foresees.
func foreseen(c policy.Config) int {
	if c.Kind == Belady {
		return dynamicAhead
	}
	return 0
}

// dynamicBytes returns the bookkeeping of a dynamic part.
func dynamicBytes(c policy.Config) int64 {
	if c.Slots == 0 {
		return 0
	}
	return c.Bytes() + int64((1+foreseen(c))*8*policy.SetWords(c.Rows))
}

func newDynamic(c policy.Config) (d *dynamic, err error) {
	if c.Slots == 0 {
		return nil, nil
	}
	d = &dynamic{}
	n := policy.SetWords(c.Rows)
	if d.words, err = kernels.NewHostBuf(8 * (1 + foreseen(c)) * n); err == nil {
		d.cache, err = policy.New(c)
	}
	if err != nil {
		d.close()
		return nil, fmt.Errorf("the index of %d rows on the device: %w", c.Slots, err)
	}
	for words := d.words.Uint64s(); len(words) > 0; words = words[n:] {
		d.sets = append(d.sets, words[:n:n])
	}
	return d, nil
}

func (d *dynamic) close() {
	if d == nil {
		return
	}
	if d.words != nil {
		d.words.Close()
	}
	if d.cache != nil {
		d.cache.Close()
	}
}

// forget frees all slots: after a Reset nobody knows which rows have come.
func (d *dynamic) forget() {
	if d != nil {
		d.cache.Forget()
	}
}

// stay lists the rows that the dynamic part has for a step, and the rows of the step that it keeps
// for later ones.
type stay struct {
	has     []uint64 // a bit for each of the step's ids
	slots   []uint32 // of these, in their order
	keep    []move   // From: the id's place in the step. To: a slot
	evicted int
}

// at reports whether the k-th id of the step is there. y may be nil.
func (y *stay) at(k int) bool { return y != nil && y.has[k>>6]>>(k&63)&1 != 0 }

// planDynamic decides what the dynamic part has for the steps of the oldest group, once. The policy
// knows the steps that are expected by now.
func (s *Stack) planDynamic() {
	if s.dynamic == nil || len(s.groups) == 0 || s.groups[0].placed {
		return
	}
	g := s.groups[0]
	g.placed = true
	s.drop(g.rows) // without what stays
	g.rows = nil
	steps := g.steps
	for _, later := range s.groups[1:] {
		if len(steps) >= len(g.steps)+dynamicAhead {
			break
		}
		steps = append(steps[:len(steps):len(steps)], later.steps...)
	}
	s.dynamic.plan(steps, len(g.steps), uint32(s.layout.device))
	copy(g.steps, steps)
}

// plan sets what the dynamic part has for each of the first n steps, one after the other. first is
// the number of rows that always lie in the region, from which the others are numbered.
func (d *dynamic) plan(steps []step, n int, first uint32) {
	ahead := len(d.sets) - 1
	fill := func(i int) {
		if i >= len(steps) {
			return
		}
		set := d.sets[i%len(d.sets)]
		set.Clear()
		for _, v := range steps[i].ids {
			if v >= max(first, steps[i].device) {
				set.Add(v - first)
			}
		}
	}
	for i := range ahead {
		fill(i)
	}
	for i := range n {
		fill(i + ahead)
		var future []policy.Rows
		for j := i + 1; j < min(i+1+ahead, len(steps)); j++ {
			future = append(future, d.sets[j%len(d.sets)])
		}
		steps[i].stay = d.step(&steps[i], d.sets[i%len(d.sets)], future, first)
	}
}

// step plans a step that needs the rows of need, numbered from first.
func (d *dynamic) step(t *step, need policy.Set, future []policy.Rows, first uint32) *stay {
	y, hot := &stay{has: make([]uint64, (len(t.ids)+63)/64)}, max(first, t.device)
	before := d.cache.Now()
	for k, v := range t.ids {
		if v < hot {
			continue
		}
		if slot, ok := before.Slot(v - first); ok {
			y.has[k>>6] |= 1 << (k & 63)
			y.slots = append(y.slots, slot)
		}
	}
	change := d.cache.Step(need, future)
	y.evicted = change.Evicted
	if change.Admitted == 0 {
		return y
	}
	after := d.cache.Now()
	for k, v := range t.ids {
		if v < hot || y.at(k) {
			continue
		}
		if slot, ok := after.Slot(v - first); ok {
			y.keep = append(y.keep, move{From: uint32(k), To: slot})
		}
	}
	return y
}

// Keeps returns the arguments of kernels.Backend.KeepRows for step i, once its rows are put
// together. from numbers the rows that stay among the rows that Gather copies. to has their places
// in the table of [Stack.Apart]. Places has set at for the step. from and to are valid until the
// next call for a window of the Stack.
func (w *Window) Keeps(i int, at []uint32) (from, to []uint32) {
	s, y := w.s, w.steps[i].stay
	if y == nil {
		return nil, nil
	}
	p := &s.keeps
	p.from, p.to = p.from[:0], p.to[:0]
	for _, m := range y.keep {
		p.from, p.to = append(p.from, at[m.From]&^kernels.InSlot), append(p.to, s.device.At(s.layout.device)-m.To)
	}
	return p.from, p.to
}
