package graph

import (
	"context"

	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/run"
	tasks "github.com/gnnstore/gnnstore/train/task"
)

// compareBaseline measures an answer without a network on the parts where the network was measured.
// It notes if the network is not better, and if it gives the same answer everywhere.
func (t *trainer) compareBaseline(ctx context.Context) error {
	best := &t.Result.Best
	t.Result.Baseline = nil // an earlier part of the run may have left one
	if len(t.Result.Epochs) == 0 || best.TestAcc == nil && best.ValidAcc == nil {
		return nil
	}
	for part, network := range [...]*float64{tasks.Valid: best.ValidAcc, tasks.Test: best.TestAcc} {
		if network == nil {
			continue
		}
		b, err := baselineOf(ctx, t.task, tasks.Part(part))
		if err != nil {
			return err
		}
		if b == nil {
			continue
		}
		if t.Result.Baseline == nil {
			t.Result.Baseline = &run.BaselineOf{What: b.What}
		}
		if tasks.Part(part) == tasks.Valid {
			t.Result.Baseline.Valid = &b.Value
		} else {
			t.Result.Baseline.Test = &b.Value
		}
		if !t.task.Kind().Better(*network, b.Value) {
			t.Note("the network is not better than %s on the %v part", b.What, tasks.Part(part))
		}
	}
	if c := t.Result.Constant; c != "" {
		t.Note("the network gives one answer for all of the test part, %s", c)
	}
	return nil
}

// baselineOf measures an answer without a network on a part of the split. It returns nil if there
// is no such answer.
func baselineOf(ctx context.Context, t task, part tasks.Part) (b *tasks.Baseline, err error) {
	var nodes [][]uint32
	if err := store.Guard(func() error {
		nodes, err = t.Part(ctx, part)
		return err
	}); err != nil {
		return nil, err
	}
	return t.Baseline(ctx, nodes)
}
