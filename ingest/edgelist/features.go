package edgelist

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/jsonmap"
	"github.com/gnnstore/gnnstore/ingest/lines"
)

// featureMap is a JSON map from a node's id to the columns where its row is one.
type featureMap struct {
	path    string
	dim     int
	entries int64
	missing int64 // nodes without a list, once it was loaded
}

// each reads the map: visit gets each node's id and reads its list.
func (f *featureMap) each(ctx context.Context, visit func(in *jsonmap.Scanner, id int64) error) error {
	return jsonmap.Each(ctx, f.path, func(in *jsonmap.Scanner, key []byte) error {
		id, ok := lines.ID(key)
		if !ok {
			return in.Errorf("key %q is not the id of a node; a map of features goes from ids to lists of columns",
				lines.ClipText(string(key)))
		}
		return visit(in, id)
	})
}

// scan finds the number of columns.
func (f *featureMap) scan(ctx context.Context) error {
	f.dim, f.entries = 0, 0
	return f.each(ctx, func(in *jsonmap.Scanner, id int64) error {
		list, err := in.Values(func(v int64) error {
			if v < 0 || v >= ingest.MaxColumns {
				return in.Errorf("node %d: %d is not a column; columns count from 0 to %d", id, v, ingest.MaxColumns-1)
			}
			f.dim = max(f.dim, int(v)+1)
			f.entries++
			return nil
		})
		if err == nil && !list {
			err = in.Errorf("node %d has a number, and a list of columns is expected", id)
		}
		return err
	})
}

// load reads the lists by row: the columns of row i are columns[start[i]:start[i+1]]. lacks is the
// first row without a list, -1 when all have one.
func (f *featureMap) load(ctx context.Context, rows int64, rowOf func(id int64) (row int64, ok bool)) (
	start []int64, columns []int32, lacks int64, err error,
) {
	lacks = -1
	const listed = 1 << 62 // a row whose list was read, so that a second one is told
	start = make([]int64, rows+1)
	err = f.each(ctx, func(in *jsonmap.Scanner, id int64) error {
		row, ok := rowOf(id)
		if !ok {
			return in.Errorf("node %d is not in the graph; name the table of all nodes with {nodes}", id)
		}
		if start[row+1] != 0 {
			return in.Errorf("node %d is there twice", id)
		}
		start[row+1] = listed
		_, err := in.Values(func(int64) error { start[row+1]++; return nil })
		return err
	})
	if err != nil {
		return nil, nil, 0, err
	}
	f.missing = 0
	for row := range rows {
		if start[row+1] == 0 {
			f.missing++
			if lacks < 0 {
				lacks = row
			}
		}
		start[row+1] = start[row] + start[row+1]&^listed
	}
	if start[rows] != f.entries {
		return nil, nil, 0, errChanged(f.path)
	}
	columns = make([]int32, f.entries)
	next := slices.Clone(start[:rows])
	err = f.each(ctx, func(in *jsonmap.Scanner, id int64) error {
		row, ok := rowOf(id)
		if !ok {
			return errChanged(f.path)
		}
		_, err := in.Values(func(v int64) error {
			if v < 0 || v >= int64(f.dim) || next[row] >= start[row+1] {
				return errChanged(f.path)
			}
			columns[next[row]] = int32(v)
			next[row]++
			return nil
		})
		return err
	})
	return start, columns, lacks, err
}

func errChanged(path string) error {
	return errors.New(path + ": the file changed while it was read")
}

// rowIndex finds the row of an id.
type rowIndex struct {
	ids  []int64 // of a row; nil: ids are rows
	byID []int32 // rows by ascending id; nil: ids ascend
	rows int64
}

func newRowIndex(ids []int64, rows int64) *rowIndex {
	x := &rowIndex{ids: ids, rows: rows}
	if !slices.IsSorted(ids) {
		x.byID = make([]int32, len(ids))
		for i := range x.byID {
			x.byID[i] = int32(i)
		}
		slices.SortFunc(x.byID, func(a, b int32) int { return cmp.Compare(ids[a], ids[b]) })
	}
	return x
}

func (x *rowIndex) row(id int64) (int64, bool) {
	switch {
	case x.ids == nil:
		return id, id < x.rows
	case x.byID == nil:
		i, ok := slices.BinarySearch(x.ids, id)
		return int64(i), ok
	}
	i, ok := slices.BinarySearchFunc(x.byID, id, func(row int32, id int64) int { return cmp.Compare(x.ids[row], id) })
	if !ok {
		return 0, false
	}
	return int64(x.byID[i]), true
}
