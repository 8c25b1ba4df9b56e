package data

import (
	"errors"
	"fmt"

	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/sample"
)

// OwnPart describes the part that the dataset is; nil for a whole one.
func (d *Data) OwnPart() *store.Part { return d.Set.Manifest().Part }

// Own returns what the dataset has of the rows of an input: all, or a part's own.
func (d *Data) Own(input int) store.Own {
	if input < len(d.Types) {
		return d.OwnPart().Nodes(d.Types[input].number)
	}
	return d.OwnPart().TableRows()
}

// Owners returns the owners of an input's rows among so many workers. Where the dataset is not a
// part, they are dealt out by rule.
func (d *Data) Owners(input, workers int) store.Owners {
	if own := d.Own(input); !own.Whole() {
		return own.Owners
	}
	return store.OwnersByRule(workers)
}

// Place adds to a sampler's error the place in the dataset where the damage is. If another worker
// owns the list, this worker cannot find its place in the file.
func (d *Data) Place(err error) error {
	relation, node, place := d.damage(err)
	if place == nil {
		return err
	}
	of := d.Relations[relation].own
	row, own := of.Row(node)
	if !own {
		path := store.PartPath(d.Set.Place(), of.Owners.Owner(node))
		return fmt.Errorf("%s: %w: %w; run gnnstore verify", path, store.ErrCorrupt, err)
	}
	return place(row)
}

// damage returns the relation and the node in whose list a sampler's error is, and a function that
// places the error in the list of a row. The function is nil for other errors.
func (d *Data) damage(err error) (relation int, node uint32, place func(row uint32) error) {
	var neighbor *sample.NeighborError
	var weight *sample.WeightError
	var value *sample.ValueError
	var row *sample.RowError
	switch {
	case errors.As(err, &neighbor):
		r := &d.Relations[neighbor.Relation]
		return neighbor.Relation, neighbor.Node, func(at uint32) error {
			return r.CorruptNeighbor(at, neighbor.Neighbor)
		}
	case errors.As(err, &weight):
		c := d.Relations[weight.Relation].Weights
		return weight.Relation, weight.Node, func(at uint32) error {
			return c.CheckWeights(at, weight.Place, []float32{weight.Weight})
		}
	case errors.As(err, &row):
		c := d.Relations[row.Relation].RowIDs
		return row.Relation, row.Node, func(at uint32) error { return c.CorruptRow(at, row.Place, row.Rows) }
	case errors.As(err, &value):
		c := d.Relations[value.Relation].Inputs[value.Column]
		return value.Relation, value.Node, func(at uint32) error {
			return c.CorruptValue(at, value.Place, value.Value)
		}
	}
	return 0, 0, nil
}
