package sourcetest

import (
	"context"
	"errors"
	"slices"

	"github.com/gnnstore/gnnstore/ingest"
)

// memory is a Source of a Graph in memory, which keeps the contract unless its fields say
// otherwise. A chunk has three rows.
type memory struct {
	g       *Graph
	missing int64
	remarks []string
	bad     int64
	badErr  error

	// What a broken source does wrong:
	change    func(s *section, nth int, c *chunk)   // changes a chunk
	before    func(ctx context.Context, s *section) // is called before a section
	rowsAt    func(dst []float32)                   // changes what RowsAt gives
	onError   func(err error) error                 // of emit, where nil goes on, or of the context
	lends     bool                                  // its own memory
	deaf      bool                                  // does not look at the context
	elsewhere bool                                  // calls emit in a goroutine of its own
	onSchema  func(ctx context.Context) error
	onClose   func() error
}

// errEnd ends a section without an error.
var errEnd = errors.New("end")

func (m *memory) Schema(ctx context.Context) (*ingest.Schema, error) {
	if m.onSchema != nil {
		if err := m.onSchema(ctx); err != nil {
			return nil, err
		}
	}
	schema := *m.g.Schema
	return &schema, nil
}

func (m *memory) Close() error {
	if m.onClose != nil {
		return m.onClose()
	}
	return nil
}

func texts(list []string) (t ingest.Texts) {
	for _, text := range list {
		t.Append([]byte(text))
	}
	return t
}

func part[T any](s []T, lo, hi int) []T {
	return s[min(lo, len(s)):min(hi, len(s))]
}

// stream gives chunks of n rows.
func (m *memory) stream(ctx context.Context, k kind, index int, p ingest.Part, n int, cut func(lo, hi int) *chunk, emit func(c *chunk) error) error {
	all := sections(m.g.Schema)
	s := &all[slices.IndexFunc(all, func(s section) bool { return s.kind == k && s.index == index && s.part == p })]
	if m.before != nil {
		m.before(ctx, s)
	}
	const size = 3
	for nth := 0; nth*size < n; nth++ {
		if err := ctx.Err(); err != nil && !m.deaf {
			if m.onError != nil {
				err = m.onError(err)
			}
			return err
		}
		c := cut(nth*size, min(n, nth*size+size))
		c.Place = ingest.Place{File: "memory", First: int64(nth * size)}
		if !m.lends {
			for e := range c.ids {
				c.ids[e] = slices.Clone(c.ids[e])
			}
			for i := range c.values {
				c.values[i] = slices.Clone(c.values[i])
			}
			c.floats, c.classes = slices.Clone(c.floats), slices.Clone(c.classes)
		}
		if m.change != nil {
			m.change(s, nth, c)
		}
		if m.elsewhere {
			here := emit
			emit = func(c *chunk) error {
				done := make(chan error)
				go func() { done <- here(c) }()
				return <-done
			}
		}
		if err := emit(c); err != nil {
			if m.onError != nil {
				err = m.onError(err)
			}
			if err == errEnd {
				return nil
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func (m *memory) ids(ctx context.Context, k kind, index int, p ingest.Part, list IDs, emit func(ingest.IDChunk) error) error {
	return m.stream(ctx, k, index, p, max(len(list.Numbers), len(list.Texts)), func(lo, hi int) *chunk {
		return &chunk{ids: [2][]int64{part(list.Numbers, lo, hi)}, texts: [2]ingest.Texts{texts(part(list.Texts, lo, hi))}}
	}, func(c *chunk) error { return emit(ingest.IDChunk{Place: c.Place, IDs: c.ids[0], Texts: c.texts[0]}) })
}

func (m *memory) NodeIDs(ctx context.Context, i int, emit func(ingest.IDChunk) error) error {
	return m.ids(ctx, nodeIDs, i, 0, m.g.NodeIDs[i], emit)
}

func (m *memory) Split(ctx context.Context, i int, p ingest.Part, emit func(ingest.IDChunk) error) error {
	return m.ids(ctx, split, i, p, m.g.Splits[i][p], emit)
}

func (m *memory) Edges(ctx context.Context, i int, emit func(ingest.EdgeChunk) error) error {
	e := m.g.Edges[i]
	return m.stream(ctx, edges, i, 0, max(len(e.Src), len(e.SrcTexts)), func(lo, hi int) *chunk {
		c := &chunk{ids: [2][]int64{part(e.Src, lo, hi), part(e.Dst, lo, hi)},
			texts: [2]ingest.Texts{texts(part(e.SrcTexts, lo, hi)), texts(part(e.DstTexts, lo, hi))}}
		for _, column := range e.Values {
			c.values = append(c.values, column[lo:hi])
		}
		return c
	}, func(c *chunk) error {
		return emit(ingest.EdgeChunk{Place: c.Place, Src: c.ids[0], Dst: c.ids[1], SrcTexts: c.texts[0], DstTexts: c.texts[1], Values: c.values})
	})
}

func (m *memory) Rows(ctx context.Context, i int, emit func(ingest.RowChunk) error) error {
	dim := m.g.Schema.Tables[i].Dim
	return m.stream(ctx, features, i, 0, len(m.g.Rows[i])/dim, func(lo, hi int) *chunk { return &chunk{floats: m.g.Rows[i][lo*dim : hi*dim]} },
		func(c *chunk) error { return emit(ingest.RowChunk{Place: c.Place, Values: c.floats}) })
}

func (m *memory) Labels(ctx context.Context, i int, emit func(ingest.LabelChunk) error) error {
	width := 1
	if l := m.g.Schema.Labels[i]; l.Multi {
		width = l.Classes
	}
	return m.stream(ctx, labels, i, 0, len(m.g.Labels[i])/width,
		func(lo, hi int) *chunk { return &chunk{classes: m.g.Labels[i][lo*width : hi*width]} },
		func(c *chunk) error { return emit(ingest.LabelChunk{Place: c.Place, Values: c.classes}) })
}

// Extras implements [ingest.Source].
func (m *memory) Extras() ingest.Extras {
	return ingest.Extras{RowsAt: m.RowsAt, MissingRows: m.MissingRows, Remarks: m.Remarks, BadRows: m.BadRows}
}

func (m *memory) RowsAt(table int, rows []uint32, dst []float32) bool {
	dim := m.g.Schema.Tables[table].Dim
	for i, row := range rows {
		copy(dst[i*dim:(i+1)*dim], m.g.Rows[table][int(row)*dim:])
	}
	if m.rowsAt != nil {
		m.rowsAt(dst)
	}
	return true
}

// MissingRows returns the missing rows of the first table, and 0 for others.
func (m *memory) MissingRows(table int) int64 {
	if table > 0 {
		return 0
	}
	return m.missing
}

func (m *memory) Remarks() []string       { return m.remarks }
func (m *memory) BadRows() (int64, error) { return m.bad, m.badErr }
