package edgelist

import (
	"bytes"
	"context"
	"fmt"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/archive"
	"github.com/gnnstore/gnnstore/ingest/arrays"
	"github.com/gnnstore/gnnstore/store"
)

// The values of Options.FeatureRows.
const (
	ByID    = "id"
	ByTable = "table"
)

// featureArray is an array of features, a row a node.
type featureArray struct {
	*arrays.Features
	// order is the row of the node for each row of the array, or arrays.NoRow. It is nil if rows
	// are in the order of the nodes.
	order  []uint32
	unused int64 // rows whose ids no node has
}

// featureArray returns the file that Features names if it is one of arrays, else "".
func (o *Options) featureArray() string {
	path, _, ok := arrays.FeatureFile(o.Features)
	if !ok {
		return ""
	}
	return path
}

// openArray opens the array of features.
func (s *Source) openArray() error {
	if s.text && s.table == nil {
		return fmt.Errorf("%s: its ids are text, and the rows of %s are for the ids from 0 on, or in the order of a table of "+
			"nodes; name that table with {nodes}, or if ids are integers, say {id_type} int", s.files[0], s.o.Features)
	}
	if s.text && s.o.FeatureRows == ByID {
		return fmt.Errorf("{feature_rows} id: the ids of %s are text; say {feature_rows} table, or leave it out", s.o.Nodes)
	}
	f, err := arrays.OpenFeatures(s.o.Features, s.o.Memory)
	if err != nil {
		return err
	}
	s.array = &featureArray{Features: f}
	return nil
}

// renamed adds a remedy to the error of a map of features that is an array under another name.
func renamed(path string, err error) error {
	f, opened := store.OpenFile(path) // which refuses pipes
	if opened != nil {
		return err
	}
	defer f.Close()
	switch head := archive.Head(f); {
	case bytes.HasPrefix(head, []byte("PK\x03\x04")):
		return fmt.Errorf("%w; if it holds an array of features, rename it to end in .npz or .pt", err)
	case bytes.HasPrefix(head, []byte("\x93NUMPY")):
		return fmt.Errorf("%w; if it holds an array of features, rename it to end in .npy", err)
	}
	return err
}

// tableOrder compares the ids of a table of nodes with the rows of an array.
type tableOrder struct {
	inOrder bool  // the ids count from firstID
	within  bool  // each id has a row
	outside int64 // an id without a row
}

// settleArray checks the number of rows, and finds the row of each node.
func (s *Source) settleArray(ctx context.Context) error {
	a, rows := s.array, s.array.Len()
	a.order, a.unused = nil, 0
	if s.table == nil {
		if rows != s.nodes {
			return fmt.Errorf("%s: %d rows, and there are %d nodes; are they of one graph?", a.Path(), rows, s.nodes)
		}
		return nil
	}
	differ := fmt.Errorf("%s: %d rows, and %s lists %d nodes; are they of one graph?", a.Path(), rows, s.o.Nodes, s.nodes)
	if s.text || s.o.FeatureRows == ByTable {
		if rows != s.nodes {
			return differ
		}
		return nil
	}
	at, err := s.orderOf(ctx, rows)
	switch {
	case err != nil:
		return err
	case s.o.FeatureRows == ByID && !at.within:
		return fmt.Errorf("%s: %d rows, for the ids from %d on, and %s lists the id %d; {feature_rows} table takes rows in "+
			"the order of the table", a.Path(), rows, s.firstID(), s.o.Nodes, at.outside)
	case s.o.FeatureRows == ByID:
		if at.inOrder && rows == s.nodes {
			return nil
		}
		return s.orderByID(ctx, rows)
	case rows != s.nodes && at.within:
		return fmt.Errorf("%s: %d rows, and %s lists %d nodes; if row 0 has the features of the node with id %d and so on, "+
			"say {feature_rows} id", a.Path(), rows, s.o.Nodes, s.nodes, s.firstID())
	case rows != s.nodes:
		return differ
	case at.within && !at.inOrder:
		return ingest.Ask("%s: which node has row 0, the first in %s or the one with id %d? {feature_rows} table takes rows in "+
			"the order of the table, {feature_rows} id in the order of ids", a.Path(), s.o.Nodes, s.firstID())
	}
	return nil
}

// firstID is the id of the node that has row 0 of an array.
func (s *Source) firstID() int64 {
	if s.made != nil {
		return s.made.First
	}
	return 0
}

// eachTableID visits the rows of the table of nodes.
func (s *Source) eachTableID(ctx context.Context, visit func(row, id int64) error) error {
	return s.NodeIDs(ctx, 0, func(c ingest.IDChunk) error {
		for i, id := range c.IDs {
			if err := visit(c.First+int64(i), id); err != nil {
				return err
			}
		}
		return nil
	})
}

// orderOf reads the ids of the table.
func (s *Source) orderOf(ctx context.Context, rows int64) (tableOrder, error) {
	at, first := tableOrder{inOrder: true, within: true}, s.firstID()
	err := s.eachTableID(ctx, func(row, id int64) error {
		at.inOrder = at.inOrder && id-first == row
		if at.within && (id < first || id-first >= rows) {
			at.within, at.outside = false, id
		}
		return nil
	})
	return at, err
}

// orderByID finds the row of the node that each row of the array is for.
func (s *Source) orderByID(ctx context.Context, rows int64) error {
	order, first, used := make([]uint32, rows), s.firstID(), int64(0)
	for i := range order {
		order[i] = arrays.NoRow
	}
	err := s.eachTableID(ctx, func(row, id int64) error {
		switch {
		case id < first || id-first >= rows:
			return fmt.Errorf("%s: the id %d is new; the file changed while it was read", s.o.Nodes, id)
		case order[id-first] != arrays.NoRow:
			return fmt.Errorf("%s: the id %d is there twice", s.o.Nodes, id)
		}
		order[id-first] = uint32(row)
		used++
		return nil
	})
	s.array.order, s.array.unused = order, rows-used
	return err
}

// emit streams the rows of the n nodes.
func (a *featureArray) emit(ctx context.Context, n int64, emit func(ingest.RowChunk) error) error {
	if a.order == nil {
		return a.Rows(ctx, emit)
	}
	return a.RowsOf(ctx, n, a.order, emit)
}

// notes returns a sentence for each part of the file that is not read.
func (a *featureArray) notes() (notes []string) {
	if a.Skipped != "" {
		notes = append(notes, a.Skipped)
	}
	if a.unused > 0 {
		notes = append(notes, fmt.Sprintf("%s: %d of its %d rows have no node", a.Path(), a.unused, a.Len()))
	}
	return notes
}
