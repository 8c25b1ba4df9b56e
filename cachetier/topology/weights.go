package topology

import (
	"context"
	"fmt"

	"github.com/gnnstore/gnnstore/store"
)

// mustBeOf panics if c is a column of another graph, which is the caller's bug.
func mustBeOf(c *store.EdgeColumn, g *store.Graph) {
	if own := c.Graph(); own.Relation != g.Relation {
		panic(fmt.Sprintf("topology: Open: column %s of %s for the graph of %s", c.Column.Name, own.Relation.Key(), g.Relation.Key()))
	}
}

// checkColumn returns an error if weights are not float32s.
func checkColumn(w *store.EdgeColumn, g *store.Graph) error {
	mustBeOf(w, g)
	if elem := w.Column.Elem; elem != store.F32 {
		file := w.Section()
		return fmt.Errorf("topology: %s: %s holds %v, and edges are drawn by weights of f32: ingest such, or draw without weights",
			file.Dataset, file.Section, elem)
	}
	return nil
}

// Weights returns the weights of v's edges in the order of Neighbors: finite, and at least 0. The
// slice is borrowed as in Neighbors. It panics if v is not below Resident, and if the Tier has no
// weights.
func (t *Tier) Weights(v uint32) []float32 {
	t.mustWeigh("Weights")
	if v >= t.resident {
		panic(fmt.Sprintf("topology: Weights(%d), and %d lists are resident", v, t.resident))
	}
	lo, hi := t.offsets.span(v)
	return t.weights[lo:hi:hi]
}

// ReadWeights is Read for weights. It takes the same nodes, and serves parts in the same way. The
// bytes count as bytes of cold lists; the lists themselves are counted by Read alone. It panics if
// the Tier has no weights.
func (t *Tier) ReadWeights(ctx context.Context, nodes []uint32, serve func(i, from int, part []float32) error) error {
	t.mustWeigh("ReadWeights")
	return read(ctx, t, &t.weightsOf, nodes, 0, serve)
}

// weighted reports whether edges have weights.
func (t *Tier) weighted() bool { return t.weightsOf.file != 0 }

// mustWeigh panics if edges have no weights. op is the operation to name.
func (t *Tier) mustWeigh(op string) {
	if !t.weighted() {
		panic("topology: " + op + " of a Tier that was opened without Options.Weights")
	}
}
