package main

import (
	"context"
	"fmt"
	"io"

	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/metric"
	"github.com/gnnstore/gnnstore/train/run"
	"github.com/gnnstore/gnnstore/train/stream"
)

// streamMeasured is the output of eval for a run on a stream. Its JSON keys are stable.
type streamMeasured struct {
	used
	// Metric is the run's metric for events. For labels it is AP with two classes and accuracy with
	// more. Valid and Test are the figures of Stream or Labels by Metric.
	Metric metric.Kind `json:"metric"`
	Valid  *float64    `json:"valid"`
	Test   *float64    `json:"test"`
	// Either Stream or Labels is set.
	Stream *run.StreamOf    `json:"stream,omitempty"`
	Labels *stream.LabelsOf `json:"labels,omitempty"`
	run.Cost
}

// checkStream refuses flags that do not go with a run on a stream.
func (o *evalOptions) checkStream(dir *run.Dir) error {
	if err := ofGraphs(dir, o.given, "nodes", "unseen", "way", "layer-dtype", "baseline"); err != nil {
		return err
	}
	if o.Metric != "" {
		return fmt.Errorf("run %s: --metric %s: of a stream AP and AUC are measured, both, and MRR among --eval-negatives; leave it out", dir.Path(), o.Metric)
	}
	return nil
}

// measureStream replays the stream and prints the figures, or how well its embeddings tell labels.
func (o *evalOptions) measureStream(ctx context.Context, stdout io.Writer, p *progress, u *usedRun) error {
	of := &u.dir.Record().Options
	if o.labels != "" {
		o.Beside = stream.LabelBytes(u.events, of.Hidden)
	}
	err := u.openIn(ctx, p, &o.networkOptions, systemTmp())
	if err != nil {
		return err
	}
	n := u.network.Stream
	r := streamMeasured{used: u.used()}
	if o.labels != "" {
		r.Labels, err = n.MeasureLabels(ctx, o.labels == "after")
	} else {
		r.Stream, err = n.Measure(ctx)
	}
	if err != nil {
		return err
	}
	p.clear()
	r.Cost = u.network.Cost()
	r.single(of.Metric)
	if o.json {
		return printJSON(stdout, r)
	}
	printf(stdout, "%s\n", r.text())
	if o.labels != "" {
		printLabels(stdout, u.events.Stream, r.Labels)
	} else {
		printReplay(stdout, r.Stream, r.Checkpoint, of.Metric)
	}
	return nil
}

// single sets Metric, Valid and Test. by is the metric of the run.
func (r *streamMeasured) single(by metric.Kind) {
	if l := r.Labels; l != nil {
		r.Metric = metric.Accuracy
		if l.Classes == 2 {
			r.Metric = metric.AP
		}
		value := func(s *stream.LabelScore) *float64 {
			switch {
			case s == nil:
				return nil
			case l.Classes == 2:
				return &s.AP
			}
			return &s.Accuracy
		}
		r.Valid, r.Test = value(l.ValidScore), value(l.TestScore)
		return
	}
	r.Metric = by
	if r.Stream.Replay == nil {
		return
	}
	value := func(b *metric.Batched) *float64 {
		if b == nil {
			return nil
		}
		v := run.OfBatched(by, *b)
		return &v
	}
	r.Valid, r.Test = value(r.Stream.Replay.Valid), value(r.Stream.Replay.Test)
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
