package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/gnnstore/gnnstore/ingest/export"
	"github.com/gnnstore/gnnstore/train"
	"github.com/gnnstore/gnnstore/train/task"
)

// edgesResult is the output of predict for edges. Its JSON keys are stable.
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
	PeakRSSBytes int64 `json:"peak_rss_bytes"`
}

// edgePart is a part of the edge split.
type edgePart struct {
	Name string `json:"name"`
	Rows int64  `json:"rows"`
}

// partsOfEdges has the values of --edges besides all, in the order in which all writes them.
var partsOfEdges = []string{task.Train.String(), task.Valid.String(), task.Test.String()}

// checkNodes refuses flags that do not go with predictions of nodes.
func (o *predictOptions) checkNodes(n *usedNetwork) error {
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
		return errors.New("--plan goes with predictions of nodes; of --what embeddings it says what the rows take that edges are predicted by")
	}
	return nil
}

// predictEdges writes what the network predicts of edges.
func (o *predictOptions) predictEdges(ctx context.Context, stdout io.Writer, p *progress, n *usedNetwork, out string, began time.Time) error {
	if err := o.checkEdges(); err != nil {
		return err
	}
	number, src, dst := n.Relation()
	d := n.Data()
	r := edgesResult{
		used: n.used(), Relation: d.Relations[number].Relation.Key(), Label: d.EdgeLabel.Name, What: o.what,
		Columns: n.EdgeColumns(o.what),
	}
	var each train.EachPair
	var err error
	if t := d.GivenTable(); t != nil && o.pairs != "" {
		return fmt.Errorf("--pairs %s: the network reads a row of %s for each edge, which pairs in a file do not have; take --edges", o.pairs, t.Name)
	}
	if o.pairs != "" {
		r.Pairs = o.pairs
		p.show("read pairs", 0, 0, "edges")
		pairs := newPairFile(o.pairs, n)
		if err := pairs.guarded(func(train.Pairs) error { return ctx.Err() }); err != nil { // before anything is computed
			return err
		}
		each, r.Rows = pairs.guarded, pairs.count
	} else if each, err = o.chosenEdges(n, &r); err != nil {
		return err
	}
	form := export.RowOptions{
		Format: export.Format(o.format), Kind: export.Numbers, Names: d.EdgeLabel.Classes, Cols: r.Columns, Rows: r.Rows, Force: o.force,
	}
	switch o.what {
	case train.Classes:
		form.Kind, form.Column = export.Class, "class"
	case train.Values:
		form.Names = []string{"value"}
	case train.Logits:
		if n.Numbers() {
			form.Names = []string{"logit"}
		}
	}
	n.Follow(func(layer, layers int, kind string, done, nodes int) {
		p.show(fmt.Sprintf("layer %d of %d, %s", layer, layers, kind), int64(done), int64(nodes), "nodes")
	})
	n.followSpace(p, o.Scratch, form.Bytes(out, d.IDs(src), d.IDs(dst)))
	done := int64(0)
	report, err := export.WritePairs(out, export.Pairs{Src: d.IDs(src), Dst: d.IDs(dst)}, form, func(add addPairs) error {
		return n.PredictEdges(ctx, o.what, each, func(some train.Pairs, rows []float32) error {
			done += int64(len(some.Src))
			p.show("predict "+o.what, done, r.Rows, "edges")
			return add(some.Src, some.Dst, nil, rows)
		})
	})
	if err != nil {
		return err
	}
	p.clear()
	r.written, r.PeakRSSBytes = wrote(out, report, n.BytesRead(), began), n.PeakRSSBytes()
	if o.json {
		return printJSON(stdout, r)
	}
	printf(stdout, "%s weights, of epoch %d\n", r.Checkpoint, r.Epoch)
	of := "of " + r.Pairs
	if r.Pairs == "" {
		var parts []string
		for _, part := range r.Parts {
			parts = append(parts, fmt.Sprintf("%s %s", count(part.Rows), part.Name))
		}
		of = strings.Join(parts, ", then ")
	}
	printf(stdout, "%s of %s edges of relation %s (%s), %s\n", r.What, count(r.Rows), r.Relation, of, r.text())
	return nil
}

// chosenEdges returns the edges that --edges names, and counts them in r.
func (o *predictOptions) chosenEdges(n *usedNetwork, r *edgesResult) (train.EachPair, error) {
	r.Edges = o.edges
	var all []train.EachPair
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
	return func(use func(train.Pairs) error) error {
		for _, each := range all {
			if err := each(use); err != nil {
				return err
			}
		}
		return nil
	}, nil
}
