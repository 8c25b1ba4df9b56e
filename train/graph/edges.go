package graph

import (
	"fmt"

	"github.com/gnnstore/gnnstore/train/data"
	"github.com/gnnstore/gnnstore/train/sample"
)

// largeValue is the size from which a note names values of edges: nothing normalises them, and rows
// of a network are of the order of 1. Times in seconds since 1970 are a million times as large.
const largeValue = 1000

// largeValues returns a text for each edge column that the network reads and that has large values
// in a batch.
func largeValues(d *data.Data, b *sample.Batch) (texts []string) {
	for i, r := range d.Relations {
		if len(r.Inputs) == 0 {
			continue
		}
		top := make([]float32, len(r.Inputs))
		for l := range b.Layers {
			for k, x := range b.Layers[l].Blocks[i].Values {
				col := k % len(top)
				top[col] = max(top[col], x, -x)
			}
		}
		for col, x := range top {
			if x >= largeValue {
				texts = append(texts, fmt.Sprintf("column %s of the edges of %s has values like %.3g, and nothing normalises them: where the loss "+
					"is large, ingest smaller ones", r.Inputs[col].Column.Name, r.Relation.Key(), x))
			}
		}
	}
	return texts
}
