package graph

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/gnnstore/gnnstore/cachetier/policy"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/run"
	"github.com/gnnstore/gnnstore/train/step"
	"github.com/gnnstore/gnnstore/train/tiers"
)

// checkFiles refuses files of rows for types that learn none, and files of another width. The files
// are named by their types.
func (r *learntRows) checkFiles(files map[string]string) error {
	for name, path := range files {
		if r.data.OwnPart() != nil {
			return fmt.Errorf("{init_rows} %s=%s: it names nodes by ids, and a part has ids of its own nodes alone; "+
				"give the whole dataset", name, path)
		}
		i := slices.IndexFunc(r.tiers.Learnt, func(l tiers.Learnt) bool { return r.typeOf(l).Name == name })
		if i < 0 {
			return fmt.Errorf("{init_rows} %s=%s: no rows of type %s are learnt; have them learnt by {input} %s=embed:D, or leave the file out",
				name, path, name, name)
		}
		f, err := r.open(r.tiers.Learnt[i], path)
		if err != nil {
			return fmt.Errorf("{init_rows} %w", err)
		}
		if err := f.Close(); err != nil {
			return err
		}
	}
	return nil
}

// open opens the file that has rows for l.
func (r *learntRows) open(l tiers.Learnt, path string) (run.RowFile, error) {
	open := r.run.Hooks.OpenRows
	if open == nil {
		return nil, fmt.Errorf("%s: nobody here reads files of rows", path)
	}
	f, err := open(path, r.data.IDs(l.Type))
	if err != nil {
		return nil, err
	}
	if f.Cols() != l.Dim {
		name := r.typeOf(l).Name
		err := fmt.Errorf("%s has rows of %d columns, and those of type %s have %d; use {input} %s=embed:%d", path, f.Cols(), name, l.Dim, name, f.Cols())
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// put initialises the rows of l from a file. Rows of nodes that are not in it stay as drawn.
func (r *learntRows) put(ctx context.Context, l tiers.Learnt, path string) (err error) {
	f, err := r.open(l, path)
	if err != nil {
		return err
	}
	defer f.Close()
	d, size := r.typeOf(l), l.RowBytes()
	seen, given := make(policy.Set, policy.SetWords(d.Nodes)), 0
	var record []byte
	var order []int
	err = f.Each(ctx, func(nodes []store.NodeID, rows []float32) error {
		order = order[:0]
		for i, v := range nodes {
			if seen.Has(v) {
				return fmt.Errorf("%s: node %s is in it twice", path, r.data.Name(l.Type, v))
			}
			seen.Add(v)
			if c := step.NotFinite(rows[i*l.Dim : (i+1)*l.Dim]); c >= 0 {
				return fmt.Errorf("%s: column %d of node %s is %v", path, c, r.data.Name(l.Type, v), rows[i*l.Dim+c])
			}
			if _, own := r.part.TableRows().Row(v); own { // owners of a whole go by the rule
				order = append(order, i)
			}
		}
		given += len(nodes)
		slices.SortFunc(order, func(a, b int) int { return int(nodes[a]) - int(nodes[b]) })
		if need := len(nodes) * size; len(record) < need {
			record = make([]byte, need)
		}
		for at, i := range order { // the optimizer's part of each record stays zero
			for c, x := range rows[i*l.Dim : (i+1)*l.Dim] {
				binary.LittleEndian.PutUint32(record[at*size+4*c:], math.Float32bits(x))
			}
		}
		return l.Put(len(order), func(i int) (uint32, []byte) { return nodes[order[i]], record[i*size : (i+1)*size] })
	})
	if err != nil {
		return err
	}
	if given < d.Nodes {
		r.run.Note("%d of the %d nodes of type %s have no row in %s, and begin with rows that are drawn", d.Nodes-given, d.Nodes, d.Name, path)
	}
	return l.Reload(ctx)
}
