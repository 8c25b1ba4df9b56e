package graph

import (
	"slices"

	"github.com/gnnstore/gnnstore/train/data"
	"github.com/gnnstore/gnnstore/train/run"
)

// settle chooses the options that are left to the run. If it shortens an epoch it returns the steps
// of a whole pass, else 0.
func (t *trainer) settle() (whole int) {
	if t.used() || t.internal.fixed != nil {
		return 0
	}
	of := run.Size{Examples: int64(len(t.data.Train)), Typed: t.Config.Typed(), Validated: t.data.Validates()}
	if l := t.data.Links; l != nil {
		of.Examples, of.Relations, of.Learnt = 0, len(l.All), true
		first := t.data.Relations[l.Relation]
		of.Pairs = float64(t.data.Types[first.Src].Nodes) * float64(t.data.Types[first.Dst].Nodes)
		for _, r := range l.All {
			of.Examples += t.data.Relations[r.Relation].Edges()
		}
		for _, n := range t.data.SeedTypes() {
			of.Nodes += int64(t.data.Types[n].Nodes)
			of.Learnt = of.Learnt && t.data.Types[n].Embed > 0
		}
	} else if t.data.Target >= 0 {
		of.Nodes = int64(t.data.Types[t.data.Target].Nodes)
		of.Bare = len(t.Inputs) == 0 && !slices.ContainsFunc(t.data.Types, func(n data.Type) bool { return n.Features != nil })
	}
	if t.settled = t.Settle(of); t.settled != nil {
		t.settled.Reason = t.Text(t.settled.Reason)
	}
	if t.EpochSteps > 0 {
		return 0
	}
	steps := int((of.Examples + int64(t.Batch) - 1) / int64(t.Batch))
	if round := t.Round(steps, t.data.Validates()); round < steps {
		t.EpochSteps = round
		return steps
	}
	return 0
}
