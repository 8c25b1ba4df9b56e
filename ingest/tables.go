package ingest

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
)

// chooseFeatures decides which node types get made features.
func (b *builder) chooseFeatures() error {
	has := map[string]bool{}
	for _, t := range b.schema.Tables {
		has[t.NodeType] = true
	}
	b.makes = map[string]bool{}
	if b.features.kind == "" {
		if len(has) == 0 {
			return errors.New("the source has no features: choose --features " + featureChoices)
		}
		for _, t := range b.schema.NodeTypes {
			if !has[t.Name] {
				b.note("node type %s has no features", t.Name)
			}
		}
		return nil
	}
	replace := len(has) == len(b.schema.NodeTypes)
	for _, t := range b.schema.NodeTypes {
		b.makes[t.Name] = replace || !has[t.Name]
	}
	for _, t := range b.schema.Tables {
		if replace {
			b.drop("features %s of node type %s: --features %s takes their place", t.Name, t.NodeType, b.Features)
		}
	}
	return nil
}

// replaced says whether the source's tables of a node type are passed over.
func (b *builder) replaced(nodeType string) bool { return b.makes[nodeType] }

// writeTables writes the source's tables, then the made ones.
func (b *builder) writeTables(ctx context.Context) error {
	for i, t := range b.schema.Tables {
		if b.replaced(t.NodeType) {
			continue
		}
		w, err := b.newTable(t, false)
		if err != nil {
			return err
		}
		b.meter.begin("write features", int64(w.nodes.count), "rows")
		err = b.src.Rows(ctx, i, func(c RowChunk) error { return w.put(ctx, c) })
		if err != nil {
			return err
		}
		if err := w.close(); err != nil {
			return err
		}
		b.meter.end()
	}
	return b.makeTables(ctx)
}

// tableWriter takes rows in the source's order, converts them and puts them at their stored ids.
type tableWriter struct {
	b     *builder
	spec  Table
	nodes *nodes
	rows  *store.FeatureWriter
	from  origin
	half  []uint16
	row   []byte // a converted row
	rep   TableReport
	first string // of the values that overflowed
}

func (b *builder) newTable(spec Table, made bool) (*tableWriter, error) {
	n := b.typeOf(spec.NodeType)
	elem := store.F16
	if b.DType == F32 {
		elem = store.F32
	}
	rows, err := b.w.AddTable(spec.Name, spec.NodeType, elem, int64(n.count), spec.Dim)
	if err != nil {
		return nil, err
	}
	return &tableWriter{
		b: b, spec: spec, nodes: n, rows: rows, half: make([]uint16, spec.Dim), row: make([]byte, spec.Dim*elem.Size()),
		rep: TableReport{Name: spec.Name, NodeType: spec.NodeType, Dim: spec.Dim, DType: b.DType, Made: made},
	}, nil
}

// put writes the rows of a chunk.
func (w *tableWriter) put(ctx context.Context, c RowChunk) error {
	dim := w.spec.Dim
	if len(c.Values)%dim != 0 {
		return fmt.Errorf("%s: the reader gave %d values for rows of %d; this is a fault of the reader, please report it", c.File, len(c.Values), dim)
	}
	count := len(c.Values) / dim
	if err := w.from.follow(ctx, c.Place, count); err != nil {
		return err
	}
	if w.from.next > int64(w.nodes.count) {
		return fmt.Errorf("%s: row %d (counting from 0) and there are %d nodes of type %s; are features and graph of one dataset?",
			c.File, w.nodes.count, w.nodes.count, w.nodes.name)
	}
	for i := range count {
		row := c.Values[i*dim : (i+1)*dim]
		if err := w.convert(c, i, row); err != nil {
			return err
		}
		if err := w.rows.Put(w.nodes.storedID(uint32(c.First)+uint32(i)), w.row); err != nil {
			return err
		}
	}
	w.b.meter.add(count)
	return nil
}

// convert fills w.row from the i-th row of c.
func (w *tableWriter) convert(c RowChunk, i int, row []float32) error {
	for col, x := range row {
		if x-x != 0 {
			return fmt.Errorf("%s: row %d, column %d (counting from 0) is %v; features are finite numbers, so replace it", c.File, c.First+int64(i), col, x)
		}
	}
	if w.b.DType == F32 {
		for col, x := range row {
			binary.LittleEndian.PutUint32(w.row[4*col:], math.Float32bits(x))
		}
		return nil
	}
	if n := kernels.Float32ToHalf(w.half, row); n > 0 {
		w.clamp(c, i, row)
		w.rep.Overflowed += int64(n)
	}
	for col, h := range w.half {
		binary.LittleEndian.PutUint16(w.row[2*col:], h)
	}
	return nil
}

const (
	halfInf = 0x7c00
	halfMax = 0x7bff // 65504
)

// clamp makes the infinities in w.half, all of them overflows, the largest finite halves, and remembers the first.
func (w *tableWriter) clamp(c RowChunk, i int, row []float32) {
	for col, h := range w.half {
		if h&halfInf != halfInf {
			continue
		}
		if w.first == "" {
			w.first = fmt.Sprintf("%s: row %d, column %d (counting from 0) is %v", c.File, c.First+int64(i), col, row[col])
		}
		w.half[col] = h&0x8000 | halfMax
	}
}

// close ends the table, or refuses it for what the whole pass has shown.
func (w *tableWriter) close() error {
	if w.from.next < int64(w.nodes.count) {
		return fmt.Errorf("%s: %d rows for the %d nodes of type %s; is the file complete?",
			w.from.name("table "+w.spec.Name), w.from.next, w.nodes.count, w.nodes.name)
	}
	if w.rep.Overflowed > 0 && !w.b.Clamp {
		return fmt.Errorf("%s, and %d values in all are beyond float16, which ends at 65504; store --dtype f32, or --clamp them", w.first, w.rep.Overflowed)
	}
	if err := w.rows.Close(); err != nil {
		return err
	}
	w.b.report.Tables = append(w.b.report.Tables, w.rep)
	return nil
}
