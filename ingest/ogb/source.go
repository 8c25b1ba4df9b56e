package ogb

import (
	"context"
	"path/filepath"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/csvgz"
)

const (
	edgeChunk  = 64 << 10 // edges: 1 MiB of ids
	idChunk    = 64 << 10 // nodes
	chunkBytes = 1 << 20
)

// Source is a graph in an OGB folder.
type Source struct {
	dir    string
	schema ingest.Schema
	nodes  int64
	edges  int64
	tasks  int // columns of labels
}

var _ ingest.Source = (*Source)(nil)

// Open reads the counts and the first rows of a dataset's folder, "ogbn_arxiv" or "arxiv".
func Open(dir string) (*Source, error) {
	if err := refuseOthers(dir); err != nil {
		return nil, err
	}
	s := &Source{dir: dir, schema: ingest.Schema{Name: filepath.Base(dir)}}
	if abs, err := filepath.Abs(dir); err == nil {
		s.schema.Name = filepath.Base(abs) // "." has no name
	}
	info, isKnown := Lookup(s.schema.Name)
	if isKnown {
		s.schema.Name = info.Name
	}
	var err error
	if s.nodes, err = readCount(s.raw("num-node-list.csv.gz")); err != nil {
		return nil, err
	}
	if s.edges, err = readCount(s.raw("num-edge-list.csv.gz")); err != nil {
		return nil, err
	}
	s.schema.NodeTypes = []ingest.NodeType{{Name: "node", Count: s.nodes}}
	s.schema.Relations = []ingest.Relation{{Src: "node", Name: "to", Dst: "node", Edges: s.edges}}
	if err := s.findTables(info); err != nil {
		return nil, err
	}
	if err := s.findSplit(info); err != nil {
		return nil, err
	}
	return s, nil
}

// Schema is what Open found.
func (s *Source) Schema(context.Context) (*ingest.Schema, error) {
	schema := s.schema
	return &schema, nil
}

// NodeIDs has nothing to give: nodes are numbered by row.
func (s *Source) NodeIDs(context.Context, int, func(ingest.IDChunk) error) error { return nil }

// Edges streams raw/edge.csv.gz.
func (s *Source) Edges(ctx context.Context, relation int, emit func(ingest.EdgeChunk) error) error {
	if relation != 0 {
		panic("ogb: no such relation")
	}
	t := table{path: s.raw("edge.csv.gz"), rows: s.edges, declared: s.raw("num-edge-list.csv.gz"), chunk: edgeChunk}
	var src, dst []int64
	var row [2]int64
	return t.stream(ctx,
		func(in *csvgz.Scanner) error {
			err := in.Ints(row[:])
			if err == nil {
				src, dst = append(src, row[0]), append(dst, row[1])
			}
			return err
		},
		func(place ingest.Place) error {
			err := emit(ingest.EdgeChunk{Place: place, Src: src, Dst: dst})
			src, dst = src[:0], dst[:0]
			return err
		})
}

// Rows streams raw/node-feat.csv.gz.
func (s *Source) Rows(ctx context.Context, i int, emit func(ingest.RowChunk) error) error {
	if i != 0 || len(s.schema.Tables) == 0 {
		panic("ogb: no such table")
	}
	dim := s.schema.Tables[0].Dim
	t := table{path: s.raw("node-feat.csv.gz"), rows: s.nodes, declared: s.raw("num-node-list.csv.gz"), chunk: max(chunkBytes/4/int64(dim), 1)}
	var values []float32
	row := make([]float32, dim)
	return t.stream(ctx,
		func(in *csvgz.Scanner) error {
			err := in.Floats(row)
			if err == nil {
				values = append(values, row...)
			}
			return err
		},
		func(place ingest.Place) error {
			err := emit(ingest.RowChunk{Place: place, Values: values})
			values = values[:0]
			return err
		})
}

// Labels streams raw/node-label.csv.gz.
func (s *Source) Labels(ctx context.Context, label int, emit func(ingest.LabelChunk) error) error {
	if label != 0 || len(s.schema.Labels) == 0 {
		panic("ogb: no such label")
	}
	t := table{path: s.raw("node-label.csv.gz"), rows: s.nodes, declared: s.raw("num-node-list.csv.gz"), chunk: max(chunkBytes/4/int64(s.tasks), 1)}
	var values []int32
	row := make([]int32, s.tasks)
	return t.stream(ctx,
		func(in *csvgz.Scanner) error {
			if err := in.Labels(row); err != nil {
				return err
			}
			for i, v := range row {
				if s.tasks > 1 && v > 1 {
					return in.Errorf("%d in column %d of %d; several columns of labels are zeros and ones", v, i+1, s.tasks)
				}
			}
			values = append(values, row...)
			return nil
		},
		func(place ingest.Place) error {
			err := emit(ingest.LabelChunk{Place: place, Values: values})
			values = values[:0]
			return err
		})
}

// Split streams the nodes of a part.
func (s *Source) Split(ctx context.Context, split int, part ingest.Part, emit func(ingest.IDChunk) error) error {
	if split != 0 || len(s.schema.Splits) == 0 {
		panic("ogb: no such split")
	}
	path := filepath.Join(s.dir, "split", s.schema.Splits[0].Name, part.String()+".csv.gz")
	t := table{path: path, rows: -1, chunk: idChunk}
	var ids []int64
	var row [1]int64
	return t.stream(ctx,
		func(in *csvgz.Scanner) error {
			err := in.Ints(row[:])
			if err == nil {
				ids = append(ids, row[0])
			}
			return err
		},
		func(place ingest.Place) error {
			err := emit(ingest.IDChunk{Place: place, IDs: ids})
			ids = ids[:0]
			return err
		})
}

// Close has nothing to close: files are open while their section is read.
func (s *Source) Close() error { return nil }
