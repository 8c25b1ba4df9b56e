package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gnnstore/gnnstore/ingest/export"
	"github.com/gnnstore/gnnstore/train/graph"
	"github.com/gnnstore/gnnstore/train/task"
)

// edgesResult is the output of predict for edges.
type edgesResult struct {
	used
	Relation string `json:"relation"` // key of the edges' relation
	Label    string `json:"label"`    // the learnt label, as Options.EdgeLabel
	What     string `json:"what"`
	Columns  int    `json:"columns"` // numbers a row
	Pairs    string `json:"pairs,omitempty"`
	Edges    string `json:"edges,omitempty"`
	// Parts has the number of rows of each part, in the order of the rows.
	Parts []edgePart `json:"parts,omitempty"`
	Rows  int64      `json:"rows"`
	written
}

// edgePart is a part of the edge split.
type edgePart struct {
	Name string `json:"name"`
	Rows int64  `json:"rows"`
}

// partsOfEdges has the values of --edges besides all, in the order in which all writes them.
var partsOfEdges = []string{task.Train.String(), task.Valid.String(), task.Test.String()}

// checkNodes refuses flags that do not go with predictions of nodes.
func (o *predictOptions) checkNodes(n *graph.Network) error {
	switch {
	case o.given("edges"):
		return fmt.Errorf("--edges %s: it goes with a run of --task edge, and with what that learnt of edges", o.edges)
	case o.pairs != "" && n.Links():
		return errors.New("--pairs goes with --what scores")
	case o.pairs != "":
		return errors.New("--pairs goes with runs of --task link and --task edge, and this one learns nodes; take --nodes FILE")
	}
	return nil
}

// checkEdges refuses flags that do not go with predictions of edges.
func (o *predictOptions) checkEdges() error {
	if o.edges != "all" && !slices.Contains(partsOfEdges, o.edges) {
		return fmt.Errorf("--edges %s: there are %s and all", o.edges, strings.Join(partsOfEdges, ", "))
	}
	for _, flag := range []string{"nodes", "type"} {
		if o.given(flag) {
			return fmt.Errorf("--%s goes with --what embeddings: what is predicted is of edges, which --edges or --pairs name", flag)
		}
	}
	switch {
	case o.pairs != "" && o.given("edges"):
		return errors.New("--edges and --pairs: take one of them")
	case export.Format(o.format) == export.OGBLSC:
		return errors.New("--format ogb-lsc: the run learns edges, and the challenge is about nodes")
	case o.plan:
		return errors.New("--plan goes with predictions of nodes; with --what embeddings it plans the rows that predictions of edges come from")
	}
	return nil
}

// text describes the rows.
func (r *edgesResult) text() string {
	of := "of " + r.Pairs
	if r.Pairs == "" {
		var parts []string
		for _, part := range r.Parts {
			parts = append(parts, fmt.Sprintf("%s %s", count(part.Rows), part.Name))
		}
		of = strings.Join(parts, ", then ")
	}
	return fmt.Sprintf("%s of %s edges of relation %s (%s)", r.What, count(r.Rows), r.Relation, of)
}

// askEdges asks for what the network learnt of edges: edges of its dataset, or pairs in a file.
func (o *predictOptions) askEdges(ctx context.Context, p *progress, u *usedRun, out string) (*prediction, error) {
	if err := o.checkEdges(); err != nil {
		return nil, err
	}
	n := u.network.Graph
	number, src, dst := n.Relation()
	d := n.Data()
	r := &edgesResult{
		used: u.used(), Relation: d.Relations[number].Relation.Key(), Label: d.EdgeLabel.Name, What: o.what,
		Columns: n.EdgeColumns(o.what),
	}
	var each graph.EachPair
	var err error
	if t := d.GivenTable(); t != nil && o.pairs != "" {
		return nil, fmt.Errorf("--pairs %s: the network reads a row of %s for each edge, which pairs in a file do not have; take --edges", o.pairs, t.Name)
	}
	if o.pairs != "" {
		r.Pairs = o.pairs
		pairs := newPairFile(o.pairs, n)
		if err := pairs.check(ctx, p, "edges"); err != nil {
			return nil, err
		}
		each, r.Rows = pairs.guarded, pairs.count
	} else if each, err = o.chosenEdges(n, r); err != nil {
		return nil, err
	}
	form := export.RowOptions{
		Format: export.Format(o.format), Kind: export.Numbers, Names: d.EdgeLabel.Classes, Cols: r.Columns, Rows: r.Rows, Force: o.force,
	}
	switch o.what {
	case graph.Classes:
		form.Kind, form.Column = export.Class, "class"
	case graph.Values:
		form.Names = []string{"value"}
	case graph.Logits:
		if n.Numbers() {
			form.Names = []string{"logit"}
		}
	}
	write := func() (*export.RowsReport, error) {
		showLayers(p, n, "")
		showSpace(p, n, o.Scratch, form.Bytes(out, d.IDs(src), d.IDs(dst)))
		done := int64(0)
		return export.WritePairs(out, export.Pairs{Src: d.IDs(src), Dst: d.IDs(dst)}, form, func(add addPairs) error {
			return n.PredictEdges(ctx, o.what, each, func(some graph.Pairs, rows []float32) error {
				done += int64(len(some.Src))
				p.show("predict "+o.what, done, r.Rows, "edges")
				return add(some.Src, some.Dst, nil, rows)
			})
		})
	}
	return &prediction{result: r, write: write, text: r.text}, nil
}

// chosenEdges returns the edges that --edges names, and counts them in r.
func (o *predictOptions) chosenEdges(n *graph.Network, r *edgesResult) (graph.EachPair, error) {
	r.Edges = o.edges
	var all []graph.EachPair
	for _, part := range partsOfEdges {
		if o.edges != "all" && o.edges != part {
			continue
		}
		count, each, err := n.EdgesOf(part)
		if err != nil {
			return nil, err
		}
		all, r.Parts = append(all, each), append(r.Parts, edgePart{part, count})
		r.Rows += count
	}
	if r.Rows == 0 {
		return nil, fmt.Errorf("--edges %s: the dataset has none of relation %s; take others, or --pairs", o.edges, r.Relation)
	}
	return func(use func(graph.Pairs) error) error {
		for _, each := range all {
			if err := each(use); err != nil {
				return err
			}
		}
		return nil
	}, nil
}
