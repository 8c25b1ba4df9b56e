package eventset

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/edgelist"
	"github.com/gnnstore/gnnstore/store"
)

// labelTable opens labels.csv, a list of events as well: of nodes with their classes.
func (s *Source) labelTable() (*edgelist.Source, error) {
	return edgelist.Open(s.labels, edgelist.Options{Events: true, Header: "yes", Src: "node", Dst: "label", Time: "time", Part: "ext_roll", IDType: "int", Encoding: s.text})
}

// labelled returns the schema of a stream whose nodes have labels. Nodes count from 0. Where
// nothing declares their number, the largest id in both tables sets it.
func (s *Source) labelled(ctx context.Context, schema *ingest.Schema) (*ingest.Schema, error) {
	more, err := ingest.Files(s.labels)
	if err != nil {
		return nil, err
	}
	if schema.NodeTypes[0].IDs == ingest.TextIDs {
		return nil, fmt.Errorf("%s: the ids of the events are text, and TGL's nodes count from 0", s.labels)
	}
	out := *schema
	out.Identity += more
	stream := *out.Relations[0].Stream
	stream.NodeLabels = true
	out.Relations = []ingest.Relation{out.Relations[0]}
	out.Relations[0].Stream = &stream
	if stream.About.NodeLabels, err = aboutRows(s.labels); err != nil {
		return nil, err
	}
	if out.NodeTypes[0].IDs == ingest.RowIDs {
		return &out, nil
	}
	nodes, events := int64(0), int64(0)
	if err := s.Source.Edges(ctx, 0, func(c ingest.EdgeChunk) error {
		events += int64(c.Len())
		for i, u := range c.Src {
			nodes = max(nodes, u+1, c.Dst[i]+1)
		}
		return nil
	}); err != nil {
		return nil, err
	}
	stream.About.NodeLabels = 0
	if err := s.NodeLabels(ctx, 0, func(c ingest.NodeLabelChunk) error {
		stream.About.NodeLabels += int64(len(c.Nodes))
		for _, v := range c.Nodes {
			nodes = max(nodes, v+1)
		}
		return nil
	}); err != nil {
		return nil, err
	}
	out.NodeTypes = []ingest.NodeType{{Name: out.NodeTypes[0].Name, Count: nodes}}
	out.Relations[0].Edges = events
	return &out, nil
}

// aboutRows estimates the number of rows of a table from its beginning and its size.
func aboutRows(path string) (int64, error) {
	f, size, err := store.OpenSized(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	head, err := io.ReadAll(io.LimitReader(f, 64<<10))
	if err != nil {
		return 0, fmt.Errorf("%s: %w", path, err)
	}
	lines := bytes.Count(head, []byte{'\n'})
	if int64(len(head)) == size {
		return int64(max(0, lines-1)), nil // less the header
	}
	return int64(float64(size) / float64(len(head)) * float64(lines)), nil
}

// NodeLabels streams labels.csv.
func (s *Source) NodeLabels(ctx context.Context, _ int, emit func(ingest.NodeLabelChunk) error) error {
	table, err := s.labelTable()
	if err != nil {
		return err
	}
	defer table.Close()
	var times []float64
	return table.Edges(ctx, 0, func(c ingest.EdgeChunk) error {
		times = times[:0]
		for _, bits := range c.Values[0] {
			times = append(times, math.Float64frombits(bits))
		}
		return emit(ingest.NodeLabelChunk{Place: c.Place, Nodes: c.Src, Times: times, Classes: c.Dst, Parts: c.Parts})
	})
}
