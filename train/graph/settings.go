package graph

import (
	"slices"

	"github.com/gnnstore/gnnstore/train/data"
	"github.com/gnnstore/gnnstore/train/run"
)

// settle chooses the options that are left to the run. If it shortens an epoch it returns the steps
// of a whole pass, else 0.
func (c *core) settle() (whole int) {
	if c.used() || c.internal.fixed != nil {
		return 0
	}
	of := run.Size{Examples: int64(len(c.data.Train)), Typed: c.Config.Typed(), Validated: c.data.Validates()}
	if l := c.data.Links; l != nil {
		of.Examples, of.Relations, of.Learnt = 0, len(l.All), true
		first := c.data.Relations[l.Relation]
		of.Pairs = float64(c.data.Types[first.Src].Nodes) * float64(c.data.Types[first.Dst].Nodes)
		for _, r := range l.All {
			of.Examples += c.data.AllEdges(r.Relation)
		}
		for _, n := range c.data.SeedTypes() {
			of.Nodes += int64(c.data.Types[n].Nodes)
			of.Learnt = of.Learnt && c.data.Types[n].Embed > 0
		}
	} else if c.data.Target >= 0 {
		of.Nodes = int64(c.data.Types[c.data.Target].Nodes)
		of.Bare = len(c.Inputs) == 0 && !slices.ContainsFunc(c.data.Types, func(n data.Type) bool { return n.Features != nil })
	}
	if c.settled = c.Settle(of); c.settled != nil {
		c.settled.Reason = c.Text(c.settled.Reason)
	}
	if c.EpochSteps > 0 {
		return 0
	}
	steps := int((of.Examples + int64(c.Batch) - 1) / int64(c.Batch))
	if round := c.Round(steps, c.data.Validates()); round < steps {
		c.EpochSteps = round
		return steps
	}
	return 0
}
