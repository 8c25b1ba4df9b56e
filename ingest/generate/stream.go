package generate

import (
	"context"
	"math"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/store"
)

// Streams become datasets as relations of events. Events of kind temporal can be made in any order,
// by all processors; events of kinds drift only one behind the other, from the first.

// moment is an event of a stream as a dataset has it.
type moment struct {
	user, item uint32
	time       float64
	label      int32 // -1: none
	part       ingest.Part
	group      int // of the item, whose mean its features have
}

// streamSchema completes the schema of a stream.
func (g *Source) streamSchema() {
	r := &g.schema.Relations[0]
	r.Columns = []ingest.EdgeColumn{{Name: "time", Elem: store.F64}, {Name: "label", Elem: store.I32}}
	r.Stream = &ingest.Stream{Time: "time", Label: "label", Classes: g.shape.classes}
	if r.Parted = !g.shape.drifts; g.shape.drifts {
		r.Stream.Classes = 2
	}
	g.schema.Tables = []ingest.Table{{Name: "feat", Relation: r.Key(), Dim: g.shape.dim}}
	g.schema.Featureless = true // nodes have none
}

// moments streams the events, some at a time.
func (g *Source) moments(ctx context.Context, each int64, visit func(first int64, m []moment) error) error {
	n := g.shape.edges
	if !g.shape.drifts {
		e := newEvents(g)
		return eachChunk(ctx, n, each, 1, func(dst []moment, k int64) { dst[0] = e.moment(k) }, visit)
	}
	d, b := newDrift(g.shape), make([]moment, min(each, n))
	for first := int64(0); first < n; first += each {
		if err := ctx.Err(); err != nil {
			return err
		}
		b = b[:min(each, n-first)]
		for i := range b {
			b[i] = d.next()
		}
		if err := visit(first, b); err != nil {
			return err
		}
	}
	return nil
}

// eventEdges streams the events as edges.
func (g *Source) eventEdges(ctx context.Context, emit func(ingest.EdgeChunk) error) error {
	c := ingest.EdgeChunk{Values: make([][]uint64, 2)}
	return g.moments(ctx, ingest.ChunkRows, func(first int64, all []moment) error {
		c.Place, c.Src, c.Dst, c.Parts = g.place(first), c.Src[:0], c.Dst[:0], c.Parts[:0]
		times, labels := c.Values[0][:0], c.Values[1][:0]
		for _, m := range all {
			c.Src, c.Dst = append(c.Src, int64(m.user)), append(c.Dst, int64(m.item))
			times, labels = append(times, math.Float64bits(m.time)), append(labels, uint64(uint32(m.label)))
			c.Parts = append(c.Parts, m.part)
		}
		c.Values[0], c.Values[1] = times, labels
		if g.shape.drifts {
			c.Parts = nil
		}
		return emit(c)
	})
}

// eventRows streams the features of events.
func (g *Source) eventRows(ctx context.Context, emit func(ingest.RowChunk) error) error {
	dim := g.shape.dim
	each := max(1, int64(ingest.ChunkBytes/4/dim))
	take := func(first int64, values []float32) error {
		return emit(ingest.RowChunk{Place: g.place(first), Values: values})
	}
	if !g.shape.drifts {
		return eachChunk(ctx, g.shape.edges, each, dim, newEvents(g).row, take)
	}
	values := make([]float32, min(each, g.shape.edges)*int64(dim))
	seed, zeros := key(g.shape.seed, forNoise, 2), make([]float32, dim)
	return g.moments(ctx, each, func(first int64, all []moment) error {
		for i, m := range all {
			row := values[i*dim : (i+1)*dim]
			noise(row, zeros, draw(seed, uint64(first)+uint64(i)))
			for c := range row {
				row[c] *= driftNoise
			}
			row[m.group] += float32(g.shape.signal)
		}
		return take(first, values[:len(all)*dim])
	})
}

// moment is event k; every tenth has a label, the home of its user.
func (e *events) moment(k int64) moment {
	ev := e.at(k)
	m := moment{
		user: uint32(ev.user), item: uint32(ev.item - int64(e.users.count)), time: float64(ev.time), label: -1, part: ingest.Part(min(ev.part, int(ingest.Test))),
		group: ev.community,
	}
	if k%labelEvery == 0 {
		m.label = int32(ev.home)
	}
	return m
}
