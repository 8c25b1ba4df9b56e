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

// Learning configures the rows of types whose input is learnt.
type Learning struct {
	Rule kernels.RowRule // the optimizer, which decides what a record has
	Seed uint64          // of the values that they begin with
	Kept int             // checkpoints that are kept at a time, with their rows
	// Steps is the number of steps from one checkpoint to the next, and Whole the number in the
	// run; 0: not known.
	Steps, Whole int
	// Given has the types, by name, whose rows start from a file, so that all of them may be
	// written.
	Given map[string]bool
}

// Learnt is a table of learnt rows: records of Dim values with what their optimizer keeps of them.
// No row is changed before its files have a directory: see [Tiers.In].
type Learnt struct {
	*mutable.Table
	Type  int // of the nodes
	Dim   int
	Stack int // its place among Tiers.Stacks
}

// learntLag is the number of steps after which a written row is seen: the next step sees it.
const learntLag = 1

// initial returns a function that writes the first record of a row. Its values are from U(-√(3/D),
// √(3/D)), whose variance is 1/D, by a hash of (seed, type, row, column). The rest is zeros.
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

// recordCols returns the number of columns of type n's input rows in memory.
func (t *Tiers) recordCols(n int) int {
	if d := t.data.Input(n); d.Features == nil {
		return t.learning.Rule.Columns(d.Embed)
	}
	return t.data.Input(n).Dim()
}

// RowBytes returns the bytes of an input row of type n.
func (t *Tiers) RowBytes(n int) int {
	if f := t.data.Input(n).Features; f != nil {
		return f.RowBytes()
	}
	return 4 * t.recordCols(n)
}

// Zeros allocates rows of the shape that batches have for type n, for a rehearsal. The caller frees
// them.
func (t *Tiers) Zeros(n, rows int) kernels.Tensor {
	return kernels.NewTensor(t.be, t.data.Input(n).DType(), rows, t.recordCols(n))
}

// openLearnt opens the table of type n as the next stack. A batch reads about inputs rows of it;
// the estimate for the whole run adds a fourth.
func (t *Tiers) openLearnt(ctx context.Context, n, inputs int, cache cachetier.Options) (*cachetier.Stack, error) {
	d := &t.data.Types[n]
	own := d.Nodes
	if p := t.Parts; p != nil {
		own = int(t.data.Owners(n, p.Workers).Count(int64(own), p.Rank))
	}
	touched := min(own, inputs*t.learning.Whole/4*5)
	if t.learning.Given[d.Name] {
		touched = own
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

// IsLearnt reports whether the rows of the i-th stack are learnt.
func (t *Tiers) IsLearnt(i int) bool { return t.data.Input(t.Types[i]).Features == nil }

// In puts the files of learnt rows into a directory, each table's into its own. It is called before
// the first step. run identifies the run that the rows belong to.
func (t *Tiers) In(fsys vfs.FS, dir, run string) {
	t.place = mutable.Place{FS: fsys, Dir: filepath.Dir(dir)} // it exists
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
// now. Where workers own rows, these are the rows of this worker.
func (t *Tiers) WriteBack(b *pipeline.Gathered) error {
	for _, l := range t.Learnt {
		rows := b.Rows[l.Type]
		if t.Parts != nil {
			rows = b.Own[l.Type]
		}
		if err := t.staging.Read(rows, l.WriteAll); err != nil {
			return err
		}
	}
	return nil
}

// Retain tells the tables the steps of the checkpoints that exist.
func (t *Tiers) Retain(ctx context.Context, steps []int64) error {
	for _, l := range t.Learnt {
		if err := l.Retain(ctx, steps...); err != nil {
			return err
		}
	}
	return nil
}
