package stream

import (
	"context"
	"fmt"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/cachetier/mutable"
	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/pipeline"
	"github.com/gnnstore/gnnstore/train/run"
	"github.com/gnnstore/gnnstore/train/temporal"
)

// featureTable is the name of the tables that a network reads features from, of events and of
// nodes.
const featureTable = "feat"

// features has the files of features that a network reads. Each may be nil.
type features struct{ events, nodes *store.Features }

// findFeatures finds the features that a network of a kind reads. If node features are left out, it
// returns the reason.
func findFeatures(set *store.Dataset, s *store.Stream, kind model.Kind) (f features, left string) {
	f.events, _ = set.StreamTable(s.Name, featureTable)
	for i, table := range set.Manifest().Tables {
		if table.Name != featureTable || table.NodeType != s.Src && table.NodeType != s.Dst {
			continue
		}
		switch {
		case !kind.ReadsNodes():
			return f, fmt.Sprintf("features of nodes are not read: %s has no use for them", kind)
		case s.Src != s.Dst: // places are of two tables then
			return f, fmt.Sprintf("features of nodes are not read: events join two types, %s and %s, and networks for streams read those of one", s.Src, s.Dst)
		}
		f.nodes = set.Features(i)
	}
	return f, ""
}

// shape returns the shape of a network with these options that reads f.
func (f features) shape(o *run.Options) (s model.TemporalShape) {
	if f.events != nil {
		s.Event = f.events.Dim()
	}
	if f.nodes != nil {
		s.Node = f.nodes.Dim()
	} else {
		s.Node = o.Identity
	}
	if o.PairFeatures {
		s.Pair = temporal.PairColumns
	}
	return s
}

// tables has the tables whose rows steps read: each has a stack, a kind, a name and a shape in
// batches.
type tables struct {
	state  *mutable.Table   // records of nodes, by place; nil: none, or closed
	events *cachetier.Stack // features of events; as state
	nodes  *cachetier.Stack // features of nodes, by place; as state

	record temporal.Record
	stacks []*cachetier.Stack
	kinds  []string
	names  []string
	rows   []pipeline.Table
}

// Kinds of tables.
const (
	stateKind = "state"
	eventKind = "events"
	nodeKind  = "nodes"
)

// inputOf numbers the kinds of tables as temporal.Batch.Inputs does.
var inputOf = map[string]int{stateKind: 0, eventKind: 1, nodeKind: 2}

// open opens a table of records, if they have bytes, and tables of the features of stream s. next
// returns the cache of each, in this order. If onHost is set, times of records stay on the host.
func (t *tables) open(
	ctx context.Context, record temporal.Record, state mutable.Options, onHost bool,
	f features, s *store.Stream, next func() cachetier.Options,
) (err error) {
	t.record = record
	add := func(s *cachetier.Stack, kind, name string, rows pipeline.Table) {
		t.stacks, t.kinds, t.names, t.rows = append(t.stacks, s), append(t.kinds, kind), append(t.names, name), append(t.rows, rows)
	}
	if state.RowBytes = record.Bytes(); state.RowBytes > 0 {
		state.Cache = next()
		if t.state, err = mutable.Open(ctx, state); err != nil {
			return fmt.Errorf("the state of nodes: %w", err)
		}
		rows := pipeline.Table{Type: kernels.F32, Cols: record.Cols(), Lag: state.Lag}
		if onHost {
			rows.KeepFrom, rows.KeepTo = record.Times()
		}
		add(t.state.Stack, stateKind, "state of nodes", rows)
	}
	for _, of := range []struct {
		file     *store.Features
		to       **cachetier.Stack
		kind, in string
	}{{f.events, &t.events, eventKind, s.Name}, {f.nodes, &t.nodes, nodeKind, s.Src}} {
		if of.file == nil {
			continue
		}
		if *of.to, err = cachetier.Open(ctx, of.file, next()); err != nil {
			return err
		}
		add(*of.to, of.kind, of.in+"/"+featureTable, pipeline.Table{Type: elemOf(of.file), Cols: of.file.Dim()})
	}
	return nil
}

// close frees the memory of rows. Counters stay.
func (t *tables) close() {
	for _, s := range []*cachetier.Stack{t.events, t.nodes} {
		if s != nil {
			s.Close()
		}
	}
	if t.state != nil {
		t.state.Close()
	}
	t.state, t.events, t.nodes = nil, nil, nil
}

// clear resets the state of all nodes to the state before their first event.
func (t *tables) clear(ctx context.Context) error {
	if t.state == nil {
		return nil
	}
	return t.state.Clear(ctx)
}

// input returns a batch with its rows. Its Publish writes new state at once.
func (t *tables) input(b *pipeline.Gathered) temporal.Input {
	in := temporal.Input{Batch: b.Batch.(*temporal.Batch)}
	if t.state != nil {
		in.State = b.Rows[inputOf[stateKind]]
		if len(b.Kept[0]) > 0 { // state is the first table
			in.Times = b.Kept[0]
		}
		in.Publish = func(places []uint32, changes []byte) error {
			if err := t.publish(places, changes); err != nil {
				return err
			}
			return b.WriteBack(nil)
		}
	}
	if t.events != nil {
		in.Features = b.Rows[inputOf[eventKind]]
	}
	if t.nodes != nil {
		in.NodeFeatures = b.Rows[inputOf[nodeKind]]
	}
	return in
}

// publish writes the changed records of the next step that is to be written back.
func (t *tables) publish(places []uint32, changes []byte) error {
	r, n := t.record, t.record.ChangeBytes()
	if r.Whole() {
		return t.state.Write(places, changes)
	}
	return t.state.Update(places, func(i int, record []byte) { r.Apply(record, changes[i*n:][:n]) })
}

// stats returns the counters of each table.
func (t *tables) stats() (all []cachetier.Stats) {
	for _, s := range t.stacks {
		all = append(all, s.Stats())
	}
	return all
}

// report sets r's counters of rows: the totals, and the counters of each table. A counter is the
// sum of done, which this process counted, and before, which earlier processes counted.
func (t *tables) report(r *run.Result, done, before []cachetier.Stats) {
	if len(done) == 0 { // no step was taken
		done = t.stats()
		for i := range done {
			done[i] = done[i].Sub(done[i])
		}
	}
	all := cachetier.Combine(nil, done, before, cachetier.Stats.Add)
	r.Stats, r.Tables = cachetier.Sum(all), nil
	if len(all) < 2 {
		return
	}
	for i := range all {
		r.Tables = append(r.Tables, run.TableOf{Type: t.names[i], Kind: t.kinds[i], Stats: all[i]})
	}
}

// elemOf returns the type of a table's rows.
func elemOf(f *store.Features) kernels.DType {
	if f.Elem() == store.F16 {
		return kernels.F16
	}
	return kernels.F32
}
