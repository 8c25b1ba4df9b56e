package tiers

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/cachetier/mutable"
	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/train/pipeline"
	"github.com/gnnstore/gnnstore/train/sample"
)

// Learning says how the rows of types whose input is learnt are kept.
type Learning struct {
	Rule kernels.RowRule // what their records have
	Seed uint64          // of the values that they begin with
	Kept int             // checkpoints at a time that need them
	// Steps is how many there are from one checkpoint to the next, and Whole how many in the run;
	// 0: nobody knows.
	Steps, Whole int
	// Given are the types, by name, whose rows begin with those of a file, so that all of them may
	// be written.
	Given map[string]bool
}

// Learnt is a table of learnt rows: records of Dim values with what their optimizer keeps of them.
// No row is changed before its files are somewhere: see [Tiers.In].
type Learnt struct {
	*mutable.Table
	Type  int // of the nodes
	Dim   int
	Stack int // its place among Tiers.Stacks
}

// learntLag is how many steps after it was written a learnt row is seen: the next one sees it.
const learntLag = 1

// initial is what a row of a type begins with, values from U(-√(3/D), √(3/D)), whose variance is
// 1/D, and zeros: a hash of (seed, type, row, column) says where.
func initial(seed uint64, t, dim int) func(dst []byte, row uint32) {
	a, key := math.Sqrt(3/float64(dim)), sample.Hash(seed, uint64(t))
	return func(dst []byte, row uint32) {
		clear(dst)
		key := sample.Fold(key, uint64(row))
		for c := range dim {
			u := float64(sample.Fold(key, uint64(c))>>11) / (1 << 53)
			binary.LittleEndian.PutUint32(dst[4*c:], math.Float32bits(float32((2*u-1)*a)))
		}
	}
}

// recordCols is how many columns type n's input rows have in memory.
func (t *Tiers) recordCols(n int) int {
	if d := t.data.Input(n); d.Features == nil {
		return t.learning.Rule.Columns(d.Embed)
	}
	return t.data.Input(n).Dim()
}

// RowBytes is what each of them takes.
func (t *Tiers) RowBytes(n int) int {
	if f := t.data.Input(n).Features; f != nil {
		return f.RowBytes()
	}
	return 4 * t.recordCols(n)
}

// Zeros are rows like those that batches have of type n, for a rehearsal; the caller frees them.
func (t *Tiers) Zeros(n, rows int) kernels.Tensor {
	x := kernels.Tensor{Type: t.data.Input(n).DType(), Rows: rows, Cols: t.recordCols(n)}
	x.Buf = t.be.Alloc(x.Type, x.Len())
	return x
}

// openLearnt opens the table of type n, the next of the stacks, of which a batch reads about so
// many inputs: a fourth more are believed to be the most.
func (t *Tiers) openLearnt(ctx context.Context, n, inputs int, cache cachetier.Options) (*cachetier.Stack, error) {
	d := &t.data.Types[n]
	touched := min(d.Nodes, inputs*t.learning.Whole/4*5)
	if t.learning.Given[d.Name] {
		touched = d.Nodes
	}
	table, err := mutable.Open(ctx, mutable.Options{
		Rows: d.Nodes, RowBytes: 4 * t.recordCols(n), Initial: initial(t.learning.Seed, n, d.Embed), Kept: t.learning.Kept,
		Expected: inputs * t.learning.Steps, Touched: touched, Lag: learntLag, Cache: cache,
	})
	if err != nil {
		return nil, fmt.Errorf("the learnt rows of type %s: %w", d.Name, err)
	}
	t.Learnt = append(t.Learnt, Learnt{Table: table, Type: n, Dim: d.Embed, Stack: len(t.Stacks)})
	return table.Stack, nil
}

// IsLearnt tells whether the rows of the i-th stack are learnt.
func (t *Tiers) IsLearnt(i int) bool { return t.data.Input(t.Types[i]).Features == nil }

// In has the files of learnt rows be in a directory, each table's in its own, before the first
// step. run says what the rows are of.
func (t *Tiers) In(fsys vfs.FS, dir, run string) {
	t.place = mutable.Place{FS: fsys, Dir: filepath.Dir(dir)} // which is there
	for _, l := range t.Learnt {
		d := &t.data.Types[l.Type]
		l.Table.In(mutable.Place{
			FS: fsys, Dir: filepath.Join(dir, d.Name), Run: fmt.Sprintf("%s, type %s, %d columns, rule %d", run, d.Name, l.Dim, t.learning.Rule),
		})
	}
}

// Room refuses a file system that has less space left than the learnt rows of all types may take.
func (t *Tiers) Room() error {
	var need int64
	for _, l := range t.Learnt {
		need += l.Need()
	}
	if need == 0 {
		return nil
	}
	return mutable.Room(t.place.FS, t.place.Dir, need)
}

// WriteBack puts the learnt rows of a step that was just used back into their tables, as they are
// now.
func (t *Tiers) WriteBack(b *pipeline.Gathered) error {
	for _, l := range t.Learnt {
		rows := b.Rows[l.Type]
		if err := t.staging.Read(rows, l.WriteAll); err != nil {
			return err
		}
	}
	return nil
}

// Retain tells which checkpoints there are, by their steps.
func (t *Tiers) Retain(ctx context.Context, steps []int64) error {
	for _, l := range t.Learnt {
		if err := l.Retain(ctx, steps...); err != nil {
			return err
		}
	}
	return nil
}
