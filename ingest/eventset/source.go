package eventset

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/edgelist"
)

// Options have what the files lack.
type Options struct {
	Bipartite bool // sources and destinations are users and items
	NoRows    bool // features of events are left behind, since others are to be made
	// NodeTypes is TGB's table of nodes and types. Default NAME_nodetype.csv beside the table of
	// events, if it is there; NoNodeTypes reads none.
	NodeTypes string
	// Missing is "zeros" if nodes may lack a type, or "refuse", the default.
	Missing string
	// Memory bounds what the pickle of a .pt takes; 0 is no bound but its own.
	Memory int64
	// Encoding names the encoding of text, as in edgelist.Options.
	Encoding string
}

// Source is a stream with features beside its table. Rows of the table are not passed over: those
// of features would not fit any more.
type Source struct {
	*edgelist.Source
	list    string    // path of the table of events
	tables  []*matrix // behind the list's own tables; it has none
	owners  []string  // of them: "" is the stream's
	skipped []string
	labels  string // a table of labels of nodes at times; empty: there is none
	memory  int64  // Options.Memory
	text    string // Options.Encoding
	named   bool   // column idx names the row of features that an event has
	schema  *ingest.Schema
}

// OpenTGL opens TGL's folder.
func OpenTGL(dir string, o Options) (*Source, error) {
	table := filepath.Join(dir, "edges.csv")
	switch info, err := os.Stat(dir); {
	case err != nil:
		return nil, err
	case !info.IsDir():
		return nil, fmt.Errorf("%s: a file; name the folder that it is in, with the features beside it", dir)
	case !exists(table):
		return nil, fmt.Errorf("%s: no edges.csv in it; name TGL's folder of one data set", dir)
	}
	s := &Source{text: o.Encoding}
	nodes, err := s.matrix(o, dir, "node_features", 0)
	if err != nil {
		return nil, err
	}
	events, err := s.matrix(o, dir, "edge_features", 0)
	if err != nil {
		return nil, err
	}
	list := edgelist.Options{
		Events: true, Header: "yes", Src: "src", Dst: "dst", Time: "time", Part: "ext_roll", Bipartite: o.Bipartite,
		Counted: true, RowsBeside: true,
	}
	if nodes != nil {
		if o.Bipartite {
			return nil, fmt.Errorf("%s: its rows are of nodes of one kind, which {bipartite} parts in two; leave that out", nodes.path)
		}
		list.Count = nodes.rows
		s.add(nodes, "node")
	}
	if events != nil && !o.NoRows {
		s.add(events, "")
	}
	if lists := filepath.Join(dir, "ext_full.npz"); exists(lists) {
		s.skipped = append(s.skipped, lists+": lists of neighbours are not read")
	}
	switch labels := filepath.Join(dir, "labels.csv"); {
	case exists(labels) && o.Bipartite:
		s.skipped = append(s.skipped, labels+": labels are of nodes of one kind, which {bipartite} parts in two, and are not read")
	case exists(labels):
		s.labels = labels
	}
	return s.open(table, list)
}

// OpenTGN opens ml_NAME.csv, or the folder that it is alone in.
func OpenTGN(path string, o Options) (*Source, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		found, err := filepath.Glob(filepath.Join(escape(path), "ml_*.csv"))
		if err != nil {
			return nil, err
		}
		if len(found) != 1 {
			return nil, fmt.Errorf("%s: %d files ml_*.csv in it; name the one to read", path, len(found))
		}
		path = found[0]
	}
	base, ok := strings.CutSuffix(filepath.Base(path), ".csv")
	if !ok {
		return nil, fmt.Errorf("%s: not ml_NAME.csv, which TGN's preprocessing leaves; for another table choose format events", path)
	}
	s := &Source{memory: o.Memory, text: o.Encoding}
	events, err := s.matrix(o, filepath.Dir(path), base, 1)
	if err != nil {
		return nil, err
	}
	if events != nil && !o.NoRows {
		s.add(events, "")
		s.named = true
	}
	if nodes := filepath.Join(filepath.Dir(path), base+"_node.npy"); exists(nodes) {
		s.skipped = append(s.skipped, nodes+": features of nodes, which are zeros in TGN's preprocessing, are not read")
	}
	list := edgelist.Options{
		Events: true, Header: "yes", Src: "u", Dst: "i", Time: "ts", EventLabel: "label", Bipartite: o.Bipartite, RowsBeside: true,
	}
	if s.named {
		list.RowColumn = idxColumn
	}
	return s.open(path, list)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// escape is a folder as a pattern of its own name.
func escape(dir string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(dir)
}

func (s *Source) open(table string, o edgelist.Options) (_ *Source, err error) {
	s.list, o.Encoding = table, s.text
	if s.Source, err = edgelist.Open(table, o); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *Source) add(m *matrix, owner string) {
	s.tables, s.owners = append(s.tables, m), append(s.owners, owner)
}

// matrix opens the features called so, nil where there are none.
func (s *Source) matrix(o Options, dir, name string, skip int64) (*matrix, error) {
	for _, ext := range []string{".pt", ".npy"} {
		m, err := openMatrix(filepath.Join(dir, name+ext), skip, o.Memory)
		if !errors.Is(err, fs.ErrNotExist) {
			return m, err
		}
	}
	return nil, nil
}

// Extras implements [ingest.Source].
func (s *Source) Extras() ingest.Extras {
	e := s.Source.Extras()
	e.MissingRows, e.NodeLabels = s.MissingRows, s.NodeLabels
	return e
}

// Schema returns the list's schema, with the features beside it.
func (s *Source) Schema(ctx context.Context) (*ingest.Schema, error) {
	if s.schema != nil {
		return s.schema, nil
	}
	schema, err := s.Source.Schema(ctx)
	if err != nil {
		return nil, err
	}
	if s.labels != "" {
		if schema, err = s.labelled(ctx, schema); err != nil {
			return nil, err
		}
	}
	for i, m := range s.tables {
		if s.owners[i] == "" && s.named {
			if err := s.findRows(ctx, m); err != nil {
				return nil, err
			}
		}
		if s.owners[i] == "" && schema.Relations[0].Edges < 0 {
			schema = aboutEvents(schema, m.rows)
		}
		t := ingest.Table{Name: "feat", NodeType: s.owners[i], Dim: m.dim}
		if t.NodeType == "" {
			t.Relation = schema.Relations[0].Key()
		}
		schema.Tables = append(schema.Tables, t)
		more, err := ingest.Files(m.path)
		if err != nil {
			return nil, err
		}
		schema.Identity += more
	}
	schema.Skipped = append(slices.Clone(schema.Skipped), s.skipped...)
	s.schema = schema
	return schema, nil
}

// aboutEvents is a schema whose stream has about so many events.
func aboutEvents(schema *ingest.Schema, n int64) *ingest.Schema {
	out, stream := *schema, *schema.Relations[0].Stream
	stream.About.Events = n
	out.Relations = slices.Clone(schema.Relations)
	out.Relations[0].Stream = &stream
	return &out
}

// Rows streams the features of events, or of nodes.
func (s *Source) Rows(ctx context.Context, table int, emit func(ingest.RowChunk) error) error {
	return s.tables[table].each(ctx, emit)
}

// MissingRows are none: a matrix has a row for each.
func (s *Source) MissingRows(int) int64 { return 0 }
