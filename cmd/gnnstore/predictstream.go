package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/gnnstore/gnnstore/ingest/export"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train"
	"github.com/gnnstore/gnnstore/train/run"
	"github.com/gnnstore/gnnstore/train/stream"
	"github.com/gnnstore/gnnstore/train/temporal"
)

// streamPredicted is the output of predict for a stream. Its JSON keys are stable.
type streamPredicted struct {
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
	PeakRSSBytes int64 `json:"peak_rss_bytes"`
}

// checkStream refuses flags that do not go with a run on a stream.
func (o *predictOptions) checkStream(dir *run.Dir) error {
	if err := ofGraphs(dir, o.given, "layer", "relation", "edges", "pairs", "top", "exclude-known", "unseen", "way", "layer-dtype", "plan"); err != nil {
		return err
	}
	if o.what == "" {
		o.what = train.Embeddings
		if o.events != "" {
			o.what = train.Scores
		}
	}
	fail := func(format string, args ...any) error {
		return fmt.Errorf("run %s: %w", dir.Path(), fmt.Errorf(format, args...))
	}
	switch {
	case export.Format(o.format) == export.OGBLSC:
		return fail("--format ogb-lsc: the run learnt from a stream, and the challenge is about nodes of a graph")
	case o.what != train.Embeddings && o.what != train.Scores:
		return fail("--what %s: it learnt from a stream, of which there are embeddings and scores", o.what)
	case o.what == train.Embeddings && o.events != "":
		return fail("--events goes with --what scores; embeddings are of --nodes")
	case o.what == train.Scores && o.events == "":
		return fail("--what scores needs --events FILE, with the columns src, dst and time")
	case o.what == train.Scores:
		for _, flag := range []string{"at", "type", "nodes"} {
			if o.given(flag) {
				return fail("--%s goes with --what embeddings; --events says itself which nodes and times", flag)
			}
		}
	}
	return nil
}

// predictStream writes embeddings of nodes at a time, or scores of pairs at times.
func (o *predictOptions) predictStream(ctx context.Context, stdout, stderr io.Writer, p *progress, dir *run.Dir, dataset, out string, began time.Time) (err error) {
	if err := o.checkStream(dir); err != nil {
		return err
	}
	ds, events, err := o.openStream(stderr, p, dir, dataset)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ds.Close()) }()
	r := &streamPredicted{
		used: used{Run: dir.Path(), Dataset: ds.Path(), Seal: ds.Manifest().Seal}, Stream: events.Stream.Name, What: o.what,
		Columns: 1, written: written{Out: out},
	}
	write := o.embedNodes
	if o.what == train.Scores {
		write = o.scoreEvents
	}
	report, err := write(ctx, p, dir, ds, events, r)
	if err != nil {
		return err
	}
	p.clear()
	r.written = wrote(out, report, r.BytesRead, began)
	if o.json {
		return printJSON(stdout, r)
	}
	printf(stdout, "%s weights, of epoch %d\n", r.Checkpoint, r.Epoch)
	of := fmt.Sprintf("%s pairs", count(int64(r.Rows)))
	if r.At != nil {
		when := "after the last event"
		if o.at != "" {
			when = "at " + o.at
		}
		of = fmt.Sprintf("%s nodes of type %s %s, by stored order", count(int64(r.Rows)), r.Target, when)
	}
	printf(stdout, "%s of %s, %s\n", r.What, of, r.text())
	return nil
}

// replayed opens the network, and notes whose it is and, at the end, what it read.
func (o *predictOptions) replayed(ctx context.Context, p *progress, dir *run.Dir, ds *store.Dataset, beside int64, r *streamPredicted) (*stream.Network, func(), error) {
	n, done, err := o.openReplay(ctx, p, dir, ds, beside, filepath.Dir(r.Out))
	if err != nil {
		return nil, nil, err
	}
	r.Used = n.Used
	return n, func() {
		r.BytesRead, r.PeakRSSBytes = n.BytesRead(), n.PeakRSSBytes()
		done()
	}, nil
}

// idsOf returns the ids of a type of nodes.
func idsOf(ds *store.Dataset, kind string) store.IDs {
	return ds.IDs(slices.IndexFunc(ds.Manifest().NodeTypes, func(t store.NodeType) bool { return t.Name == kind }))
}

func (o *predictOptions) embedNodes(ctx context.Context, p *progress, dir *run.Dir, ds *store.Dataset, e *store.Events, r *streamPredicted) (*export.RowsReport, error) {
	s := e.Stream
	switch {
	case o.kind == "" && s.Src != s.Dst:
		return nil, fmt.Errorf("run %s: events of stream %s join nodes of the types %s and %s; say by --type which of them to predict", dir.Path(), s.Name, s.Src, s.Dst)
	case o.kind == "":
		o.kind = s.Src
	case o.kind != s.Src && o.kind != s.Dst:
		return nil, fmt.Errorf("run %s: --type %s: no such nodes have events of stream %s", dir.Path(), o.kind, s.Name)
	}
	at, err := o.timeOf(e)
	if err != nil {
		return nil, err
	}
	first, total := int64(0), e.Sources
	if o.kind != s.Src {
		first, total = e.Place(0), e.Destinations
	}
	ids := idsOf(ds, o.kind)
	var nodes []uint32
	switch o.nodes {
	case "train", "valid", "test":
		return nil, fmt.Errorf("run %s: --nodes %s: the split of a stream is of events; give all, or a file with an id a line", dir.Path(), o.nodes)
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
	n, done, err := o.replayed(ctx, p, dir, ds, int64(12*len(nodes)), r)
	if err != nil {
		return nil, err
	}
	defer done()
	r.Target, r.Nodes, r.At, r.Rows, r.Columns = o.kind, o.nodes, &at, len(nodes), n.Columns()
	return export.WriteRows(r.Out, ids, export.RowOptions{
		Format: export.Format(o.format), Kind: export.Vector, Column: "embedding", Cols: r.Columns, Rows: int64(r.Rows), Force: o.force,
	}, func(add func([]store.NodeID, []float32) error) error {
		written := 0
		return n.Embeddings(ctx, at, places, func(some []uint32, rows []float32) error {
			of := nodes[written:][:len(some)]
			written += len(some)
			return add(of, rows)
		})
	})
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

func (o *predictOptions) scoreEvents(ctx context.Context, p *progress, dir *run.Dir, ds *store.Dataset, e *store.Events, r *streamPredicted) (*export.RowsReport, error) {
	s := e.Stream
	file := &pairFile{
		path: o.events, flag: "events", columns: timedColumns, types: [2]string{s.Src, s.Dst}, ids: [2]store.IDs{idsOf(ds, s.Src), idsOf(ds, s.Dst)},
		checkTime: func(t float64) error { return stream.CheckTime(e, t) },
	}
	p.show("read events", 0, 0, "pairs")
	var pairs []temporal.Ask
	err := file.guarded(func(some train.Pairs) error {
		for i, u := range some.Src {
			pairs = append(pairs, temporal.Ask{Src: u, Dst: uint32(e.Place(some.Dst[i])), Time: file.times[len(pairs)]})
		}
		return ctx.Err()
	})
	if err != nil {
		return nil, err
	}
	n, done, err := o.replayed(ctx, p, dir, ds, int64(pairBytes*len(pairs)), r)
	if err != nil {
		return nil, err
	}
	defer done()
	r.Events, r.Rows = o.events, len(pairs)
	return export.WritePairs(r.Out, export.Pairs{Src: file.ids[0], Dst: file.ids[1], Times: file.times}, export.RowOptions{
		Format: export.Format(o.format), Kind: export.Numbers, Names: []string{"score"}, Cols: 1, Rows: int64(r.Rows), Force: o.force,
	}, func(add addPairs) error {
		scores, err := n.Scores(ctx, pairs)
		for i := 0; i < len(scores) && err == nil; i++ {
			err = add([]store.NodeID{pairs[i].Src}, []store.NodeID{pairs[i].Dst - uint32(e.Place(0))}, nil, scores[i:i+1])
		}
		return err
	})
}
