package graph

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/run"
)

// MeanOfLearnt gives nodes without a learnt row the mean of all rows of their type.
const MeanOfLearnt = "mean"

// learntElsewhere has the rows that a run has learnt, as tables for the nodes of another dataset
// that have the same ids. The tables are a sealed dataset of their own, which close removes.
type learntElsewhere struct {
	dir    string
	lock   *store.Lock
	set    *store.Dataset
	tables map[string]*store.Features // by type
}

// learntPart is the number of nodes that are handled at a time, and learntBytes the bytes of rows.
const learntPart, learntBytes = 1 << 14, 1 << 20

// bringLearnt writes the learnt rows of o's checkpoint for the nodes of ds.
func bringLearnt(
	ctx context.Context, ds *store.Dataset, dir *run.Dir, o NetworkOptions, h run.Hooks, faults disk.Faults,
) (_ *learntElsewhere, err error) {
	if n := dir.Owners(); n > 0 {
		return nil, fmt.Errorf("its learnt rows are dealt out among %d workers, which bring them to no other dataset; "+
			"use it on the dataset that it trained on", n)
	}
	own, err := store.Open(dir.Record().Dataset)
	if err != nil {
		return nil, fmt.Errorf("it has learnt rows, which it finds by the ids of the dataset that it trained on: %w", err)
	}
	defer own.Close()
	at := o.Scratch
	if at == "" {
		at = filepath.Join(os.TempDir(), fmt.Sprintf("gnnstore-%d", os.Getpid()))
	}
	l := &learntElsewhere{dir: at + ".learnt", tables: map[string]*store.Features{}}
	if l.lock, err = store.TakeLock(vfs.Default, l.dir+".lock"); errors.Is(err, store.ErrLocked) {
		return nil, fmt.Errorf("%s: somebody else keeps learnt rows there; wait for the end of that, or name another place", l.dir)
	}
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			l.close()
		}
	}()
	if err := removeLearnt(l.dir); err != nil {
		return nil, err
	}
	o.Metric, o.EvalNegatives, o.GoesOn = "", "", false
	most := int64(0)
	for _, t := range ds.Manifest().NodeTypes {
		most = max(most, t.Count)
	}
	h = run.Hooks{Backend: h.Backend, Note: h.Note}
	o.Beside = 4 * most // see writeLearnt
	n, err := openNetwork(ctx, own, dir, o, h, internal{faults: faults})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, n.Close()) }()
	if !n.c.learnt.any() { // since no batch reaches a type that has some
		return l, nil
	}
	if err := l.write(ctx, n, ds, o.Unseen); err != nil {
		return nil, err
	}
	if l.set, err = store.Open(l.dir); err != nil {
		return nil, err
	}
	for i, t := range l.set.Manifest().Tables {
		l.tables[t.NodeType] = l.set.Features(i)
	}
	return l, nil
}

// removeLearnt removes the dataset that a learntElsewhere left in dir, and nothing else.
func removeLearnt(dir string) error {
	ds, err := store.Open(dir)
	if err != nil {
		return nil // it is not there, or not ours, and store.Create will refuse it
	}
	defer ds.Close()
	if ds.Manifest().Name != learntName {
		return nil
	}
	return os.RemoveAll(dir)
}

// learntName is the name of the dataset.
const learntName = "learnt"

// write writes the tables of the types whose rows n has learnt.
func (l *learntElsewhere) write(ctx context.Context, n *Network, ds *store.Dataset, unseen string) error {
	w, err := store.Create(l.dir, store.WriterOptions{})
	if err != nil {
		return err
	}
	for _, t := range n.c.tiers.Learnt {
		if err := store.Guard(func() error { return writeLearnt(ctx, w, n, t.Type, ds, unseen) }); err != nil {
			return errors.Join(err, w.Abort())
		}
	}
	_, err = w.Seal(store.Manifest{Name: learntName, Order: "original", Provenance: store.Provenance{Tool: "gnnstore", Source: n.c.Dir.Path()}})
	return err
}

// writeLearnt writes the learnt rows of n's type kind, for ds's nodes of the type of that name.
func writeLearnt(ctx context.Context, w *store.Writer, n *Network, kind int, ds *store.Dataset, unseen string) error {
	name, dim, ids := n.c.data.Types[kind].Name, n.c.data.Types[kind].Dim(), n.c.data.IDs(kind)
	number, nodes := 0, int64(0)
	for i, t := range ds.Manifest().NodeTypes {
		if t.Name == name {
			number, nodes = i, t.Count
		}
	}
	theirs := ds.IDs(number)
	from, without, first := make([]uint32, nodes), 0, ""
	for v := range from {
		if v%learntPart == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		u, text, ok, err := sameNode(theirs, ids, uint32(v))
		if err != nil {
			return err
		}
		from[v] = u
		if ok {
			continue
		}
		if without++; without == 1 {
			first = text
		}
		from[v] = noRow
	}
	if without > 0 && unseen == "" {
		return fmt.Errorf("%d of the %d nodes of type %s in %s have no learnt row, since the dataset that it trained on has no such ids; the first is %s; "+
			"leave them out, or take {unseen} mean", without, nodes, name, ds.Path(), first)
	}
	if err := writeNumbers(w, name, nodes); err != nil {
		return err
	}
	table, err := w.AddTable("learnt", name, store.F32, nodes, dim)
	if err != nil {
		return err
	}
	var mean []float32
	if without > 0 {
		if mean, err = n.meanLearnt(ctx, kind); err != nil {
			return err
		}
	}
	var bytes []byte
	lo := 0
	for part := range slices.Chunk(from, max(1, learntBytes/(4*dim))) {
		rows, err := n.learntRows(ctx, kind, part, mean)
		if err != nil {
			return err
		}
		bytes = bytes[:0]
		for _, x := range rows {
			bytes = binary.LittleEndian.AppendUint32(bytes, math.Float32bits(x))
		}
		if err := table.PutRows(uint32(lo), bytes); err != nil {
			return err
		}
		lo += len(part)
	}
	return table.Close()
}

// noRow stands for a node that has no learnt row.
const noRow = math.MaxUint32

// writeNumbers writes a node type whose ids are the numbers from 0.
func writeNumbers(w *store.Writer, name string, nodes int64) error {
	ids, err := w.NewNodeType(name, nodes)
	if err != nil {
		return err
	}
	original, order := make([]int64, 0, learntPart), make([]uint32, 0, learntPart)
	for lo := int64(0); lo < nodes && err == nil; lo += learntPart {
		original, order = original[:0], order[:0]
		for v := lo; v < min(lo+learntPart, nodes); v++ {
			original, order = append(original, v), append(order, uint32(v))
		}
		err = errors.Join(ids.AppendOriginal(original), ids.AppendOrder(order))
	}
	return errors.Join(err, ids.Close())
}

// sameNode finds the node u of ids whose name or number is the one of node v in theirs, which it
// returns as text. ok is false if there is none.
func sameNode(theirs, ids store.IDs, v uint32) (u uint32, text string, ok bool, err error) {
	switch {
	case theirs.HasNames() != ids.HasNames():
		return 0, "", false, errors.New("nodes are known by texts in one of the two datasets, and by numbers in the other; ingest them alike")
	case ids.HasNames():
		if text, err = theirs.Name(v); err == nil {
			u, ok, err = ids.Find([]byte(text))
		}
		return u, text, ok, err
	}
	id := theirs.Original(v)
	u, ok = ids.Stored(id)
	return u, strconv.FormatInt(id, 10), ok, nil
}

// learntRows returns the learnt rows of nodes of type kind, one after the other. A node noRow gets
// mean.
func (n *Network) learntRows(ctx context.Context, kind int, nodes []uint32, mean []float32) (rows []float32, err error) {
	dim := n.c.data.Types[kind].Dim()
	rows = make([]float32, len(nodes)*dim)
	var wanted []uint32
	var places []int
	for i, v := range nodes {
		if v == noRow {
			copy(rows[i*dim:], mean)
			continue
		}
		wanted, places = append(wanted, v), append(places, i)
	}
	at := 0
	err = n.Predict(ctx, Embeddings, 0, kind, wanted, func(some []uint32, got []float32) error {
		for i := range some {
			copy(rows[places[at]*dim:][:dim], got[i*dim:])
			at++
		}
		return nil
	})
	return rows, err
}

// meanLearnt returns the mean of all rows of type kind, including rows that no step has changed.
func (n *Network) meanLearnt(ctx context.Context, kind int) ([]float32, error) {
	nodes := int64(n.c.data.Types[kind].Nodes)
	sums := make([]float64, n.c.data.Types[kind].Dim())
	var some []uint32
	part := max(1, learntBytes/(4*int64(len(sums))))
	for lo := int64(0); lo < nodes; lo += part {
		some = some[:0]
		for v := lo; v < min(lo+part, nodes); v++ {
			some = append(some, uint32(v))
		}
		rows, err := n.learntRows(ctx, kind, some, nil)
		if err != nil {
			return nil, err
		}
		for i, x := range rows {
			sums[i%len(sums)] += float64(x)
		}
	}
	mean := make([]float32, len(sums))
	for i, x := range sums {
		mean[i] = float32(x / float64(max(nodes, 1)))
	}
	return mean, nil
}

// close removes the rows.
func (l *learntElsewhere) close() {
	if l.set != nil {
		l.set.Close()
	}
	_ = removeLearnt(l.dir) // the next one of the same name does it otherwise
	_ = l.lock.Release()
}
