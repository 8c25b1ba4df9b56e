package build

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/internal/extsort"
	"github.com/gnnstore/gnnstore/store"
)

// writeLabels writes every label.
func (b *builder) writeLabels(s *sizes, do func(pass)) {
	for i, l := range b.schema.Labels {
		n, width := b.typeOf(l.NodeType), int64(4)
		if l.Multi {
			width = int64(l.Classes)
		}
		rows := s.nodes[n.number]
		do(pass{name: "write labels " + l.NodeType + "/" + l.Name, total: int64(n.count), unit: "rows",
			cost: cost{items: rows, seconds: float64(rows) / rateNodes, written: rows*width + sectionOverhead},
			run:  func(ctx context.Context) error { return b.writeLabel(ctx, i, l) }})
	}
}

// eachLabel streams label i: visit gets the values of one row after another, width of them,
// checked.
func (b *builder) eachLabel(ctx context.Context, i int, visit func(row int, values []int32)) error {
	l := b.schema.Labels[i]
	n, width := b.typeOf(l.NodeType), l.Width()
	var from origin
	err := b.src.Labels(ctx, i, func(c ingest.LabelChunk) error {
		if len(c.Values)%width != 0 {
			return fmt.Errorf("%s: the reader gave %d labels for rows of %d; this is a fault of the reader, please report it", c.File, len(c.Values), width)
		}
		rows := len(c.Values) / width
		if err := from.follow(ctx, c.Place, rows); err != nil {
			return err
		}
		for k := range rows {
			row := int(c.First) + k
			if row >= n.count {
				continue // counted, and refused below with both numbers
			}
			values := c.Values[k*width : (k+1)*width]
			if err := checkValues(&l, &c.Place, k, values); err != nil {
				return err
			}
			visit(row, values)
		}
		b.meter.add(rows)
		return nil
	})
	if err != nil {
		return err
	}
	if from.next != int64(n.count) {
		return fmt.Errorf("%s: %d labels for the %d nodes of type %s; are labels and graph of one dataset?", from.name("label "+l.Name), from.next, n.count, n.name)
	}
	return nil
}

// checkValues refuses what is no label of a row.
func checkValues(l *ingest.Label, at *ingest.Place, k int, values []int32) error {
	if l.Multi {
		for c, x := range values {
			if x < -1 || x > 1 {
				return fmt.Errorf("%s: class %d (counting from 0) is %d; a node has a class (1), has it not (0), or it is missing (-1)", at.Row(k), c, x)
			}
		}
		return nil
	}
	if l.Numbers {
		if x := math.Float32frombits(uint32(values[0])); math.IsInf(float64(x), 0) {
			return fmt.Errorf("%s: the number is %v for float32, or too large for it; scale the numbers down", at.Row(k), x)
		}
		return nil
	}
	class := values[0]
	if class < -1 {
		return fmt.Errorf("%s: class %d; classes count from 0, and -1 is missing", at.Row(k), class)
	}
	if l.Classes > 0 && int(class) >= l.Classes {
		return fmt.Errorf("%s: class %d, and label %s has %d classes, which count from 0", at.Row(k), class, l.Name, l.Classes)
	}
	if l.Classes == 0 && class >= maxInferredClass {
		return fmt.Errorf("%s: class %d, and %d is the largest; the labels look like ids, not classes",
			at.Row(k), class, maxInferredClass-1)
	}
	return nil
}

// writeLabel reads label i and writes it in stored order.
func (b *builder) writeLabel(ctx context.Context, i int, l ingest.Label) error {
	n := b.typeOf(l.NodeType)
	stored := n.storedIDs()
	width := 4
	if l.Multi {
		width = l.Classes
	}
	memory, err := b.forPlacer(int64(n.count), width, b.room()/2)
	if err != nil {
		return err
	}
	p, err := b.area.NewPlacer(fmt.Sprintf("label-%d", i), int64(n.count), width, memory)
	if err != nil {
		return err
	}
	defer p.Free()
	missing := int64(0)
	var found classSet
	var splits []*partition // whose nodes should have labels
	for _, s := range b.splits {
		if s.nodes == n && b.isFirstLabel(i) {
			s.unlabelled = 0
			splits = append(splits, s)
		}
	}
	cell := make([]byte, width)
	err = b.eachLabel(ctx, i, func(row int, values []int32) {
		has := false
		if l.Multi {
			for c, x := range values {
				has = has || x >= 0
				cell[c] = uint8(x) // -1 is store.MissingBit
			}
		} else if l.Numbers {
			x := math.Float32frombits(uint32(values[0]))
			has = x == x
			binary.LittleEndian.PutUint32(cell, uint32(values[0]))
		} else {
			has = values[0] >= 0
			binary.LittleEndian.PutUint32(cell, uint32(values[0]))
			found.add(values[0])
		}
		if !has {
			missing++
			for _, s := range splits {
				if s.of.Bytes()[row] != 0 {
					s.unlabelled++
				}
			}
		}
		p.Put(storedID(stored, uint32(row)), cell)
	})
	buckets, err := extsort.CloseAfter(err, p.Close)
	if err != nil {
		return err
	}
	c, err := found.settle(&l, n.count)
	if err != nil {
		return err
	}
	if len(c.names) > 0 && len(c.names) != c.n {
		b.drop("the class names of label %s: %d names for %d classes", l.Name, len(c.names), c.n)
		c.names = nil
	}
	var w *store.LabelWriter
	if l.Numbers {
		w, err = b.w.NewNumbers(l.Name, l.NodeType, int64(n.count))
	} else {
		w, err = b.w.NewLabels(l.Name, l.NodeType, int64(n.count), c.n, l.Multi, slices.Clone(c.names))
	}
	if err != nil {
		return err
	}
	values, numbers := make([]int32, labelChunk), []float32(nil)
	emit := func(_ int64, rows []byte) error {
		if l.Multi {
			return w.AppendBits(rows)
		}
		if l.Numbers {
			numbers = numbers[:0]
			for at := range slices.Chunk(rows, 4) {
				numbers = append(numbers, math.Float32frombits(binary.LittleEndian.Uint32(at)))
			}
			return w.AppendNumbers(numbers)
		}
		for len(rows) > 0 {
			k := min(len(rows)/4, labelChunk)
			for i := range values[:k] {
				values[i] = c.of(int32(binary.LittleEndian.Uint32(rows[4*i:])))
			}
			if err := w.AppendClasses(values[:k]); err != nil {
				return err
			}
			rows = rows[4*k:]
		}
		return nil
	}
	err = p.Each(emit)
	b.discard(buckets...)
	if err != nil {
		return err
	}
	for _, s := range splits {
		if s.unlabelled > 0 {
			b.note("split %s holds %d nodes without label %s", s.name, s.unlabelled, l.Name)
		}
	}
	if found.different == 1 && missing > 0 {
		b.note("label %s has one class, and %d nodes have none: a negative label is missing, so number classes from 0 where -1 is one", l.Name, missing)
	}
	b.report.Labels = append(b.report.Labels, LabelReport{Name: l.Name, NodeType: l.NodeType, Classes: c.n, Multi: l.Multi, Numbers: l.Numbers, Missing: missing, ClassNames: c.names})
	return w.Close(c.n)
}

// labelChunk is the number of labels written at a time.
const labelChunk = 1 << 16

// isFirstLabel reports whether label i is the first of its node type, which splits go by.
func (b *builder) isFirstLabel(i int) bool {
	of := b.schema.Labels[i].NodeType
	return !slices.ContainsFunc(b.schema.Labels[:i], func(l ingest.Label) bool { return l.NodeType == of })
}
