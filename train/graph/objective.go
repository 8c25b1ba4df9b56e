package graph

import (
	"math"
	"slices"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/train/data"
	tasks "github.com/gnnstore/gnnstore/train/task"
)

// Objective describes what a network has learnt: classes or numbers of nodes or edges, or links.
type Objective struct {
	data *data.Data
	task task
}

// Edges reports whether the network learns classes or numbers of edges.
func (o Objective) Edges() bool {
	_, edges := o.task.(*tasks.Edges)
	return edges
}

// Links reports whether the network learns links.
func (o Objective) Links() bool {
	_, links := o.task.(*tasks.Links)
	return links
}

// Several reports whether a node may have several classes.
func (o Objective) Several() bool { return o.data.Links == nil && o.data.Labels.Label.Multi }

// Numbers reports whether a node, or an edge, has a number, and no class.
func (o Objective) Numbers() bool {
	if o.Edges() {
		return o.data.EdgeLabel.Numbers()
	}
	return o.data.Links == nil && o.data.Labels.Label.Numbers
}

// learns names what the run learns: "classes of nodes", "numbers of edges" and the like.
func (o Objective) learns() string {
	what, of := "classes", "nodes"
	if o.Numbers() {
		what = "numbers"
	}
	if o.Edges() {
		of = "edges"
	}
	return what + " of " + of
}

// Relation returns the number of the relation whose links, or edges, the network has learnt, and
// the types of both ends.
func (o Objective) Relation() (number, src, dst int) {
	d := o.data
	r := d.Relations[d.Links.Relation]
	return d.Links.Relation, r.Src, r.Dst
}

// EdgeColumns returns how many numbers PredictEdges gives for an edge.
func (o Objective) EdgeColumns(what string) int {
	if what == Classes || o.Numbers() {
		return 1
	}
	return len(o.data.EdgeLabel.Classes)
}

// converter returns a function that turns a layer's rows into predictions. The result of that
// function is valid until its next call, and may be in place of rows.
func (o Objective) converter(what string) func(rows []float32, cols int) []float32 {
	var best []uint32
	var out []float32
	switch {
	case what == Classes && o.Several():
		return func(rows []float32, _ int) []float32 {
			for i, x := range rows {
				rows[i] = 0
				if x > 0 {
					rows[i] = 1
				}
			}
			return rows
		}
	case what == Classes:
		return func(rows []float32, cols int) []float32 {
			best = slices.Grow(best[:0], len(rows)/cols)[:len(rows)/cols]
			kernels.ArgMax(best, rows, cols)
			out = out[:0]
			for _, class := range best {
				out = append(out, float32(class)) // exact: there are fewer classes than float32 has whole numbers
			}
			return out
		}
	case what == Probabilities && o.Several():
		return func(rows []float32, _ int) []float32 {
			for i, x := range rows {
				rows[i] = float32(1 / (1 + math.Exp(-float64(x))))
			}
			return rows
		}
	case what == Probabilities:
		return func(rows []float32, cols int) []float32 {
			for row := range slices.Chunk(rows, cols) {
				softmax(row)
			}
			return rows
		}
	}
	return func(rows []float32, _ int) []float32 { return rows }
}
