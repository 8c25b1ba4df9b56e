package eventset

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/lines"
	"github.com/gnnstore/gnnstore/store"
)

// NoNodeTypes as Options.NodeTypes reads no types of nodes.
const NoNodeTypes = "none"

// maxNodeTypes bounds the types of nodes. Each is a column of features.
const maxNodeTypes = 1024

// nodeTypes is a table of nodes and their types, TGB's NAME_nodetype.csv.
type nodeTypes struct {
	path    string
	text    lines.Encoding
	names   *ingest.Category
	of      []int32 // by the number of a node; -1 without a type
	missing int64   // nodes without a type
	left    int64   // rows of nodes that no event names
}

// each visits the rows of the table. The texts are lent.
func (n *nodeTypes) each(ctx context.Context, visit func(in *lines.Scanner, id []byte, kind ingest.Token) error) error {
	in, err := lines.OpenText(n.path, n.text)
	if err != nil {
		return err
	}
	defer in.Close()
	var cells [][]byte
	var buf []byte
	for header := true; ; {
		line, err := in.Next()
		if err == io.EOF && header {
			return fmt.Errorf("%s: there are no rows in it; a table with the header node_id,type is expected, or say {node_types} none", n.path)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if in.Line()%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if lines.IsBlank(line) {
			continue
		}
		var fits bool
		if cells, fits = lines.Cells(cells[:0], line, ','); !fits || len(cells) != 2 {
			return in.Errorf("a node and its type are expected, in two columns parted by a comma, and there are %d; {node_types} none reads none", len(cells))
		}
		for i := range cells {
			cells[i] = bytes.TrimSpace(lines.Unquoted(bytes.TrimSpace(cells[i])))
		}
		if header {
			if _, number := lines.Integer(cells[1]); number {
				return in.Errorf("a header is expected, as in node_id,type; put one before this row")
			}
			header = false
			continue
		}
		if len(cells[0]) == 0 {
			return in.ErrorIn(1, "a node is missing; fill it in")
		}
		kind, there, err := ingest.LabelToken(cells[1], buf)
		switch {
		case err != nil:
			return in.ErrorIn(2, "%w", err)
		case !there:
			return in.ErrorIn(2, "a type is missing; fill it in, or leave the row out")
		case kind.Integer && (kind.Number < 0 || kind.Number >= ingest.MaxClasses):
			return in.ErrorIn(2, "%d is not the number of a type (0 to %d are); number types anew, or say {node_types} none", kind.Number, ingest.MaxClasses-1)
		}
		if kind.Integer {
			buf = kind.Text
		}
		if err := visit(in, cells[0], kind); err != nil {
			return err
		}
	}
}

// read reads the types of the nodes. number returns the number of a node that events name.
func (n *nodeTypes) read(ctx context.Context, nodes int64, number func(id []byte) (uint32, bool)) error {
	n.names, n.of, n.left = ingest.NewCategory(maxNodeTypes), make([]int32, nodes), 0
	n.missing = nodes
	for i := range n.of {
		n.of[i] = -1
	}
	err := n.each(ctx, func(in *lines.Scanner, id []byte, kind ingest.Token) error {
		i, known := number(id)
		switch {
		case !known:
			n.left++
			return nil
		case n.of[i] >= 0:
			return in.ErrorIn(1, "node %q is there twice; leave one of its rows out", lines.Clip(id))
		}
		n.of[i] = 0
		n.missing--
		n.names.Learn(kind)
		return nil
	})
	switch {
	case err != nil:
		return err
	case n.missing == nodes && nodes > 0:
		return fmt.Errorf("%s: no node of the events is in it; is it of another dataset? {node_types} none reads none", n.path)
	case !n.names.Settle():
		return fmt.Errorf("%s: more than %d different types of nodes, each a column of features; {node_types} none reads none", n.path, maxNodeTypes)
	}
	return n.each(ctx, func(in *lines.Scanner, id []byte, kind ingest.Token) error {
		i, known := number(id)
		if !known {
			return nil
		}
		of, err := n.names.Of(kind)
		if err != nil {
			return in.ErrorIn(2, "%w", err)
		}
		n.of[i] = of
		return nil
	})
}

// firstMissing returns the number of the first node without a type.
func (n *nodeTypes) firstMissing() uint32 {
	for i, of := range n.of {
		if of < 0 {
			return uint32(i)
		}
	}
	return 0
}

// rows streams the features of nodes: 1 in the column of a node's type.
func (n *nodeTypes) rows(ctx context.Context, emit func(ingest.RowChunk) error) error {
	dim := n.names.Len()
	out := ingest.Chunks(ctx, emit)
	out.Chunk.File = n.path
	for _, of := range n.of {
		first := len(out.Chunk.Values)
		out.Chunk.Values = append(out.Chunk.Values, make([]float32, dim)...)
		if of >= 0 {
			out.Chunk.Values[first+int(of)] = 1
		}
		if err := out.Added(); err != nil {
			return err
		}
	}
	return out.Flush()
}

// columns describes the features.
func (n *nodeTypes) columns() []store.Encoding {
	return []store.Encoding{{
		Name: "type", Width: int64(n.names.Len()), Kind: store.CategoryColumn, Encoder: store.OneHot, Categories: n.names.Names,
	}}
}

// notes returns remarks on the table, a sentence each.
func (n *nodeTypes) notes() []string {
	notes := []string{n.path + ": the type of a node is a column of its features for each type, 1 at nodes of that type; {node_types} none leaves them out"}
	if n.left > 0 {
		notes = append(notes, fmt.Sprintf("%s: %d rows of nodes that no event names are left out", n.path, n.left))
	}
	return notes
}
