package graph

import (
	"cmp"
	"fmt"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/infer"
	"github.com/gnnstore/gnnstore/train/run"
	"github.com/gnnstore/gnnstore/train/sample"
)

// notes tells the user, once, what is worth knowing about the run.
func (c *core) notes() {
	for _, column := range c.data.UnusedColumns() {
		c.Note("column %s of the edges is not used in training", column)
	}
	for _, text := range c.large {
		c.Note("%s", text)
	}
	if l := c.data.EdgeLabel; l != nil && l.Numbers() && l.Most >= largeValue {
		c.Note("column %s, which is learnt, has values like %.3g, and nothing normalises them: the loss is of their squares; ingest smaller ones",
			l.Column.Column.Name, l.Most)
	}
	for i, read := range c.tiers.Reach.Types[0] {
		switch n := c.data.Types[i]; {
		case !read || n.Features != nil || n.Nodes == 0:
		case n.Embed > 0:
			c.Note("type %s: each of its %d nodes has a learnt row of %d columns for input", n.Name, n.Nodes, n.Embed)
		default:
			remedy := ""
			if c.Inputs[n.Name] == "" {
				remedy = fmt.Sprintf("; {input} %s=embed:64 learns a row for each", n.Name)
			}
			c.Note("type %s has no features: all of its nodes have one learnt row for input%s", n.Name, remedy)
		}
	}
	if c.data.Unlabelled > 0 {
		c.Note("%d nodes of the split have no label and are left out", c.data.Unlabelled)
	}
	c.directionNotes()
	all, what := int64(len(c.data.Train)), c.task.Examples()
	if l := c.data.Links; l != nil {
		all = 0
		for _, of := range l.All {
			all += c.data.AllEdges(of.Relation)
		}
	}
	if int64(c.Batch) > all {
		c.Note("the batch of %d holds all %d training %s: an epoch is one step", c.Batch, all, what)
	}
	if !c.data.Validates() {
		c.Note("the split has no validation %s: no model is chosen, and the last one is tested", what)
	}
	switch steps := c.task.Steps(); {
	case c.Draws() == "":
	case c.Kappa == sample.Forever:
		c.Note("{kappa} inf: every epoch draws the same neighbours of a node")
	case c.Kappa > steps && c.Dependent == run.Nested:
		c.Note("{kappa} %d: %.1f epochs of %d steps draw the same neighbours of a node", c.Kappa,
			float64(c.Kappa)/float64(steps), steps)
	case c.Kappa > steps:
		c.Note("{kappa} %d: the neighbours of a node change once in %.1f epochs of %d steps", c.Kappa,
			float64(c.Kappa)/float64(steps), steps)
	}
	if g := c.Hooks.Group; g.Size() > 1 && c.Sampler == sample.LaborStar {
		c.Note("{sampler} labor-star: each worker finds the probabilities for its own seeds, so batches depend on the number of workers")
	}
	if c.choice != nil {
		c.Note("%s", c.choice.Reason)
	}
	c.reuseNotes()
	if text := c.howEvaluated(); text != "" {
		c.Note("%s", text)
	}
}

// directionNotes notes how many nodes to learn receive no edge, and whether ingest found that edges
// taken as directed may be undirected.
func (c *core) directionNotes() {
	if !c.Reads() || c.Layers == 0 {
		return
	}
	m := c.data.Set.Manifest()
	var nodes, unreached, of []int
	if err := store.Guard(func() error {
		nodes, unreached, of = c.data.Unreached(c.tiers.Reach)
		return nil
	}); err != nil {
		c.Note("%v", err) // the first step that reads the page reports it
	}
	for i, n := range unreached {
		if n == 0 {
			continue
		}
		name := c.data.Types[of[i]].Name
		remedy := ""
		if flag := m.TurnsBack(name); flag != "" && c.Relation == "" {
			remedy = fmt.Sprintf("; ingest it again with {%s}, and messages flow along edges in both directions", flag)
		}
		what := "nodes to learn"
		if part := c.data.OwnPart(); part != nil {
			what += fmt.Sprintf(" in part %d", part.Index)
		}
		if c.data.Links != nil {
			what = "nodes of type " + name + ", whose links are learnt,"
		}
		c.Note("%d of the %d %s receive no edge, so the network sees nothing of their neighbours%s", n, nodes[i], what, remedy)
	}
	pairs, both := m.Provenance.Counts[store.PairsCompared], m.Provenance.Counts[store.PairsBothWays]
	if len(m.Relations) == 1 && !m.Relations[0].Symmetric && pairs > 0 && both < pairs {
		c.Note("edges are taken as directed: %.2g %% of the connected pairs of nodes have an edge in both directions; if they have no direction, ingest it again with {undirected}",
			100*float64(both)/float64(pairs))
	}
}

// wayOf returns the option Eval in the form of package infer.
func wayOf(eval string) infer.Way {
	if eval == "auto" {
		return infer.Auto
	}
	return infer.Way(eval)
}

// elemOf returns the type of hidden rows on disk.
func elemOf(dtype string) store.Elem {
	if dtype == "f16" {
		return store.F16
	}
	return store.F32
}

// howEvaluated describes how the run evaluates, and why not in full and in memory. It returns "" if
// it does, or if another way was asked for.
func (c *core) howEvaluated() string {
	hidden, most := kernels.FormatBytes(c.eval.HiddenBytes()), kernels.FormatBytes(c.EvalBytes)
	some := fmt.Sprintf("%d %s", c.EvalNodes, c.task.Examples())
	if c.data.Links != nil {
		some = fmt.Sprintf("%d %s", cmp.Or(c.EvalEdges, c.EvalNodes), c.task.Examples())
	}
	switch {
	case c.eval.Walks():
		return fmt.Sprintf("evaluating on sampled blocks of up to %s a part: {sampler} rw weighs the nodes that walks visit, and "+
			"knows no weights for all neighbours", some)
	case c.eval.Way == infer.Sampled:
		return ""
	case c.eval.Sampled():
		return fmt.Sprintf("evaluating on sampled blocks of up to %s a part: the hidden rows of full-neighbour evaluation could take %s, "+
			"and {eval_bytes} is %s; so the figures are estimates; {eval} full measures exactly, with the rows on disk", some, hidden, most)
	case c.eval.HiddenBytes() > c.EvalBytes:
		return fmt.Sprintf("evaluating in full: hidden rows could take %s, and {eval_bytes} is %s, so they are on disk, in the run directory, "+
			"while a part is measured", hidden, most)
	}
	return ""
}
