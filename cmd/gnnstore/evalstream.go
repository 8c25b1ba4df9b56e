package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/run"
	"github.com/gnnstore/gnnstore/train/stream"
)

// openStream opens the stream of a run, in the dataset of this path, or in the one that it trained
// on where path is empty. The caller closes the dataset.
func (o *networkOptions) openStream(stderr io.Writer, p *progress, dir *run.Dir, path string) (*store.Dataset, *store.Events, error) {
	path, err := datasetOf(p, dir, path)
	if err != nil {
		return nil, nil, err
	}
	ds, err := openDataset(stderr, path, cmp.Or(o.MemoryBytes, dir.Record().Options.MemoryBytes))
	if err != nil {
		return nil, nil, err
	}
	events, err := stream.Find(ds, dir.Record().Options.Stream)
	if err != nil {
		return nil, nil, errors.Join(dir.About(err), ds.Close())
	}
	return ds, events, nil
}

// openReplay opens the network of a run on a stream. The caller holds beside bytes of memory. State
// of nodes goes to a directory in --tmp, or in tmp. done closes the network.
func (o *networkOptions) openReplay(ctx context.Context, p *progress, dir *run.Dir, ds *store.Dataset, beside int64, tmp string) (n *stream.Network, done func(), err error) {
	scratch, remove, err := scratchDir(cmp.Or(o.tmp, tmp))
	if err != nil {
		return nil, nil, err
	}
	use := o.Use
	use.Scratch = scratch
	n, err = stream.OpenNetwork(ctx, ds, dir, use, beside, run.Hooks{Note: func(s string) { p.line("note: %s", withFlags(s)) }})
	if err != nil {
		remove()
		return nil, nil, err
	}
	n.Follow(func(done, all int64) { p.show("replay", done, all, "events") })
	return n, func() {
		n.Close()
		remove()
	}, nil
}

// ofGraphs refuses flags that are of networks for graphs.
func ofGraphs(dir *run.Dir, given func(flag string) bool, flags ...string) error {
	for _, flag := range flags {
		if given(flag) {
			return fmt.Errorf("run %s: --%s is of networks for graphs, and this one learns from a stream; leave it out", dir.Path(), flag)
		}
	}
	return nil
}

// streamMeasured is the output of eval for a run on a stream. Its JSON keys are stable.
type streamMeasured struct {
	used
	// Either Stream or Labels is set.
	Stream       *run.StreamOf    `json:"stream,omitempty"`
	Labels       *stream.LabelsOf `json:"labels,omitempty"`
	BytesRead    int64            `json:"bytes_read"` // of state and features, from disk
	PeakRSSBytes int64            `json:"peak_rss_bytes"`
}

func (o *evalOptions) evalStream(ctx context.Context, stdout, stderr io.Writer, p *progress, dir *run.Dir, dataset string) error {
	if err := ofGraphs(dir, o.given, "nodes", "unseen", "way", "layer-dtype"); err != nil {
		return err
	}
	if o.Metric != "" {
		return fmt.Errorf("run %s: --metric %s: of a stream AP and AUC are measured, both, and MRR among --eval-negatives; leave it out", dir.Path(), o.Metric)
	}
	ds, events, err := o.openStream(stderr, p, dir, dataset)
	if err != nil {
		return err
	}
	defer ds.Close()
	beside := int64(0)
	if o.labels != "" {
		beside = stream.LabelBytes(events, dir.Record().Options.Hidden)
	}
	n, done, err := o.openReplay(ctx, p, dir, ds, beside, systemTmp())
	if err != nil {
		return err
	}
	defer done()
	r := streamMeasured{used: used{dir.Path(), ds.Path(), ds.Manifest().Seal, n.Used}}
	if o.labels != "" {
		r.Labels, err = n.MeasureLabels(ctx, o.labels == "after")
	} else {
		r.Stream, err = n.Measure(ctx)
	}
	if err != nil {
		return err
	}
	p.clear()
	r.BytesRead, r.PeakRSSBytes = n.BytesRead(), n.PeakRSSBytes()
	if o.json {
		return printJSON(stdout, r)
	}
	printf(stdout, "%s weights, of epoch %d\n", r.Checkpoint, r.Epoch)
	if o.labels != "" {
		printLabels(stdout, events.Stream, r.Labels)
	} else {
		printReplay(stdout, r.Stream, r.Checkpoint, dir.Record().Options.Metric)
	}
	return nil
}

// printLabels prints how well classes are told from embeddings.
func printLabels(w io.Writer, s *store.Stream, l *stream.LabelsOf) {
	two, names, labels := l.Classes == 2, s.ClassNames, "labelled events"
	if l.OfNodes {
		names, labels = s.NodeLabels.ClassNames, "labels"
	}
	head := []string{"", labels, "accuracy", "macro-F1"}
	if two {
		second := "1"
		if len(names) == 2 {
			second = names[1]
		}
		head = []string{"", labels, "of class " + second, "AP", "AUC"}
	}
	rows := [][]string{head}
	add := func(name string, events, positives int64, score *stream.LabelScore) {
		row, values := []string{name, count(events)}, []string{"-", "-"}
		if two {
			row = append(row, count(positives))
		}
		switch {
		case score == nil:
		case two:
			values = []string{fmt.Sprintf("%.2f %%", 100*score.AP), fmt.Sprintf("%.2f %%", 100*score.AUC)}
		default:
			values = []string{fmt.Sprintf("%.2f %%", 100*score.Accuracy), fmt.Sprintf("%.2f %%", 100*score.MacroF1)}
		}
		rows = append(rows, append(row, values...))
	}
	add("train", l.Train, l.Positives[0], nil)
	add("valid", l.Valid, l.Positives[1], l.ValidScore)
	add("test", l.Test, l.Positives[2], l.TestScore)
	tabulate(w, rows)
	when := "before"
	if l.After {
		when = "after"
	}
	if l.OfNodes {
		printf(w, "%d classes of nodes, told from embeddings right %s the times of their labels; learnt from %s of those to train on, in %s steps\n", l.Classes, when,
			count(l.Learnt), count(int64(l.Steps)))
		return
	}
	printf(w, "%d classes of sources, told from embeddings right %s the event; learnt from %s of the events to train on, in %s steps\n", l.Classes, when,
		count(l.Learnt), count(int64(l.Steps)))
}
