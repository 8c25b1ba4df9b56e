package mag240m

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gnnstore/gnnstore/ingest/ogb"
)

// Options configure the reading of the dataset. The zero value works.
type Options struct {
	// FullFeatures is a matrix of features for all nodes, which takes the place of
	// processed/paper/node_feat.npy: an .npy file, or a dump of one without a header. Default:
	// papers alone have features.
	FullFeatures string
	// RowOrder is the order of the node types in it: paper,author,institution in OGB's
	// full_feat.npy, author,institution,paper in DGL's full.npy. Default: the former when the file
	// has a header; required for a dump.
	RowOrder string
	// YearColumns is the number of columns made of node_year.npy, behind the features of papers;
	// see [ogb.Years]. Default: none.
	YearColumns int
	Memory      int64 // of the ingest, for pickles; default 1 GiB
}

const orders = "paper,author,institution as in OGB's full_feat.npy, or author,institution,paper as in DGL's full.npy"

// Validate reports every problem.
func (o Options) Validate() error {
	if err := ogb.CheckYears(o.YearColumns); err != nil || o.RowOrder == "" {
		return err
	}
	if o.FullFeatures == "" {
		return fmt.Errorf("{row_order} %s: it goes with {full_features}", o.RowOrder)
	}
	_, err := o.order()
	return err
}

// order is the numbers of the node types in the order of rows.
func (o Options) order() (order []int, err error) {
	if o.RowOrder == "" {
		return []int{paper, author, institution}, nil
	}
	for _, name := range strings.Split(o.RowOrder, ",") {
		i := slices.Index(typeNames[:], strings.TrimSpace(name))
		if i < 0 || slices.Contains(order, i) {
			return nil, fmt.Errorf("{row_order} %q: name each node type once: %s", o.RowOrder, orders)
		}
		order = append(order, i)
	}
	if len(order) != len(typeNames) {
		return nil, fmt.Errorf("{row_order} %q: name each node type once: %s", o.RowOrder, orders)
	}
	return order, nil
}
