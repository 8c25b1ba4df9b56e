package hgb

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/lines"
)

const (
	maxClasses = 1 << 20 // as elsewhere, of a label that has one a node
	maxMulti   = 1 << 16 // of a label that has several: a row has a cell for each
)

// labelled are the labels of one node type.
type labelled struct {
	typ     int // index of types
	classes int
	multi   bool
	entries []entry // by row, then class
}

type entry struct {
	row   uint32
	class int32
	at    int64 // twice the line, and one for label.dat.test
}

func (e entry) test() bool { return e.at&1 == 1 }

// file is where an entry stands.
func (e entry) file() string {
	if e.test() {
		return "label.dat.test"
	}
	return "label.dat"
}

// readLabels reads both files and brings the labels in the order of the rows.
func (s *Source) readLabels(ctx context.Context) error {
	byType := map[int]*labelled{}
	for part, name := range []string{"label.dat", "label.dat.test"} {
		if !s.has(name) {
			continue
		}
		err := s.eachIn(ctx, name, func(in *lines.Scanner, cells [][]byte) error {
			return s.readLabel(in, cells, int64(part), byType)
		})
		if err != nil {
			return err
		}
	}
	for t := range s.types {
		l := byType[t]
		if l == nil {
			continue
		}
		if err := s.finishLabels(l); err != nil {
			return err
		}
		s.labels = append(s.labels, l)
	}
	return nil
}

func (s *Source) readLabel(in *lines.Scanner, cells [][]byte, part int64, byType map[int]*labelled) error {
	if len(cells) != 4 {
		return in.Errorf("found %d columns; a label has the node's id, its name, its type and classes, between tabs",
			len(cells))
	}
	id, ok := integer(cells[0])
	var t int
	var row int64
	if ok {
		t, row, ok = s.at(id)
	}
	if !ok {
		return in.ErrorIn(1, "%q is not one of the %d nodes of node.dat, which count from 0", lines.Clip(cells[0]), s.nodes)
	}
	if number, ok := small(cells[2]); !ok || number != s.types[t].number {
		return in.ErrorIn(3, "node %d is said to be of type %q, and node.dat has %d; fetch both again", id,
			lines.Clip(cells[2]), s.types[t].number)
	}
	l := byType[t]
	if l == nil {
		l = &labelled{typ: t}
		byType[t] = l
	}
	n := 0
	for cell := range bytes.SplitSeq(cells[3], []byte{','}) {
		class, ok := small(cell)
		if !ok || class >= maxClasses {
			return in.ErrorIn(4, "%q is not the number of a class", lines.Clip(cell))
		}
		l.entries = append(l.entries, entry{uint32(row), int32(class), in.Line()<<1 | part})
		l.classes = max(l.classes, class+1)
		n++
	}
	l.multi = l.multi || n > 1
	return nil
}

// finishLabels sorts, and refuses a node with two lines.
func (s *Source) finishLabels(l *labelled) error {
	t := s.types[l.typ]
	slices.SortFunc(l.entries, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.row, b.row), cmp.Compare(a.at&1, b.at&1), cmp.Compare(a.at, b.at),
			cmp.Compare(a.class, b.class))
	})
	for k := 1; k < len(l.entries); k++ {
		if a, b := l.entries[k-1], l.entries[k]; a.row == b.row && a.at != b.at {
			return fmt.Errorf("%s: line %d: a node that has its label already, in line %d of %s; a node is labelled once",
				s.label(b.file()), b.at>>1, a.at>>1, a.file())
		}
	}
	for c := range s.info.Labels.Types[strconv.Itoa(t.number)] { // classes that no labelled node has
		if class, ok := small([]byte(c)); ok && class < maxClasses {
			l.classes = max(l.classes, class+1)
		}
	}
	if l.multi && l.classes > maxMulti {
		return fmt.Errorf("%s: %d classes, and where a node may have several there are at most %d",
			s.label("label.dat"), l.classes, maxMulti)
	}
	return nil
}

// Labels streams the classes of one node type: -1 where a node is in neither file.
func (s *Source) Labels(ctx context.Context, label int, emit func(ingest.LabelChunk) error) error {
	l := s.labels[label]
	width := 1
	if l.multi {
		width = l.classes
	}
	count, rows := s.types[l.typ].count, int64(max(ingest.ChunkBytes/4/width, 1))
	values := make([]int32, min(rows, count)*int64(width))
	place := ingest.Place{File: s.label("label.dat")}
	rest := l.entries
	for ; place.First < count; place.First += rows {
		if err := ctx.Err(); err != nil {
			return err
		}
		n := min(rows, count-place.First)
		chunk := values[:n*int64(width)]
		for i := range chunk {
			chunk[i] = -1
		}
		for len(rest) > 0 && int64(rest[0].row) < place.First+n {
			cells := chunk[(int64(rest[0].row)-place.First)*int64(width):][:width]
			if !l.multi {
				cells[0] = rest[0].class
			} else {
				if cells[0] < 0 {
					clear(cells)
				}
				cells[rest[0].class] = 1
			}
			rest = rest[1:]
		}
		if err := emit(ingest.LabelChunk{Place: place, Values: chunk}); err != nil {
			return err
		}
	}
	return nil
}

// Split gives a part of the split: see the package comment.
func (s *Source) Split(ctx context.Context, split int, part ingest.Part, emit func(ingest.IDChunk) error) error {
	l := s.labels[split]
	var rows []int64
	last := int64(-1)
	for _, e := range l.entries {
		if e.test() == (part == ingest.Test) && int64(e.row) != last {
			last = int64(e.row)
			rows = append(rows, last)
		}
	}
	file := "label.dat.test"
	if part != ingest.Test {
		file = "label.dat"
		rng := rand.New(rand.NewPCG(s.o.Seed, uint64(s.types[l.typ].number)))
		rng.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
		valid := int(max(s.o.Valid, 0) * float64(len(rows)))
		if part == ingest.Valid {
			rows = rows[:valid]
		} else {
			rows = rows[valid:]
		}
		slices.Sort(rows)
	}
	return ingest.Parts(ctx, s.label(file), rows, func(place ingest.Place, ids []int64) error {
		return emit(ingest.IDChunk{Place: place, IDs: ids})
	})
}
