package edgelist

import (
	"context"
	"fmt"
	"io"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/lines"
)

// Made describes a graph in a file of another format. The reader of that format converts the file
// to the text of an edge list and of a table of nodes, anew for every reading. Errors of their Read
// name the place in the file, but not the file.
type Made struct {
	// Edges opens the edge list, under a header.
	Edges func() (io.ReadCloser, error)
	// Unit names an edge in messages: "edge". Cells are parted by commas then. If it is empty,
	// cells are parted by blanks, and a line of the text is the same line of the file.
	Unit string
	Each int64 // rows of the text for an edge of the file; 0 is 1
	Rows int64 // edges that the file declares, -1 where it declares none
	// Nodes opens the table of all nodes, under a header. If it is nil, and Options name no other
	// table, nodes have the ids from First on, Count of them.
	Nodes        func() (io.ReadCloser, error)
	First, Count int64
	// Texts are the columns of nodes that the file declares as text, numbers or not, so that they
	// are features only by name.
	Texts      map[string]bool
	Undirected bool     // each edge is one in both directions
	Remarks    []string // on what the reader assumes, a sentence each
	Skipped    []string // what it leaves behind, a sentence each
}

// OpenMade opens a graph that made describes, of the file at path. Options name the columns of its
// tables; {weight} none leaves weights out.
func OpenMade(path string, made *Made, o Options) (*Source, error) {
	f, err := o.form() // of the table of nodes, if it is a file of its own
	if err != nil {
		return nil, err
	}
	o.Header, o.OneSpace = "yes", true
	if o.OwnNodes = made.Nodes != nil; o.OwnNodes {
		o.Nodes = path
	}
	if o.Weight == none {
		o.Weight = ""
	}
	if err := o.Validate(); err != nil {
		return nil, err
	}
	s := &Source{o: o, form: f, made: made, files: []string{path}, skipped: made.Skipped}
	if err := s.open(); err != nil {
		return nil, err
	}
	return s, nil
}

// openMade opens a made table. Messages name a unit and its number, as in edge 7. A unit takes as
// many rows of the text as each says.
func openMade(
	path string, open func() (io.ReadCloser, error), unit string, each int64, edges, numbered bool,
) (*table, error) {
	in, err := open()
	if err != nil {
		return nil, err
	}
	t := &table{edges: edges, made: unit, each: max(each, 1), source: in}
	if t.Scanner, err = lines.NewMade(path, in); err == nil {
		err = t.start("yes")
	}
	if err != nil {
		in.Close()
		return nil, err
	}
	t.comments, t.numbered = unit == "", numbered
	return t, nil
}

// checkRows refuses another number of edges than the file declares.
func (s *Source) checkRows(rows int64) error {
	if s.made == nil || s.made.Rows < 0 || s.made.Rows*max(s.made.Each, 1) == rows {
		return nil
	}
	rows /= max(s.made.Each, 1)
	return fmt.Errorf("%s: it declares %d entries and has %d; it may be damaged, so fetch it again, or correct the size line", s.files[0], s.made.Rows, rows)
}

// countedIDs streams the ids of nodes that no table lists.
func (s *Source) countedIDs(ctx context.Context, emit func(ingest.IDChunk) error) error {
	out := ingest.Chunks(ctx, emit)
	out.Chunk.File = s.files[0]
	for i := range s.made.Count {
		out.Chunk.IDs = append(out.Chunk.IDs, s.made.First+i)
		if err := out.Added(); err != nil {
			return err
		}
	}
	return out.Flush()
}
