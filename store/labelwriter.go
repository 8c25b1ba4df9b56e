package store

import (
	"fmt"
	"math"
)

// LabelWriter writes a prediction target node by node, as stored.
type LabelWriter struct {
	w      *Writer
	label  Label
	s      *sectionWriter
	rows   int64 // number of nodes
	done   int64 // values appended
	most   int32 // the largest class, -1 before there is one
	mostAt int64 // the first node that has it
}

// NewLabels begins a target for rows nodes. classes is the number of classes, or 0 if only Close
// will know it; a multi-label target (multi) needs it now.
func (w *Writer) NewLabels(
	name, nodeType string, rows int64, classes int, multi bool, classNames []string,
) (*LabelWriter, error) {
	if err := checkNames("label", nodeType, name); err != nil {
		return nil, err
	}
	l := &LabelWriter{w: w, rows: rows, most: -1, label: Label{
		Name: name, NodeType: nodeType, Classes: int64(classes), Multi: multi, ClassNames: toValidAll(classNames),
	}}
	return l, l.begin()
}

// NewNumbers begins a target that is a number for each of rows nodes.
func (w *Writer) NewNumbers(name, nodeType string, rows int64) (*LabelWriter, error) {
	if err := checkNames("label", nodeType, name); err != nil {
		return nil, err
	}
	l := &LabelWriter{w: w, rows: rows, most: -1, label: Label{Name: name, NodeType: nodeType, Numbers: true}}
	return l, l.begin()
}

func (l *LabelWriter) begin() (err error) {
	cols := int64(1)
	if l.label.Multi {
		cols = l.label.Classes
	}
	e := l.label.elem()
	l.s, err = l.w.section(l.label.path(), e, cols, cols*int64(e.Size()), 0)
	return err
}

// AppendNumbers writes the numbers of the next nodes, NaN where missing.
func (l *LabelWriter) AppendNumbers(numbers []float32) error {
	if !l.label.Numbers {
		panic("store: numbers for a target of classes")
	}
	for i, x := range numbers {
		if math.IsInf(float64(x), 0) {
			return fmt.Errorf("label %s: node %d has the number %v; numbers are finite, and NaN is missing", l.label.Name, l.done+int64(i), x)
		}
	}
	l.done += int64(len(numbers))
	return l.s.append(bytesOf(numbers))
}

// AppendClasses writes the classes of the next nodes, -1 where missing.
func (l *LabelWriter) AppendClasses(class []int32) error {
	if l.label.Multi || l.label.Numbers {
		panic("store: classes for another kind of target")
	}
	for i, c := range class {
		if c < -1 {
			return fmt.Errorf("label %s: node %d has class %d; -1 is missing", l.label.Name, l.done+int64(i), c)
		}
		if c > l.most {
			l.most, l.mostAt = c, l.done+int64(i)
		}
	}
	l.done += int64(len(class))
	return l.s.append(bytesOf(class))
}

// AppendBits writes the cells of the next nodes, one for each class: 0, 1 or [MissingBit].
func (l *LabelWriter) AppendBits(bits []uint8) error {
	if !l.label.Multi {
		panic("store: bits for a target of one class a node")
	}
	for i, b := range bits {
		if b > 1 && b != MissingBit {
			at, classes := l.done+int64(i), max(1, l.label.Classes)
			return fmt.Errorf("label %s: node %d, class %d: %d is neither 0, 1 nor missing",
				l.label.Name, at/classes, at%classes, b)
		}
	}
	l.done += int64(len(bits))
	return l.s.append(bits)
}

// Close ends the target. classes is the number of classes; 0 keeps the number given to NewLabels.
func (l *LabelWriter) Close(classes int) error {
	if classes == 0 {
		classes = int(l.label.Classes)
	} else if l.label.Classes != 0 && classes != int(l.label.Classes) {
		panic("store: a label was begun with another number of classes")
	}
	l.label.Classes = int64(classes)
	want := l.rows
	if l.label.Multi {
		want *= l.label.Classes
	}
	err := error(nil)
	if int64(l.most) >= l.label.Classes {
		err = fmt.Errorf("label %s: node %d has class %d of %d", l.label.Name, l.mostAt, l.most, classes)
	} else if l.done != want {
		err = fmt.Errorf("label %s: %d values written for %d nodes; please report it", l.label.Name, l.done, l.rows)
	}
	if err != nil {
		_ = l.s.discard()
		return err
	}
	if l.label.Values, err = l.s.close(l.rows); err == nil {
		l.w.manifest.Labels = append(l.w.manifest.Labels, l.label)
	}
	return err
}

// AddLabels writes a single-label target: the class of each stored node, -1 where missing.
func (w *Writer) AddLabels(name, nodeType string, class []int32, classes int, classNames []string) error {
	l, err := w.NewLabels(name, nodeType, int64(len(class)), classes, false, classNames)
	if err != nil {
		return err
	}
	if err := l.AppendClasses(class); err != nil {
		_ = l.s.discard()
		return err
	}
	return l.Close(classes)
}

// AddMultiLabels writes a multi-label target: for each node one cell per class, 0, 1 or MissingBit.
func (w *Writer) AddMultiLabels(name, nodeType string, bits []uint8, classes int, classNames []string) error {
	l, err := w.NewLabels(name, nodeType, int64(len(bits)/max(1, classes)), classes, true, classNames)
	if err != nil {
		return err
	}
	if err := l.AppendBits(bits); err != nil {
		_ = l.s.discard()
		return err
	}
	return l.Close(classes)
}
