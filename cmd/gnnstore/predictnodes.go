package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/gnnstore/gnnstore/ingest/export"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/graph"
	"github.com/gnnstore/gnnstore/train/infer"
)

// nodesResult is the output of predict for nodes.
type nodesResult struct {
	used
	Target  string `json:"target"` // type of the nodes
	What    string `json:"what"`
	Layer   int    `json:"layer"`   // the predictions are made from its rows
	Columns int    `json:"columns"` // numbers a row
	Nodes   string `json:"nodes"`
	Rows    int    `json:"rows"`
	written
	// Layers reports on the computation of each layer for the nodes of each type, beside its plan.
	Layers []infer.Report `json:"layers"`
}

// text describes the rows.
func (r *nodesResult) text() string {
	of := r.What
	switch {
	case of == graph.Embeddings && r.Layer == 0:
		of = "rows for input"
	case of == graph.Embeddings:
		of = fmt.Sprintf("%s of layer %d", of, r.Layer)
	}
	return fmt.Sprintf("%s of %s nodes of type %s, by stored order", of, count(int64(r.Rows)), r.Target)
}

// askNodes asks for predictions of nodes, from the rows of a layer.
func (o *predictOptions) askNodes(ctx context.Context, p *progress, u *usedRun, layer int, out string) (*prediction, error) {
	n := u.network.Graph
	if err := o.checkNodes(n); err != nil {
		return nil, u.dir.About(err)
	}
	kind, err := n.TypeOf(o.kind, o.what, layer)
	if err != nil {
		return nil, u.dir.About(err)
	}
	var sent *submission
	var nodes []uint32
	if export.Format(o.format) == export.OGBLSC {
		if sent, err = newSubmission(n, o.nodes); err == nil {
			nodes = sent.nodes
		}
	} else {
		nodes, err = predicted(ctx, n, kind, o.nodes)
	}
	if err != nil {
		return nil, err
	}
	d := n.Data()
	if o.what == graph.Embeddings && layer == 1 && n.Layers() == 1 && d.Links == nil {
		p.line("note: the network has one layer and no hidden one: its embeddings are its logits")
	}
	r := &nodesResult{
		used: u.used(), Target: d.Types[kind].Name, What: o.what, Layer: layer, Columns: n.Columns(o.what, layer, kind),
		Nodes: o.nodes, Rows: len(nodes), Layers: []infer.Report{},
	}
	form := export.RowOptions{Format: export.Format(o.format), Kind: export.Numbers, Cols: r.Columns, Rows: int64(r.Rows), Force: o.force}
	if d.Links == nil {
		form.Names = d.Labels.Label.ClassNames
	}
	switch {
	case o.what == graph.Embeddings:
		form.Kind, form.Column = export.Vector, "embedding"
	case o.what == graph.Values:
		form.Names = []string{"value"}
	case o.what == graph.Classes && n.Several():
		form.Kind, form.Column = export.Flags, "classes"
	case o.what == graph.Classes:
		form.Kind, form.Column = export.Class, "class"
	}
	done := int64(0)
	fill := func(add func([]store.NodeID, []float32) error) error {
		return n.Predict(ctx, o.what, layer, kind, nodes, func(chunk []uint32, rows []float32) error {
			done += int64(len(chunk))
			p.show("predict "+o.what, done, int64(r.Rows), "nodes")
			return add(chunk, rows)
		})
	}
	if n.Parts() {
		fill = o.named(ctx, n, kind, &form, fill)
	}
	write := func() (*export.RowsReport, error) {
		p.show("predict "+o.what, done, int64(r.Rows), "nodes")
		n.Follow(func(layer, layers int, kind string, done, nodes int) {
			if layer < layers {
				p.show(fmt.Sprintf("layer %d of %d, %s", layer, layers, kind), int64(done), int64(nodes), "nodes")
			}
		})
		showSpace(p, n, o.Scratch, form.Bytes(out, d.IDs(kind)))
		n.FollowLayers(func(l infer.Report) {
			r.Layers = append(r.Layers, l)
			p.line("layer %d of %d, %s", l.Layer, r.Layer, layerText(l))
		})
		if o.group.Rank() > 0 {
			return new(export.RowsReport), fill(func([]store.NodeID, []float32) error { return nil })
		}
		if sent != nil {
			return sent.write(out, o.nodes, o.force, fill)
		}
		return export.WriteRows(out, d.IDs(kind), form, fill)
	}
	plan := func(w io.Writer) error {
		layers, err := n.PlanPredict(layer, kind, nodes)
		p.clear()
		switch {
		case err != nil:
			return err
		case o.json:
			return printJSON(w, struct {
				Layers []infer.Planned `json:"layers"`
			}{layers})
		}
		printLayerPlan(w, layers, layer)
		return nil
	}
	return &prediction{r, write, r.text, plan}, nil
}

// named makes fill bring the ids of nodes along, which workers with parts have of their own nodes
// alone.
func (o *predictOptions) named(
	ctx context.Context, n *graph.Network, kind int, form *export.RowOptions,
	fill func(add func([]store.NodeID, []float32) error) error,
) func(add func([]store.NodeID, []float32) error) error {
	var chunk []store.NodeID
	var ids []int64
	form.Original = func(v store.NodeID) int64 {
		at, _ := slices.BinarySearch(chunk, v)
		return ids[at]
	}
	return func(add func([]store.NodeID, []float32) error) error {
		return fill(func(nodes []store.NodeID, rows []float32) (err error) {
			chunk = nodes
			if ids, err = n.Originals(ctx, kind, nodes); err != nil {
				return err
			}
			return add(nodes, rows)
		})
	}
}

// layerText describes the time and the reads of computing a layer for the nodes of a type.
func layerText(l infer.Report) string {
	text := fmt.Sprintf("%s: %s nodes in %s", l.Type, count(int64(l.Nodes)), seconds(l.Seconds))
	if l.BytesRead > 0 || l.PlannedBytesRead > 0 {
		text += fmt.Sprintf(", %s held in %s, read %s in %s (planned %s, %s, %s)", l.Way, many(l.Parts, "part"), size(l.BytesRead), seconds(l.ReadSeconds),
			many(l.PlannedParts, "part"), size(l.PlannedBytesRead), seconds(l.PlannedReadSeconds))
	}
	if l.BytesWritten > 0 {
		text += ", wrote " + size(l.BytesWritten)
	}
	return text
}

// many returns "1 part", "2 parts" and the like.
func many(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return count(int64(n)) + " " + thing
}

// printLayerPlan prints the plan of computing the layers up to last, relation by relation.
func printLayerPlan(w io.Writer, plan []infer.Planned, last int) {
	for _, l := range plan {
		printf(w, "layer %d of %d, %s: %s nodes", l.Layer, last, l.Type, count(int64(l.Nodes)))
		if l.BytesRead > 0 {
			printf(w, ", %s held in %s, reads %s in %s", l.Way, many(l.Parts, "part"), size(l.BytesRead), seconds(l.Seconds))
		}
		if l.BytesWritten > 0 {
			printf(w, ", writes %s", size(l.BytesWritten))
		}
		printf(w, "\n")
		for _, r := range l.Relations {
			printf(w, "  %s: %s edges, reads %s in %s\n", r.Relation, count(r.Edges), size(r.BytesRead), seconds(r.Seconds))
		}
	}
}

// predicted returns the nodes of a type that --nodes names, in ascending order.
func predicted(ctx context.Context, n *graph.Network, kind int, which string) ([]uint32, error) {
	d := n.Data()
	switch which {
	case "all":
		nodes := make([]uint32, d.Types[kind].Nodes)
		for v := range nodes {
			nodes[v] = uint32(v)
		}
		return nodes, nil
	case "train", "valid", "test":
		if d.Links != nil || kind != d.Target {
			return nil, fmt.Errorf("--nodes %s: nodes of type %s have no split; give all, or a file with an id a line", which, d.Types[kind].Name)
		}
		return d.Part(which)
	}
	return nodesOf(ctx, which, d.IDs(kind), d.Types[kind].Nodes)
}

// nodesOf reads the nodes from the file that --nodes names. Their type has count nodes.
func nodesOf(ctx context.Context, which string, ids store.IDs, count int) (nodes []uint32, err error) {
	f, err := os.Open(which)
	if err != nil {
		return nil, fmt.Errorf("--nodes %s: it is none of all, train, valid and test, and no file that can be read: %w", which, err)
	}
	defer f.Close()
	err = store.Guard(func() (err error) {
		nodes, err = nodesIn(ctx, f, ids, count)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("--nodes %s%w", which, err)
	}
	return nodes, nil
}

// mostLine is the length in bytes that a line with an id may have.
const mostLine = 1 << 20

// nodesIn reads an id a line, and returns the nodes in ascending order, once each. The type has
// count nodes. Empty lines are skipped. The error begins with the line.
func nodesIn(ctx context.Context, r io.Reader, ids store.IDs, count int) (nodes []uint32, err error) {
	lines, number := bufio.NewScanner(r), 0
	lines.Buffer(nil, mostLine)
	there, found := make([]bool, count), 0
	for lines.Scan() {
		if number++; number%(1<<16) == 0 && ctx.Err() != nil {
			return nil, fmt.Errorf(", line %d: %w", number, ctx.Err())
		}
		text := strings.TrimSuffix(lines.Text(), "\r")
		if number == 1 {
			text = strings.TrimPrefix(text, "\ufeff")
		}
		if text == "" {
			continue
		}
		v, ok, err := storedID(ids, text)
		if err != nil {
			return nil, fmt.Errorf(", line %d: %w", number, err)
		}
		if !ok {
			return nil, fmt.Errorf(", line %d: no node has the id %s; remove the line", number, text)
		}
		if !there[v] {
			there[v] = true
			found++
		}
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return nil, fmt.Errorf(", line %d: it is longer than %s, and no id; give a file with an id a line", number+1, size(mostLine))
	case err != nil:
		return nil, fmt.Errorf(", line %d: %w", number+1, err)
	}
	nodes = make([]uint32, 0, found)
	for v, is := range there {
		if is {
			nodes = append(nodes, uint32(v))
		}
	}
	if len(nodes) == 0 {
		return nil, errors.New(": no id is in it")
	}
	return nodes, nil
}
