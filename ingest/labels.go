package ingest

import (
	"context"
	"fmt"
	"slices"

	"github.com/gnnstore/gnnstore/store"
)

// maxInferredClasses bounds the classes of a label that no source declares the number of. A model has a row of weights and
// a score a class, so one stray id among the labels would make it of any size; the largest node benchmarks have hundreds.
const maxInferredClasses = 1 << 20

// labelled is what splits need to know of a node type's first label.
type labelled struct {
	label   Label
	has     []bool  // by row
	class   []int32 // by row; nil when multi
	classes int
}

// writeLabels writes every label, and keeps the first of each node type for the splits.
func (b *builder) writeLabels(ctx context.Context) error {
	b.labelled = map[string]*labelled{}
	for i, l := range b.schema.Labels {
		b.meter.begin("write labels", int64(b.typeOf(l.NodeType).count), "rows")
		read := b.readClasses
		if l.Multi {
			read = b.readBits
		}
		known, err := read(ctx, i, l)
		if err != nil {
			return err
		}
		b.meter.end()
		missing := int64(0)
		for _, has := range known.has {
			if !has {
				missing++
			}
		}
		b.report.Labels = append(b.report.Labels, LabelReport{
			Name: l.Name, NodeType: l.NodeType, Classes: known.classes, Multi: l.Multi, Missing: missing,
		})
		if b.labelled[l.NodeType] == nil {
			b.labelled[l.NodeType] = known
		}
	}
	return nil
}

// eachLabel streams label i: visit gets the values of one row after another, width of them, each at least -1.
func (b *builder) eachLabel(ctx context.Context, i int, width int, visit func(p Place, row int, values []int32) error) error {
	l := b.schema.Labels[i]
	n := b.typeOf(l.NodeType)
	var from origin
	err := b.src.Labels(ctx, i, func(c LabelChunk) error {
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
			if err := visit(c.Place, row, c.Values[k*width:(k+1)*width]); err != nil {
				return err
			}
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

// readClasses reads and writes a label of one class a node.
func (b *builder) readClasses(ctx context.Context, i int, l Label) (*labelled, error) {
	n := b.typeOf(l.NodeType)
	known := &labelled{label: l, has: make([]bool, n.count), class: make([]int32, n.count), classes: l.Classes}
	stored := make([]int32, n.count)
	err := b.eachLabel(ctx, i, 1, func(p Place, row int, values []int32) error {
		class := values[0]
		if class < -1 {
			return fmt.Errorf("%s: row %d (counting from 0): class %d; classes count from 0, and -1 is missing", p.File, row, class)
		}
		if l.Classes > 0 && int(class) >= l.Classes {
			return fmt.Errorf("%s: row %d (counting from 0): class %d, and label %s has %d classes, which count from 0", p.File, row, class, l.Name, l.Classes)
		}
		if l.Classes == 0 && class >= maxInferredClasses {
			return fmt.Errorf("%s: row %d (counting from 0): class %d, and %d classes are the most; the labels look like ids, not classes",
				p.File, row, class, maxInferredClasses)
		}
		if l.Classes == 0 {
			known.classes = max(known.classes, int(class)+1)
		}
		known.has[row], known.class[row] = class >= 0, class
		stored[n.storedID(uint32(row))] = class
		return nil
	})
	if err != nil {
		return nil, err
	}
	if l.Classes == 0 {
		known.classes = max(known.classes, len(l.ClassNames))
	}
	return known, b.w.AddLabels(l.Name, l.NodeType, stored, known.classes, b.classNames(l, known.classes))
}

// readBits reads and writes a label of any number of classes a node.
func (b *builder) readBits(ctx context.Context, i int, l Label) (*labelled, error) {
	n := b.typeOf(l.NodeType)
	known := &labelled{label: l, has: make([]bool, n.count), classes: l.Classes}
	stored := make([]uint8, n.count*l.Classes)
	err := b.eachLabel(ctx, i, l.Classes, func(p Place, row int, values []int32) error {
		bits := stored[int(n.storedID(uint32(row)))*l.Classes:]
		for c, x := range values {
			switch x {
			case 0, 1:
				bits[c] = uint8(x)
				known.has[row] = true
			case -1:
				bits[c] = store.MissingBit
			default:
				return fmt.Errorf("%s: row %d, class %d (counting from 0) is %d; a node has a class (1), has it not (0), or it is missing (-1)", p.File, row, c, x)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return known, b.w.AddMultiLabels(l.Name, l.NodeType, stored, l.Classes, b.classNames(l, l.Classes))
}

// classNames are the names if there is one for each class.
func (b *builder) classNames(l Label, classes int) []string {
	if len(l.ClassNames) > 0 && len(l.ClassNames) != classes {
		b.drop("the class names of label %s: %d names for %d classes", l.Name, len(l.ClassNames), classes)
		return nil
	}
	return slices.Clone(l.ClassNames)
}
