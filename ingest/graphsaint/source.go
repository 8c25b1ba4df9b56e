package graphsaint

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/jsonmap"
	"github.com/gnnstore/gnnstore/ingest/lines"
	"github.com/gnnstore/gnnstore/ingest/npy"
	"github.com/gnnstore/gnnstore/ingest/npz"
	"github.com/gnnstore/gnnstore/store"
)

// roles are the keys of role.json by part.
var roles = map[ingest.Part]string{ingest.Train: "tr", ingest.Valid: "va", ingest.Test: "te"}

// Source is a graph in a folder of that layout.
type Source struct {
	ingest.Plain
	dir    string
	schema ingest.Schema
	adj    *npz.Matrix
	nodes  int64
	edges  bool // the schema has the number of edges
}

var _ ingest.Source = (*Source)(nil)

// Open reads the headers of a folder's arrays and the start of its maps.
func Open(dir string) (*Source, error) {
	info, err := os.Stat(dir)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("%s: not a folder; name the one that holds adj_full.npz", dir)
	}
	s := &Source{dir: dir, schema: ingest.Schema{Name: name(dir)}}
	if s.adj, err = npz.OpenMatrix(s.file("adj_full.npz")); errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%s: no adj_full.npz in it; a GraphSAINT folder has adj_full.npz, feats.npy, class_map.json and role.json",
			dir)
	} else if err != nil {
		return nil, err
	}
	if err := s.findAll(); err != nil {
		s.adj.Close()
		return nil, err
	}
	return s, nil
}

// name is the name of the folder. A folder "graphsaint" or "raw" has the name of the folder above
// it.
func name(dir string) string {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return filepath.Base(dir)
	}
	if base := filepath.Base(abs); base != "graphsaint" && base != "raw" {
		return base
	}
	return filepath.Base(filepath.Dir(abs))
}

func (s *Source) file(name string) string { return filepath.Join(s.dir, name) }

// findAll lays down the schema.
func (s *Source) findAll() error {
	rows, cols := s.adj.Shape()
	if rows != cols {
		return fmt.Errorf("%s: (%d, %d) is not square; an adjacency has a row and a column for each node",
			s.file("adj_full.npz"), rows, cols)
	}
	s.nodes = rows
	s.schema.NodeTypes = []ingest.NodeType{{Name: "node", Count: rows}}
	s.schema.Relations = []ingest.Relation{{Src: "node", Name: "to", Dst: "node", Edges: -1}}
	for _, part := range []struct {
		file string
		find func() error
	}{
		{"feats.npy", s.findFeatures},
		{"class_map.json", s.findLabels},
		{"role.json", func() error {
			s.schema.Splits = []ingest.Split{{Name: "role", NodeType: "node"}}
			return nil
		}},
		{"adj_train.npz", func() error {
			s.schema.Skipped = append(s.schema.Skipped,
				"adj_train.npz: training samples from adj_full.npz, where GraphSAINT trains on the edges among training nodes")
			return nil
		}},
	} {
		if _, err := os.Stat(s.file(part.file)); errors.Is(err, os.ErrNotExist) {
			switch none := s.dir + ": no " + part.file + " in it"; part.file {
			case "feats.npy":
				s.schema.NoFeatures = none
			case "class_map.json":
				s.schema.NoLabels = none
			case "role.json":
				s.schema.Skipped = append(s.schema.Skipped, none+", which has the split")
			}
			continue
		} else if err != nil {
			return err
		}
		if err := part.find(); err != nil {
			return err
		}
	}
	return nil
}

func (s *Source) findFeatures() error {
	path := s.file("feats.npy")
	f, err := store.OpenFile(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	h, at, err := npy.ReadHeaderSize(f)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if len(h.Shape) != 2 || !h.Type.Number() || h.Shape[1] < 1 || h.Shape[1] > ingest.MaxColumns {
		return fmt.Errorf("%s: it is %s, and a row of 1 to %d numbers for each node is expected", path, h.String(), ingest.MaxColumns)
	}
	if h.Shape[0] != s.nodes {
		return fmt.Errorf("%s: %d rows, and adj_full.npz has %d nodes; are they of one dataset?", path, h.Shape[0], s.nodes)
	}
	if have := info.Size() - at; have != h.Bytes() {
		return fmt.Errorf("%s: %s takes %d bytes of data, and the file has %d; fetch it again", path, h.String(), h.Bytes(), have)
	}
	s.schema.Tables = []ingest.Table{{Name: "feat", NodeType: "node", Dim: int(h.Shape[1])}}
	return nil
}

// findLabels reads the first node's entry: a class, or zeros and ones.
func (s *Source) findLabels() error {
	in, err := jsonmap.Open(s.file("class_map.json"))
	if err != nil {
		return err
	}
	defer in.Close()
	label := ingest.Label{Name: "label", NodeType: "node"}
	if _, err := in.Key(); err == nil {
		label.Multi, err = in.Values(func(int64) error {
			if label.Classes++; label.Classes > ingest.MaxClasses {
				return in.Errorf("more than %d classes", ingest.MaxClasses)
			}
			return nil
		})
		if err != nil {
			return err
		}
		if label.Multi && label.Classes == 0 {
			return in.Errorf("the first node has an empty list where a number for each class is expected")
		}
		if !label.Multi {
			label.Classes = 0 // the builder counts them
		}
	} else if err != io.EOF {
		return err
	}
	s.schema.Labels = []ingest.Label{label}
	return nil
}

// Schema reads the values of the adjacency through on its first call, if there are any: explicit
// zeros are no edges.
func (s *Source) Schema(ctx context.Context) (*ingest.Schema, error) {
	if !s.edges {
		n, weighted, err := s.adj.NonZeros(ctx)
		if err != nil {
			return nil, err
		}
		s.edges = true
		s.schema.Relations[0].Edges = n
		if weighted {
			s.schema.Skipped = append(s.schema.Skipped, fmt.Sprintf("adj_full.npz: weights of its %d edges are not kept; gnnstore ingest npz "+
				"adj_full.npz OUT {array_weights} data keeps them", n))
			s.schema.Relations[0].Left = []string{"weight"}
		}
	}
	return new(s.schema), nil
}

// Edges streams the entries of adj_full, row by row.
func (s *Source) Edges(ctx context.Context, relation int, emit func(ingest.EdgeChunk) error) error {
	if relation != 0 {
		panic("graphsaint: no such relation")
	}
	return s.adj.Edges(ctx, emit)
}

// Rows streams feats.npy.
func (s *Source) Rows(ctx context.Context, table int, emit func(ingest.RowChunk) error) error {
	if table != 0 || len(s.schema.Tables) == 0 {
		panic("graphsaint: no such table")
	}
	path := s.file("feats.npy")
	open := func() (io.ReadCloser, error) { return store.OpenFile(path) }
	return ingest.Matrix(ctx, open, ingest.RowsOf(path, emit), func(err error) error {
		if ctx.Err() != nil {
			return err
		}
		return fmt.Errorf("%s: %w", path, err)
	})
}

// missing marks a node that class_map.json has not named yet.
const missing = -2

// Labels reads class_map.json and gives the labels in the order of the nodes. It holds 4 bytes a
// node, since the map is in any order.
func (s *Source) Labels(ctx context.Context, label int, emit func(ingest.LabelChunk) error) error {
	if label != 0 || len(s.schema.Labels) == 0 {
		panic("graphsaint: no such label")
	}
	if l := s.schema.Labels[0]; l.Multi {
		return s.multiLabels(ctx, int64(l.Classes), emit)
	}
	class := slices.Repeat([]int32{missing}, int(s.nodes))
	err := s.eachLabelled(ctx, func(in *jsonmap.Scanner, node int64) error {
		if class[node] != missing {
			return in.Errorf("node %d is there twice", node)
		}
		list, err := in.Values(func(v int64) error {
			if v > 1<<31-1 {
				return in.Errorf("node %d: %d is not the number of a class", node, v)
			}
			class[node] = int32(max(v, -1))
			return nil
		})
		if err == nil && list {
			err = in.Errorf("node %d has a list of classes, and the first node has one class", node)
		}
		return err
	})
	if err != nil {
		return err
	}
	return ingest.Parts(ctx, s.file("class_map.json"), class, func(place ingest.Place, part []int32) error {
		for i := range part {
			part[i] = max(part[i], -1)
		}
		return emit(ingest.LabelChunk{Place: place, Values: part})
	})
}

// multiLabels streams labels of several classes a node. It holds a byte for each node and class,
// since the map is in any order.
func (s *Source) multiLabels(ctx context.Context, classes int64, emit func(ingest.LabelChunk) error) error {
	bits, named := make([]bool, s.nodes*classes), make([]bool, s.nodes)
	err := s.eachLabelled(ctx, func(in *jsonmap.Scanner, node int64) error {
		if named[node] {
			return in.Errorf("node %d is there twice", node)
		}
		named[node] = true
		row, c := bits[node*classes:(node+1)*classes], 0
		list, err := in.Values(func(v int64) error {
			if v != 0 && v != 1 {
				return in.Errorf("node %d: %d in a list of classes, which are zeros and ones", node, v)
			}
			if c < len(row) {
				row[c] = v == 1
			}
			c++
			return nil
		})
		if err == nil && (!list || c != len(row)) {
			err = in.Errorf("node %d has %d numbers, and the first node has a list of %d", node, c, classes)
		}
		return err
	})
	if err != nil {
		return err
	}
	rows := min(s.nodes, max(ingest.ChunkBytes/4/classes, 1))
	values := make([]int32, rows*classes)
	place := ingest.Place{File: s.file("class_map.json")}
	for ; place.First < s.nodes; place.First += rows {
		if err := ctx.Err(); err != nil {
			return err
		}
		n := min(rows, s.nodes-place.First)
		for i, bit := range bits[place.First*classes : (place.First+n)*classes] {
			switch {
			case !named[place.First+int64(i)/classes]:
				values[i] = -1
			case bit:
				values[i] = 1
			default:
				values[i] = 0
			}
		}
		if err := emit(ingest.LabelChunk{Place: place, Values: values[:n*classes]}); err != nil {
			return err
		}
	}
	return nil
}

// eachLabelled calls visit for each node of class_map.json; visit reads its value.
func (s *Source) eachLabelled(ctx context.Context, visit func(in *jsonmap.Scanner, node int64) error) error {
	return jsonmap.Each(ctx, s.file("class_map.json"), func(in *jsonmap.Scanner, key []byte) error {
		node, err := strconv.ParseInt(string(key), 10, 64)
		if err != nil || node < 0 || node >= s.nodes {
			return in.Errorf("key %q is not one of the %d nodes, which count from 0", lines.Clip(key), s.nodes)
		}
		return visit(in, node)
	})
}

// Split streams a list of role.json.
func (s *Source) Split(ctx context.Context, split int, part ingest.Part, emit func(ingest.IDChunk) error) error {
	if split != 0 || len(s.schema.Splits) == 0 {
		panic("graphsaint: no such split")
	}
	path := s.file("role.json")
	out, found := ingest.Chunks(ctx, emit), false
	out.Chunk.File = path + ": " + roles[part]
	err := jsonmap.Each(ctx, path, func(in *jsonmap.Scanner, key []byte) error {
		if string(key) != roles[part] {
			return nil // its list is passed over
		}
		if found {
			return in.Errorf("the list %s is there twice", roles[part])
		}
		found = true
		list, err := in.Values(func(v int64) error {
			out.Chunk.IDs = append(out.Chunk.IDs, v)
			return out.Added()
		})
		if err == nil && !list {
			err = in.Errorf("%s is a number, and a list of nodes is expected", roles[part])
		}
		return err
	})
	if err == nil && !found {
		err = fmt.Errorf("%s: no list %s; it has tr, va and te", path, roles[part])
	}
	return out.End(err)
}

// Close closes the adjacency.
func (s *Source) Close() error { return s.adj.Close() }
