package main

import (
	"context"
	"slices"

	"github.com/gnnstore/gnnstore/ingest"
)

// hopRows is a source whose feature rows are, side by side, some of these: a node's own row, and
// the rows that it has after 1, 2, … hops of averaging over itself and its in-neighbours, an edge
// that is there twice counting twice. A network without neighbours learns from them what plain
// averages of features give away.
type hopRows struct {
	ingest.Source
	schema *ingest.Schema
	values []float32 // a row a node
}

// newHopRows reads the edges and rows of a graph of one node type and one relation, and keeps rows
// after as many hops as keep names; 0 is the own row. It holds all of it in memory.
func newHopRows(ctx context.Context, source ingest.Source, keep ...int) (*hopRows, error) {
	schema, err := source.Schema(ctx)
	if err != nil {
		return nil, err
	}
	n, dim := int(schema.NodeTypes[0].Count), schema.Tables[0].Dim
	var src, dst []uint32
	degree := slices.Repeat([]float32{1}, n)
	err = source.Edges(ctx, 0, func(c ingest.EdgeChunk) error {
		for i, u := range c.Src {
			src, dst = append(src, uint32(u)), append(dst, uint32(c.Dst[i]))
			degree[c.Dst[i]]++
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	rows := make([]float32, 0, n*dim)
	err = source.Rows(ctx, 0, func(c ingest.RowChunk) error {
		rows = append(rows, c.Values...)
		return nil
	})
	if err != nil {
		return nil, err
	}
	h := &hopRows{Source: source, schema: schema}
	table := schema.Tables[0]
	table.Dim = len(keep) * dim
	schema.Tables = []ingest.Table{table}
	schema.Identity = ""
	h.values = make([]float32, n*table.Dim)
	for hop := 0; ; hop++ {
		if at := slices.Index(keep, hop); at >= 0 {
			for v := range n {
				copy(h.values[v*table.Dim+at*dim:], rows[v*dim:(v+1)*dim])
			}
		}
		if hop == slices.Max(keep) {
			return h, nil
		}
		next := slices.Clone(rows)
		for i, v := range dst {
			to, from := next[int(v)*dim:int(v+1)*dim], rows[int(src[i])*dim:int(src[i]+1)*dim]
			for k, x := range from {
				to[k] += x
			}
		}
		for i := range next {
			next[i] /= degree[i/dim]
		}
		rows = next
	}
}

// Extras implements [ingest.Source]: there are none, even if the wrapped source has some.
func (*hopRows) Extras() ingest.Extras { return ingest.Extras{} }

func (h *hopRows) Schema(context.Context) (*ingest.Schema, error) {
	schema := *h.schema
	return &schema, nil
}

func (h *hopRows) Rows(ctx context.Context, _ int, emit func(ingest.RowChunk) error) error {
	dim := h.schema.Tables[0].Dim
	place := ingest.Place{File: "means"}
	for values := range slices.Chunk(h.values, max(ingest.ChunkBytes/4/dim, 1)*dim) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := emit(ingest.RowChunk{Place: place, Values: slices.Clone(values)}); err != nil {
			return err
		}
		place.First += int64(len(values) / dim)
	}
	return nil
}
