package arrays

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/archive"
	"github.com/gnnstore/gnnstore/ingest/npy"
)

// Rows streams a table of nodes or edges.
func (s *Source) Rows(ctx context.Context, table int, emit func(ingest.RowChunk) error) error {
	x := s.tables[table]
	if x.matrix != nil {
		return x.matrix.sparseRows(ctx, emit)
	}
	if x.turned && x.member != nil && x.member.Deflated() && x.member.Size > archive.MaxInflated {
		return s.turnedRows(ctx, x, emit)
	}
	n, dim, r := x.Shape[0], int64(columns(x)), x.Reader()
	rows := min(n, max(ingest.ChunkBytes/4/dim, 1))
	chunk, place := make([]float32, rows*dim), ingest.Place{File: x.name}
	for ; place.First < n; place.First += rows {
		if err := ctx.Err(); err != nil {
			return err
		}
		values := chunk[:min(rows, n-place.First)*dim]
		if _, err := r.ReadFloat32s(values); err != nil {
			return x.fail(ctx, err)
		}
		if err := emit(ingest.RowChunk{Place: place, Values: values}); err != nil {
			return err
		}
	}
	return nil
}

// turnedRows reads what can only be inflated front to back and lies column by column.
func (s *Source) turnedRows(ctx context.Context, x *array, emit func(ingest.RowChunk) error) error {
	open := func() (io.ReadCloser, error) { return io.NopCloser(x.member.Stream(0, x.member.Size)), nil }
	return ingest.Matrix(ctx, open, ingest.RowsOf(x.name, emit), func(err error) error { return x.fail(ctx, err) })
}

func number(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// split is three parts, each a mask of all nodes or a list of some; nil is none.
type split struct {
	nodes int64
	parts [3]*array
	masks [3]bool
	words *parts // one array of parts, or nil
}

// findSplit finds the parts of a node type.
func (s *Source) findSplit(prefix, name string, t *nodeType, given [3]string) error {
	sp, any := &split{}, false
	for i, flag := range [3]string{"{array_train}", "{array_valid}", "{array_test}"} {
		a, err := s.pick(prefix, flag, given[i], ingest.PartNames[i])
		if err != nil {
			return err
		}
		if a == nil {
			continue
		}
		if sp.parts[i], sp.masks[i], err = s.part(a, t, given[i] != ""); err != nil {
			return err
		}
		any = true
	}
	if err := s.findPartsOf(prefix, name, t, any); err != nil || !any {
		return err
	}
	if sp.parts[0] == nil {
		s.skip("split", "it has no training nodes")
		return nil
	}
	sp.nodes = t.count
	s.splits = append(s.splits, sp)
	s.schema.Splits = append(s.schema.Splits, ingest.Split{Name: "given", NodeType: name})
	return nil
}

// part distinguishes a mask from a list of ids, and takes one of several masks.
func (s *Source) part(a *array, t *nodeType, named bool) (*array, bool, error) {
	mask := a.Type.Kind == npy.Bool || !named && ingest.IsMaskName(a.key)
	if !a.Type.Number() || len(a.Shape) > 2 || len(a.Shape) == 0 {
		return nil, false, fmt.Errorf("%s, and a mask of all nodes or a list of some is expected", a.form())
	}
	if !mask {
		v, err := vector(a)
		return v, false, err
	}
	if len(a.Shape) == 1 {
		return a, true, t.hold(a)
	}
	// Several splits: (K, N), as in the heterophilous graphs, or (N, K), as PyTorch Geometric has
	// them.
	n, k := a.Shape[0], a.Shape[1]
	dim := 1
	switch {
	case t.count < 0:
		if t.count = max(n, k); n < k {
			dim = 0
		}
		t.from = a.name
	case k == t.count && n == t.count:
		return nil, false, fmt.Errorf("%s: a mask each node and split, and there are as many nodes; save one split alone", a.name)
	case k == t.count:
		dim = 0
	case n != t.count:
		return nil, false, fmt.Errorf("%s, and there are %d nodes by %s", a.form(), t.count, t.from)
	}
	if splits := a.Shape[dim]; int64(s.o.MaskSplit) >= splits {
		return nil, false, fmt.Errorf("%s: %s, which count from 0, and {mask_split} says %d", a.name, plural(splits, "split"), s.o.MaskSplit)
	}
	if a.Shape[dim] > 1 && len(s.splits) == 0 && strings.Contains(a.key, "train") {
		s.skip(a.key, fmt.Sprintf("split %d of %d is read; {mask_split} K takes another", s.o.MaskSplit, a.Shape[dim]))
	}
	one := a.part(a.Select(dim, int64(s.o.MaskSplit)))
	return one, true, t.hold(one)
}

// Split streams the nodes of a part.
func (s *Source) Split(ctx context.Context, split int, part ingest.Part, emit func(ingest.IDChunk) error) error {
	sp := s.splits[split]
	if sp.words != nil {
		return sp.words.emit(ctx, part, emit)
	}
	a := sp.parts[part]
	if a == nil {
		return nil
	}
	in, n := a.ids(1), a.Len()
	buf, place := make([]int64, min(ingest.ChunkRows, n)), ingest.Place{File: a.name}
	for row := int64(0); row < n; {
		if err := ctx.Err(); err != nil {
			return err
		}
		k, err := in.read(buf[:min(ingest.ChunkRows, n-row)])
		if err != nil {
			return a.fail(ctx, err)
		}
		ids := buf[:k]
		if sp.masks[part] {
			ids = buf[:0]
			for i, v := range buf[:k] {
				if v != 0 && v != 1 {
					return a.fail(ctx, fmt.Errorf("row %d: %d in a mask, which is zeros and ones", row+int64(i), v))
				}
				if v == 1 {
					ids = append(ids, row+int64(i))
				}
			}
		}
		row += int64(k)
		if len(ids) == 0 {
			continue
		}
		if err := emit(ingest.IDChunk{Place: place, IDs: ids}); err != nil {
			return err
		}
		place.First += int64(len(ids))
	}
	return nil
}
