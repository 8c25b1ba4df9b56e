package mutable_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/zeebo/xxh3"
	"golang.org/x/sync/errgroup"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/cachetier/mutable"
)

var bg = context.Background()

// initial fills dst with the first value of a row in these tests.
func initial(dst []byte, row uint32) { fill(dst, uint64(row)) }

// fill fills dst with bytes that depend on some numbers.
func fill(dst []byte, of ...uint64) {
	var key []byte
	for _, n := range of {
		key = binary.LittleEndian.AppendUint64(key, n)
	}
	for i := range dst {
		dst[i] = byte(xxh3.HashSeed(key, uint64(i/8)) >> (8 * (i % 8)))
	}
}

// step is one step of a workload. It reads the rows reads, and writes the rows reads[i] for each i
// of writes. It computes new bytes from the bytes that it read, or with updates from the newest
// bytes.
type step struct {
	reads, writes []uint32
	updates       bool
}

// all reports whether the step writes all rows that it reads, in order.
func (s step) all() bool {
	for i, at := range s.writes {
		if int(at) != i {
			return false
		}
	}
	return len(s.writes) == len(s.reads)
}

// after returns the bytes that a step writes for a row, from the bytes b.
func after(number int, row uint32, b []byte) []byte {
	out := make([]byte, len(b))
	fill(out, uint64(number), uint64(row), xxh3.Hash(b))
	return out
}

// oracle is a table in plain maps, whose steps see what was written lag steps before.
type oracle struct {
	lag, size int
	rows      map[uint32][]byte   // as steps may see them
	pending   []map[uint32][]byte // what the last steps wrote
	steps     int                 // steps so far
	passed    int                 // steps that the table has written back
	failed    bool                // an error kept a step from being written back
}

func newOracle(lag, size int) *oracle {
	return &oracle{lag: max(lag, 1), size: size, rows: map[uint32][]byte{}}
}

func (o *oracle) row(v uint32) []byte {
	if b, ok := o.rows[v]; ok {
		return b
	}
	b := make([]byte, o.size)
	initial(b, v)
	return b
}

// newest returns a row with all writes applied.
func (o *oracle) newest(v uint32) []byte {
	for _, wrote := range slices.Backward(o.pending) {
		if b, ok := wrote[v]; ok {
			return b
		}
	}
	return o.row(v)
}

// take runs a step and returns the bytes that it reads.
func (o *oracle) take(s step) []byte {
	var read []byte
	for _, v := range s.reads {
		read = append(read, o.row(v)...)
	}
	wrote := map[uint32][]byte{}
	for _, at := range s.writes {
		v := s.reads[at]
		wrote[v] = after(o.steps, v, o.row(v))
		if s.updates {
			wrote[v] = after(o.steps, v, o.newest(v))
		}
	}
	o.steps++
	o.pending = append(o.pending, wrote)
	if len(o.pending) == o.lag {
		o.apply(1)
	}
	return read
}

func (o *oracle) apply(steps int) {
	for _, wrote := range o.pending[:steps] {
		maps.Copy(o.rows, wrote)
	}
	o.pending = o.pending[steps:]
}

// settle ends a range of steps: all writes are applied.
func (o *oracle) settle() { o.apply(len(o.pending)) }

// all returns the rows that were written, in order, as numbers and bytes.
func (o *oracle) all() (rows []string) {
	for _, v := range slices.Sorted(maps.Keys(o.rows)) {
		rows = append(rows, fmt.Sprintf("%d %x", v, o.rows[v]))
	}
	return rows
}

// each returns the same of a table.
func each(t interface {
	Each(ctx context.Context, do func(row uint32, b []byte) error) error
}) (rows []string, err error) {
	err = t.Each(bg, func(v uint32, b []byte) error {
		rows = append(rows, fmt.Sprintf("%d %x", v, b))
		return nil
	})
	return rows, err
}

// take runs one range of steps, in groups, on t and on o. Each stage has a goroutine, or with
// atOnce false one goroutine runs all.
func take(t *mutable.Table, o *oracle, groups [][]step, ahead int, atOnce bool) error {
	type window struct {
		*cachetier.Window
		steps []step
		first int
	}
	type used struct {
		step   step
		number int
		read   []byte
	}
	first, size := o.steps, o.size
	var want [][]byte
	for _, g := range groups {
		for _, s := range g {
			want = append(want, o.take(s))
		}
	}
	o.settle()
	t.Settle()
	g, ctx := errgroup.WithContext(bg)
	plan := func(give func(window) error) error {
		var known []step
		next, expected := first, 0
		for {
			for ; len(groups) > 0 && expected < ahead; expected++ {
				var ids [][]uint32
				for _, s := range groups[0] {
					ids = append(ids, s.reads)
				}
				t.Expect(ids)
				known, groups = append(known, groups[0]...), groups[1:]
			}
			w, err := t.Next(ctx, t.Fit())
			if err != nil || w == nil && len(groups) == 0 {
				return err
			}
			expected--
			if w == nil {
				continue
			}
			if err := give(window{w, known[:w.Steps()], next}); err != nil {
				return err
			}
			next += w.Steps()
			known = known[w.Steps():]
		}
	}
	write := func(u used) error {
		var src []byte
		for _, at := range u.step.writes {
			src = append(src, after(u.number, u.step.reads[at], u.read[int(at)*size:][:size])...)
		}
		write := func() error { return t.Write(u.step.writes, src) }
		if u.step.all() {
			write = func() error { return t.WriteAll(src) }
		}
		if u.step.updates {
			write = func() error {
				return t.Update(u.step.writes, func(i int, row []byte) {
					copy(row, after(u.number, u.step.reads[u.step.writes[i]], row))
				})
			}
		}
		if err := write(); err != nil {
			o.failed = true
			return err
		}
		t.Passed()
		o.passed++
		return nil
	}
	gather := func(w window, give func(used) error) error {
		for i, s := range w.steps {
			read := make([]byte, len(s.reads)*size)
			if err := w.Gather(ctx, i, read); err != nil {
				return err
			}
			if !bytes.Equal(read, want[w.first+i-first]) {
				return fmt.Errorf("step %d sees other rows", w.first+i)
			}
			if i == len(w.steps)-1 {
				w.Release()
			}
			if err := give(used{s, w.first + i, read}); err != nil {
				return err
			}
		}
		return nil
	}
	if !atOnce {
		return plan(func(w window) error {
			if err := w.Load(ctx); err != nil {
				return err
			}
			return gather(w, write)
		})
	}
	planned, loaded, gathered := make(chan window), make(chan window), make(chan used, 1)
	g.Go(func() error {
		defer close(planned)
		return plan(func(w window) error { return send(ctx, planned, w) })
	})
	g.Go(func() error {
		defer close(loaded)
		for w := range planned {
			if err := w.Load(ctx); err != nil {
				return err
			}
			if err := send(ctx, loaded, w); err != nil {
				return err
			}
		}
		return nil
	})
	g.Go(func() error {
		defer close(gathered)
		for w := range loaded {
			if err := gather(w, func(u used) error { return send(ctx, gathered, u) }); err != nil {
				return err
			}
		}
		return nil
	})
	g.Go(func() error {
		for u := range gathered {
			if err := write(u); err != nil {
				return err
			}
		}
		return nil
	})
	return g.Wait()
}

func send[T any](ctx context.Context, to chan<- T, v T) error {
	select {
	case to <- v:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// randomGroups draws groups of steps over a table.
func randomGroups(rng *rand.Rand, rows int) (groups [][]step) {
	most := []int{3, 10, rows}[rng.IntN(3)]
	for range 1 + rng.IntN(4) {
		var g []step
		for range 1 + rng.IntN(5) {
			var s step
			for _, v := range rng.Perm(rows)[:rng.IntN(min(most, rows)+1)] {
				s.reads = append(s.reads, uint32(v))
			}
			switch all := rng.IntN(3) == 0; {
			case all:
				for at := range s.reads {
					s.writes = append(s.writes, uint32(at))
				}
			default:
				for _, at := range rng.Perm(len(s.reads))[:rng.IntN(len(s.reads)+1)] {
					s.writes = append(s.writes, uint32(at))
				}
			}
			s.updates = len(s.writes)%2 == 1
			g = append(g, s)
		}
		groups = append(groups, g)
	}
	return groups
}
