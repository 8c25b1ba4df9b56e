package main

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/gnnstore/gnnstore/ingest/export"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/graph"
	"github.com/gnnstore/gnnstore/train/run"
	"github.com/gnnstore/gnnstore/train/stream"
	"github.com/gnnstore/gnnstore/train/temporal"
)

// streamResult is the output of predict for a stream.
type streamResult struct {
	used
	Stream  string   `json:"stream"`
	What    string   `json:"what"`
	Target  string   `json:"target,omitempty"` // of embeddings: type of the nodes
	Nodes   string   `json:"nodes,omitempty"`
	At      *float64 `json:"at,omitempty"`     // their time
	Events  string   `json:"events,omitempty"` // of scores: file
	Columns int      `json:"columns"`          // numbers a row
	Rows    int      `json:"rows"`
	written

	when string // At in words
}

// checkStream refuses flags that do not go with a run on a stream.
func (o *predictOptions) checkStream(dir *run.Dir) error {
	if err := ofGraphs(dir, o.given, "layer", "relation", "edges", "pairs", "top", "exclude-known", "unseen", "way", "layer-dtype", "plan"); err != nil {
		return err
	}
	if o.what == "" {
		o.what = graph.Embeddings
		if o.events != "" {
			o.what = graph.Scores
		}
	}
	fail := func(format string, args ...any) error {
		return fmt.Errorf("run %s: %w", dir.Path(), fmt.Errorf(format, args...))
	}
	switch {
	case export.Format(o.format) == export.OGBLSC:
		return fail("--format ogb-lsc: the run learnt from a stream, and the challenge is about nodes of a graph")
	case o.what != graph.Embeddings && o.what != graph.Scores:
		return fail("--what %s: it learnt from a stream, of which there are embeddings and scores", o.what)
	case o.what == graph.Embeddings && o.events != "":
		return fail("--events goes with --what scores; embeddings are of --nodes")
	case o.what == graph.Scores && o.events == "":
		return fail("--what scores needs --events FILE, with the columns src, dst and time")
	case o.what == graph.Scores:
		for _, flag := range []string{"at", "type", "nodes"} {
			if o.given(flag) {
				return fail("--%s goes with --what embeddings; --events says itself which nodes and times", flag)
			}
		}
	}
	return nil
}

// text describes the rows.
func (r *streamResult) text() string {
	if r.At == nil {
		return fmt.Sprintf("%s of %s pairs", r.What, count(int64(r.Rows)))
	}
	return fmt.Sprintf("%s of %s nodes of type %s %s, by stored order", r.What, count(int64(r.Rows)), r.Target, r.when)
}

// askStream asks for embeddings of nodes at a time, or for scores of pairs at times.
func (o *predictOptions) askStream(ctx context.Context, p *progress, u *usedRun, out string) (*prediction, error) {
	r := &streamResult{Stream: u.events.Stream.Name, What: o.what, Columns: 1, when: "after the last event"}
	if o.at != "" {
		r.when = "at " + o.at
	}
	ask := o.embedNodes
	if o.what == graph.Scores {
		ask = o.scoreEvents
	}
	write, err := ask(ctx, p, u, out, r)
	if err != nil {
		return nil, err
	}
	r.used = u.used()
	return &prediction{result: r, write: write, text: r.text}, nil
}

// idsOf returns the ids of a type of nodes.
func idsOf(ds *store.Dataset, kind string) store.IDs {
	return ds.IDs(slices.IndexFunc(ds.Manifest().NodeTypes, func(t store.NodeType) bool { return t.Name == kind }))
}

// embedNodes opens the network, and returns a function that writes embeddings.
func (o *predictOptions) embedNodes(
	ctx context.Context, p *progress, u *usedRun, out string, r *streamResult,
) (write func() (*export.RowsReport, error), err error) {
	e, path := u.events, u.dir.Path()
	s := e.Stream
	switch {
	case o.kind == "" && s.Src != s.Dst:
		return nil, fmt.Errorf("run %s: events of stream %s join nodes of the types %s and %s; say by --type which of them to predict", path, s.Name, s.Src, s.Dst)
	case o.kind == "":
		o.kind = s.Src
	case o.kind != s.Src && o.kind != s.Dst:
		return nil, fmt.Errorf("run %s: --type %s: no such nodes have events of stream %s", path, o.kind, s.Name)
	}
	at, err := o.timeOf(e)
	if err != nil {
		return nil, err
	}
	first, total := int64(0), e.Sources
	if o.kind != s.Src {
		first, total = e.Place(0), e.Destinations
	}
	ids := idsOf(u.ds, o.kind)
	var nodes []uint32
	switch o.nodes {
	case "train", "valid", "test":
		return nil, fmt.Errorf("run %s: --nodes %s: the split of a stream is of events; give all, or a file with an id a line", path, o.nodes)
	case "all":
		for v := range uint32(total) {
			nodes = append(nodes, v)
		}
	default:
		if nodes, err = nodesOf(ctx, o.nodes, ids, int(total)); err != nil {
			return nil, err
		}
	}
	places := make([]uint32, len(nodes))
	for i, v := range nodes {
		places[i] = uint32(first) + v
	}
	o.Beside = int64(12 * len(nodes))
	if err := u.openIn(ctx, p, &o.networkOptions, filepath.Dir(out)); err != nil {
		return nil, err
	}
	n := u.network.Stream
	r.Target, r.Nodes, r.At, r.Rows, r.Columns = o.kind, o.nodes, &at, len(nodes), n.Columns()
	form := export.RowOptions{
		Format: export.Format(o.format), Kind: export.Vector, Column: "embedding", Cols: r.Columns, Rows: int64(r.Rows), Force: o.force,
	}
	return func() (*export.RowsReport, error) {
		return export.WriteRows(out, ids, form, func(add func([]store.NodeID, []float32) error) error {
			written := 0
			return n.Embeddings(ctx, at, places, func(some []uint32, rows []float32) error {
				of := nodes[written:][:len(some)]
				written += len(some)
				return add(of, rows)
			})
		})
	}, nil
}

// timeOf returns --at, or the time right after the last event.
func (o *predictOptions) timeOf(e *store.Events) (at float64, err error) {
	if o.at == "" {
		err = store.Guard(func() error {
			if n := e.Len(); n > 0 {
				at = math.Nextafter(e.Times(n-1, n)[0], math.Inf(1))
			}
			return nil
		})
	} else if at, err = strconv.ParseFloat(o.at, 64); err != nil {
		return 0, fmt.Errorf("--at %s: it is no number; times are in the units of the stream", o.at)
	}
	if err == nil {
		err = stream.CheckTime(e, at)
	}
	if err != nil && o.at != "" {
		err = fmt.Errorf("--at %s: %w", o.at, err)
	}
	return at, err
}

// pairBytes is the memory of a pair here and in Scores.
const pairBytes = 64

// scoreEvents opens the network, and returns a function that writes scores of pairs.
func (o *predictOptions) scoreEvents(
	ctx context.Context, p *progress, u *usedRun, out string, r *streamResult,
) (write func() (*export.RowsReport, error), err error) {
	e, s := u.events, u.events.Stream
	file := &pairFile{
		path: o.events, flag: "events", columns: timedColumns, types: [2]string{s.Src, s.Dst}, ids: [2]store.IDs{idsOf(u.ds, s.Src), idsOf(u.ds, s.Dst)},
		checkTime: func(t float64) error { return stream.CheckTime(e, t) },
	}
	p.show("read events", 0, 0, "pairs")
	var pairs []temporal.Ask
	err = file.guarded(func(some graph.Pairs) error {
		for i, u := range some.Src {
			pairs = append(pairs, temporal.Ask{Src: u, Dst: uint32(e.Place(some.Dst[i])), Time: file.times[len(pairs)]})
		}
		return ctx.Err()
	})
	if err != nil {
		return nil, err
	}
	o.Beside = int64(pairBytes * len(pairs))
	if err := u.openIn(ctx, p, &o.networkOptions, filepath.Dir(out)); err != nil {
		return nil, err
	}
	r.Events, r.Rows = o.events, len(pairs)
	of := export.Pairs{Src: file.ids[0], Dst: file.ids[1], Times: file.times}
	form := export.RowOptions{
		Format: export.Format(o.format), Kind: export.Numbers, Names: []string{"score"}, Cols: 1, Rows: int64(r.Rows), Force: o.force,
	}
	return func() (*export.RowsReport, error) {
		return export.WritePairs(out, of, form, func(add addPairs) error {
			scores, err := u.network.Stream.Scores(ctx, pairs)
			for i := 0; i < len(scores) && err == nil; i++ {
				err = add([]store.NodeID{pairs[i].Src}, []store.NodeID{pairs[i].Dst - uint32(e.Place(0))}, nil, scores[i:i+1])
			}
			return err
		})
	}, nil
}
