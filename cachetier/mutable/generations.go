package mutable

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/gnnstore/gnnstore/cachetier/policy"
)

// seal turns what was written since the last checkpoint into the generation of this step.
func (t *rows) seal(step int64) error {
	t.io.Lock()
	defer t.io.Unlock()
	if t.failed != nil {
		return t.failed
	}
	if err := t.settle(0, nil); err != nil {
		return fmt.Errorf("mutable: %w", err)
	}
	g := &t.next
	switch {
	case g.after == step && g.slot == 0 && !g.fresh:
		return nil
	case step <= g.after:
		return fmt.Errorf("mutable: a checkpoint of step %d after that of step %d", step, g.after)
	case len(t.below) == maxGenerations:
		return fmt.Errorf("mutable: a checkpoint beside %d others: tell which are kept", maxGenerations)
	}
	g.number = step
	has := t.set()
	if g.slot != 0 {
		for v, slot := range t.newest {
			if slot == g.slot {
				has.Add(uint32(v))
			}
		}
		g.count = int64(has.Len())
		if err := t.sync(t.slots[g.slot]); err != nil {
			return err
		}
	}
	if err := t.list(g, has); err != nil {
		return err
	}
	t.below = append(t.below, g.clone())
	t.next = generation{list: list{after: step}}
	return nil
}

// MaxKept is the most checkpoints that a table can keep.
const MaxKept = maxGenerations - 2

// maxGenerations leaves slots for the generation that is being written, and for a copy.
const maxGenerations = 250

func (g *generation) clone() *generation {
	c := *g
	return &c
}

// list writes the list of g.
func (t *rows) list(g *generation, has policy.Set) error {
	n, err := writeList(t.fs, t.dir, &t.shape, &g.list, has)
	if err != nil {
		return fmt.Errorf("mutable: %w", err)
	}
	t.state.Lock()
	defer t.state.Unlock()
	t.counts.BytesWritten += n
	return nil
}

// clear resets all rows as if never written. It removes what was written since the last checkpoint.
func (t *rows) clear() error {
	t.io.Lock()
	defer t.io.Unlock()
	if t.failed != nil {
		return t.failed
	}
	t.state.Lock()
	clear(t.newest)
	t.spill.forget()
	t.counts.RowsTouched = 0
	t.state.Unlock()
	slot := t.next.slot
	t.next = generation{list: list{after: t.next.after, fresh: true}}
	return t.remove(slot)
}

// remove closes and deletes the row file of a slot, if it has one.
func (t *rows) remove(slot byte) error {
	f := t.slots[slot]
	if f == nil {
		return nil
	}
	t.slots[slot] = nil
	err := t.reopen()
	f.close()
	return cmp.Or(err, t.fs.Remove(f.path))
}

// walk returns the generations that make up the table as of a step, the oldest first. From each
// list it goes to the one before, and so skips a list that an interrupted merge has left.
func walk(o *Options, s *shape, step int64) (below []*generation, err error) {
	if step == none {
		return nil, nil
	}
	numbers, err := numbered(o.FS, o.Dir, "gen-")
	if err != nil {
		return nil, err
	}
	slices.Sort(numbers)
	older := func(n int64) int64 {
		at, _ := slices.BinarySearch(numbers, n)
		if at == 0 {
			return none
		}
		return numbers[at-1]
	}
	for n := step; n != none; {
		l, err := readList(o.FS, o.Dir, s, n, nil)
		if err != nil {
			return nil, err
		}
		// A list that shares its row file with a younger one was left by an interrupted merge: the
		// younger one has its rows.
		merged := slices.ContainsFunc(below, func(g *generation) bool { return l.serial != spillSerial && g.serial == l.serial })
		if !merged {
			below = append(below, &generation{list: l})
		}
		if n = l.after; l.fresh { // older generations are no part of its rows, and may be gone
			n = older(l.number)
		}
	}
	slices.Reverse(below)
	return below, nil
}

// load replaces the state in memory by the generations as of a step.
func (t *rows) load(o *Options, step int64) error {
	t.io.Lock()
	defer t.io.Unlock()
	below, err := walk(o, &t.shape, step)
	if err != nil {
		return err
	}
	t.state.Lock()
	clear(t.newest)
	t.dropSpill()
	old := t.slots
	t.slots, t.below, t.next = [256]*rowFile{}, below, generation{list: list{after: step}}
	t.state.Unlock()
	for _, f := range old {
		if f != nil {
			f.close()
		}
	}
	for _, g := range below {
		if g.serial == 0 {
			continue
		}
		f, err := openRows(t.fs, t.dir, t.shape, g.serial, !t.readOnly)
		if err != nil {
			return err
		}
		g.slot = t.freeSlot()
		t.slots[g.slot] = f
	}
	first := 0
	for i, g := range below {
		if g.fresh {
			first = i
		}
	}
	if err := t.readNewest(below[first:]); err != nil {
		return err
	}
	return t.reopen()
}

// readNewest finds the newest record of each row in generations, which are in their order.
func (t *rows) readNewest(below []*generation) error {
	t.state.Lock()
	defer t.state.Unlock()
	var touched int64
	for _, g := range below {
		_, err := readList(t.fs, t.dir, &t.shape, g.number, func(w int, bits uint64) {
			each(w, bits, func(v uint32) {
				if t.newest[v] == 0 {
					touched++
				}
				t.newest[v] = g.slot
			})
		})
		if err != nil {
			return err
		}
	}
	t.counts.RowsTouched, t.loaded = touched, true
	return nil
}

// clean removes the files of the table that no generation of it uses: first the lists, so that no
// list ever names a row file that is gone.
func (t *rows) clean() error {
	t.io.Lock()
	defer t.io.Unlock()
	keep := map[string]bool{}
	for _, g := range t.below {
		keep[listName(g.number)] = true
		if g.serial != spillSerial {
			keep[rowFileName(g.serial)] = true
		}
	}
	for _, prefix := range []string{"gen-", "rows-"} {
		names, err := t.fs.List(t.dir)
		if err != nil {
			return err
		}
		numbers, err := numbered(t.fs, t.dir, prefix)
		if err != nil {
			return err
		}
		ours := map[string]bool{}
		for _, n := range numbers {
			if prefix == "gen-" {
				ours[listName(n)] = true
			} else {
				ours[rowFileName(uint64(n))] = true
				t.serial = max(t.serial, uint64(n))
			}
		}
		for _, name := range names {
			half := strings.HasPrefix(name, prefix) && strings.HasSuffix(name, ".tmp")
			if (ours[name] || half) && !keep[name] {
				if err := t.fs.Remove(t.fs.PathJoin(t.dir, name)); err != nil {
					return err
				}
			}
		}
		if err := syncDir(t.fs, t.dir); err != nil {
			return err
		}
	}
	return nil
}

// retain merges each generation whose checkpoint is not kept into the one after it, or removes it
// if no later one needs its rows. The newest stays until the next checkpoint.
func (t *rows) retain(ctx context.Context, kept []int64) error {
	t.io.Lock()
	defer t.io.Unlock()
	if t.failed != nil {
		return t.failed
	}
	for _, k := range kept {
		if !slices.ContainsFunc(t.below, func(g *generation) bool { return g.number == k }) {
			return fmt.Errorf("mutable: no checkpoint of step %d is there to keep", k)
		}
	}
	for i := 0; i < len(t.below); {
		g, after := t.below[i], &t.next
		if i+1 < len(t.below) {
			after = t.below[i+1]
		}
		var err error
		switch {
		case slices.Contains(kept, g.number) || after == &t.next && !after.fresh:
			i++
			continue
		case after.fresh:
			err = t.drop(g, g.slot)
		default:
			err = t.merge(ctx, g, after)
		}
		if err != nil {
			return err
		}
		t.below = slices.Delete(t.below, i, i+1)
	}
	return nil
}

// drop removes the list of g, which nothing needs, and then the row file of a slot.
func (t *rows) drop(g *generation, slot byte) error {
	err := t.fs.Remove(t.fs.PathJoin(t.dir, listName(g.number)))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err == nil {
		err = syncDir(t.fs, t.dir)
	}
	if err == nil {
		err = t.remove(slot)
	}
	if err != nil {
		return fmt.Errorf("mutable: %w", err)
	}
	return nil
}

// merge merges lower, whose checkpoint is gone, into upper, in the row file for which less is
// copied. Until upper's list is replaced, the checkpoint stays as it was: the copied rows go to
// places that no checkpoint reads.
func (t *rows) merge(ctx context.Context, lower, upper *generation) error {
	has, more := t.set(), t.set() // rows of upper, and rows that only lower has
	for _, g := range []struct {
		number int64
		set    policy.Set
	}{{upper.number, has}, {lower.number, more}} {
		_, err := readList(t.fs, t.dir, &t.shape, g.number, func(w int, bits uint64) { g.set[w] = bits })
		if err != nil {
			return err
		}
	}
	for w, bits := range has {
		more[w] &^= bits
	}
	into, from, copied := upper, lower, more
	if upper.slot == 0 || lower.slot != 0 && upper.count < int64(more.Len()) {
		into, from, copied = lower, upper, has
	}
	if from.slot != 0 && into.slot != 0 {
		if err := t.copy(ctx, from.slot, into.slot, copied); err != nil {
			return err
		}
	}
	for w, bits := range more {
		has[w] |= bits
	}
	merged := generation{
		list{upper.number, lower.after, into.serial, int64(has.Len()), lower.fresh}, into.slot,
	}
	if err := t.list(&merged, has); err != nil {
		return err
	}
	gone := from.slot
	t.state.Lock()
	if gone != 0 {
		for v, slot := range t.newest {
			if slot == gone {
				t.newest[v] = into.slot
			}
		}
	}
	*upper = merged
	t.state.Unlock()
	return t.drop(lower, gone)
}

// copy copies the rows of has from one slot to another, and syncs the file of the other.
func (t *rows) copy(ctx context.Context, from, into byte, has policy.Set) error {
	most := max(1, int(copyBytes)/t.rowBytes)
	memory := make([]byte, most*t.rowBytes)
	at := func(i int) []byte { return memory[i*t.rowBytes:][:t.rowBytes] }
	var batch []uint32
	flush := func() error {
		_, err := t.read(ctx, len(batch), func(i int) (byte, uint32) { return from, batch[i] }, func(i int, b []byte) { copy(at(i), b) })
		if err != nil || len(batch) == 0 {
			return err
		}
		n, err := t.write(into, len(batch), func(i int) (uint32, []byte) { return batch[i], at(i) }, nil)
		if err != nil {
			return fmt.Errorf("mutable: %w", err)
		}
		t.state.Lock()
		t.counts.RowsCopied += int64(len(batch))
		t.counts.BytesWritten += n
		t.state.Unlock()
		batch = batch[:0]
		return nil
	}
	var err error
	for w, bits := range has {
		each(w, bits, func(v uint32) {
			if batch = append(batch, v); len(batch) == most && err == nil {
				err = flush()
			}
		})
		if err != nil {
			return err
		}
	}
	if err := flush(); err != nil {
		return err
	}
	return t.sync(t.slots[into])
}
