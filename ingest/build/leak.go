package build

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/zeebo/xxh3"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/store"
)

// A feature that tells the label makes a network look perfect, and useless where the label is not
// known yet. Build refuses a column of the source whose values correspond one to one to the classes
// of all labelled nodes, or whose numbers equal the label but for scale and offset. The first few
// rows clear nearly every column. Only the columns that are left are read through.

const (
	leakRows    = 1 << 16 // the rows read first; the others only if a column is left
	leakEvents  = 1 << 20 // likewise, of a stream
	leakClasses = 1 << 16 // the most different labels that are remembered
	leakValues  = 1 << 21 // the most values that are remembered: classes times columns
	leakLeast   = 5       // nodes of a class
	leakChance  = 1e-12   // of a match by accident
)

// learnt is a label of the nodes, or events, that a table has rows of.
type learnt struct {
	name    string // for messages
	of      string // "nodes" or "events"
	numbers bool
	width   int   // labels a row; a label of several classes has one for each class
	rows    int64 // an upper bound, or -1 if not known
	prefix  int
	// each streams the labels from row 0 on. -1 means missing; numbers are the bits of a float32.
	each func(ctx context.Context, visit func(first int64, values []int32) error) error
}

// findLeaks checks each label against the tables of the same nodes or events.
func (b *builder) findLeaks(ctx context.Context) error {
	if at := b.extras.RowsAt; at != nil && at(0, nil, nil) {
		return nil // rows are made by a formula
	}
	known, said := map[string]bool{}, b.described()
	for i, t := range b.schema.Tables {
		if b.replaced(t) {
			continue
		}
		var described []store.Encoding
		if i < len(said.Tables) {
			described = said.Tables[i]
		}
		columns := leakColumns(t, described)
		for _, c := range columns {
			known[c.name] = true
		}
		for _, l := range b.learntBeside(t) {
			if err := b.findLeak(ctx, i, columns, l); err != nil {
				return err
			}
		}
	}
	for _, name := range b.AllowLeak {
		if !known[name] {
			return fmt.Errorf("{allow_leak} %s: there is no column of that name among the features; a column without a name is TABLE:NUMBER, counting from 0", name)
		}
	}
	return nil
}

// learntBeside returns the labels of the nodes or events that t has rows of.
func (b *builder) learntBeside(t ingest.Table) (all []learnt) {
	if k := b.streamOf(t.Relation); k >= 0 && b.schema.Relations[k].Stream.Label != "" {
		return []learnt{{
			name: "label", of: "events", width: 1, rows: b.schema.Relations[k].Edges, prefix: leakEvents,
			each: func(ctx context.Context, visit func(int64, []int32) error) error {
				var values []int32
				return b.src.Edges(ctx, k, func(c ingest.EdgeChunk) error {
					if values = values[:0]; len(c.Values) < 2 {
						return nil // said when events are read
					}
					for _, v := range c.Values[1] {
						values = append(values, int32(uint32(v)))
					}
					return visit(c.First, values)
				})
			},
		}}
	}
	for i, l := range b.schema.Labels {
		if t.Relation != "" || l.NodeType != t.NodeType {
			continue
		}
		width := l.Width()
		all = append(all, learnt{
			name: labelName(l), of: "nodes", numbers: l.Numbers, width: width, rows: int64(b.typeOf(l.NodeType).count), prefix: max(leakRows/width, 1<<10),
			each: func(ctx context.Context, visit func(int64, []int32) error) error {
				return b.src.Labels(ctx, i, func(c ingest.LabelChunk) error {
					if len(c.Values)%width != 0 {
						return nil // said when labels are written
					}
					return visit(c.First, c.Values)
				})
			},
		})
	}
	return all
}

// labelName returns the name of a label for messages. Most labels are called "label".
func labelName(l ingest.Label) string {
	if l.Name == "label" {
		return l.Name
	}
	return "label " + l.Name
}

// leakColumn is a column of the source, with the place of its numbers in a row.
type leakColumn struct {
	name      string
	at, width int
	hot       bool // a column for each category, or 1 or -1 in one of some columns
	whole     bool // all numbers of a row together
}

// leakColumns returns the columns of a table. If there are several, the whole row comes last.
func leakColumns(t ingest.Table, described []store.Encoding) (all []leakColumn) {
	at := 0
	if described == nil {
		described = []store.Encoding{unnamed("", t.Dim)}
	}
	for _, c := range described {
		name := c.Name
		switch {
		case c.Kind == store.CategoryColumn:
			hot := c.Encoder != store.CategoryIndex
			all = append(all, leakColumn{name: name, at: at, width: int(c.Width), hot: hot})
		case c.Kind == store.NumberColumn && name != "":
			all = append(all, leakColumn{name: name, at: at, width: 1})
		default:
			if name == "" {
				name = t.Name
			}
			n := int(c.Width)
			if c.Missing == store.MissingIndicator {
				n--
			}
			for k := range n {
				column := leakColumn{name: fmt.Sprintf("%s:%d", name, k), at: at + k, width: 1}
				if c.Name == "" {
					column.name = fmt.Sprintf("%s:%d", name, at+k)
				}
				all = append(all, column)
			}
		}
		at += int(c.Width)
	}
	if len(all) > 1 {
		all = append(all, leakColumn{name: t.Name, width: t.Dim, whole: true})
	}
	return all
}

// missingCode is the code of a missing cell.
const missingCode = math.MaxUint64

// code returns a number for a column's value in a row. Equal values have equal codes.
func (c *leakColumn) code(row []float32, scratch *[]byte) uint64 {
	switch {
	case c.whole:
		*scratch = (*scratch)[:0]
		for _, x := range row {
			*scratch = binary.LittleEndian.AppendUint32(*scratch, bitsOf(x))
		}
		return xxh3.Hash(*scratch)
	case c.hot:
		if i := c.category(row); i >= 0 {
			return uint64(i)
		}
		return missingCode
	}
	if x := row[c.at]; x == x {
		return uint64(bitsOf(x))
	}
	return missingCode
}

// category returns a number for the category of a hot column, or -1 if it is missing.
func (c *leakColumn) category(row []float32) int {
	for i, x := range row[c.at : c.at+c.width] {
		switch x {
		case 1:
			return 2 * i
		case -1:
			return 2*i + 1
		}
	}
	return -1
}

// bitsOf returns the bits of a number; 0 and -0 have the same.
func bitsOf(x float32) uint32 {
	if x == 0 {
		return 0
	}
	return math.Float32bits(x)
}

// errSeen stops reading a section once enough was seen.
var errSeen = errors.New("enough was seen")

// findLeak checks the columns of table i against one label.
func (b *builder) findLeak(ctx context.Context, i int, columns []leakColumn, l learnt) error {
	first, all, err := firstLabels(ctx, l)
	if err != nil {
		return err
	}
	var watches []*watch
	for k := range l.width {
		if k*len(columns) > leakValues {
			break
		}
		watches = append(watches, newWatch(columns, l.numbers, func(row int64) (int32, bool) {
			if row < 0 || row >= int64(len(first)/l.width) {
				return -1, false
			}
			return l.value(first[int(row)*l.width+k])
		}))
	}
	sample := newLeakSample(columns, l, first)
	rows, dim := int64(len(first)/l.width), b.schema.Tables[i].Dim
	file, err := b.eachRow(ctx, i, dim, func(at int64, row []float32) error {
		open := sample.take(at, row)
		for _, w := range watches {
			open = w.take(at, row) || open
		}
		if !open || at+1 >= rows {
			return errSeen
		}
		return nil
	})
	if err != nil {
		return err
	}
	for k, w := range watches {
		if len(w.active) == 0 {
			continue
		}
		if !all {
			if w, err = b.watchAll(ctx, i, dim, w, l, k); err != nil {
				return err
			}
		}
		if err := b.judgeLeaks(w, l, file, sample.said); err != nil {
			return err
		}
	}
	if text := sample.say(); text != "" {
		b.noteOnce("%s: %s", file, text)
	}
	return nil
}

// value returns a label, and false if it is missing.
func (l *learnt) value(v int32) (int32, bool) {
	if l.numbers {
		x := math.Float32frombits(uint32(v))
		return int32(bitsOf(x)), x == x
	}
	return v, v >= 0
}

// firstLabels reads the first labels, and reports whether there are no more.
func firstLabels(ctx context.Context, l learnt) (first []int32, all bool, err error) {
	err = l.each(ctx, func(_ int64, values []int32) error {
		if n := l.prefix*l.width - len(first); len(values) > n {
			first = append(first, values[:n]...)
			return errSeen
		}
		first = append(first, values...)
		return nil
	})
	if errors.Is(err, errSeen) {
		return first, false, nil
	}
	return first, true, err
}

// eachRow streams the rows of a table as they were before missing numbers were filled in, and
// returns their file.
func (b *builder) eachRow(ctx context.Context, table, dim int, visit func(at int64, row []float32) error) (file string, err error) {
	read := b.src.Rows
	if b.extras.UnfilledRows != nil {
		read = b.extras.UnfilledRows
	}
	err = read(ctx, table, func(c ingest.RowChunk) error {
		file = c.File
		for k := range len(c.Values) / dim {
			if c.First < 0 {
				break // a fault of the reader, which is said when rows are written
			}
			if err := visit(c.First+int64(k), c.Values[k*dim:(k+1)*dim]); err != nil {
				return err
			}
		}
		return nil
	})
	if errors.Is(err, errSeen) {
		err = nil
	}
	return file, err
}

// watchAll reads all labels and rows, to check the columns that the first rows did not clear.
func (b *builder) watchAll(ctx context.Context, table, dim int, w *watch, l learnt, k int) (*watch, error) {
	if l.rows < 0 { // of events, whose number nobody declares
		l.rows = 0
		if err := l.each(ctx, func(_ int64, values []int32) error { l.rows += int64(len(values) / l.width); return nil }); err != nil {
			return nil, err
		}
	}
	buf, err := b.hold(max(4*l.rows, 4))
	if err != nil {
		return nil, err
	}
	defer b.release(&buf)
	labels := buf.Uint32s()
	err = l.each(ctx, func(first int64, values []int32) error {
		for r := range len(values) / l.width {
			if at := first + int64(r); at >= 0 && at < l.rows {
				labels[at] = uint32(values[r*l.width+k])
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	columns := make([]leakColumn, len(w.active))
	for n, c := range w.active {
		columns[n] = w.columns[c]
	}
	again := newWatch(columns, l.numbers, func(row int64) (int32, bool) {
		if row >= l.rows {
			return -1, false
		}
		return l.value(int32(labels[row]))
	})
	_, err = b.eachRow(ctx, table, dim, func(at int64, row []float32) error {
		if !again.take(at, row) {
			return errSeen
		}
		return nil
	})
	return again, err
}

// judgeLeaks refuses the columns left in w. It only notes columns that are allowed, and columns
// with too few rows to be sure. It adds all of them to judged.
func (b *builder) judgeLeaks(w *watch, l learnt, file string, judged map[string]bool) error {
	w.settle()
	reported := false
	for _, c := range w.active {
		if reported && w.columns[c].whole {
			continue // a column says it already
		}
		name := w.columns[c].name
		judged[name] = true
		said := fmt.Sprintf("column %s tells the %s: each of its %d values goes with one of %d classes", name, l.name, len(w.counts), len(w.counts))
		if w.columns[c].whole {
			said = fmt.Sprintf("the columns of table %s together tell the %s: there are %d different rows, one for each of %d classes", name, l.name, len(w.counts),
				len(w.counts))
		}
		if w.linear != nil && w.linear[c].n > 0 {
			said = fmt.Sprintf("column %s is the %s, but for scale and offset", name, l.name)
		}
		said += fmt.Sprintf(", at all %d %s that have one", w.labelled, l.of)
		switch {
		case slices.Contains(b.AllowLeak, name):
			b.noteOnce("%s: %s; {allow_leak} %s lets it be", file, said, name)
		case b.Like != "":
			b.noteOnce("%s: %s; it is a feature in %s as well", file, said, b.Like)
		case !w.sure(c):
			b.noteOnce("%s: %s; that may be chance, since they are few", file, said)
		default:
			return fmt.Errorf("%s: %s, so a network would read what it is to learn; leave it out of the features, or say {allow_leak} %s", file, said, name)
		}
		reported = true
	}
	return nil
}

// noteOnce adds a note, unless the report has it already.
func (b *builder) noteOnce(format string, args ...any) {
	if text := b.Text(fmt.Sprintf(format, args...)); !slices.Contains(b.report.Notes, text) {
		b.report.Notes = append(b.report.Notes, text)
	}
}

// watch follows the columns that may tell one label.
type watch struct {
	columns  []leakColumn
	active   []int // the columns not yet cleared, ascending
	label    func(row int64) (int32, bool)
	labelled int64
	classes  map[int32]int
	counts   []int64
	values   [][]uint64 // by column not yet cleared: its value for each class
	linear   []moments  // of numbers; nil where classes are learnt
	matches  []bool     // columns whose values still match the label's one to one
	scratch  []byte
}

func newWatch(columns []leakColumn, numbers bool, label func(row int64) (int32, bool)) *watch {
	w := &watch{columns: columns, label: label, classes: map[int32]int{}, matches: make([]bool, len(columns)), values: make([][]uint64, len(columns))}
	for i := range columns {
		w.active, w.matches[i] = append(w.active, i), true
	}
	if numbers {
		w.linear = make([]moments, len(columns))
	}
	return w
}

// take checks a row, and reports whether any column is left.
func (w *watch) take(at int64, row []float32) bool {
	label, ok := w.label(at)
	if !ok || len(w.active) == 0 {
		return len(w.active) > 0
	}
	w.labelled++
	class, known := w.classes[label]
	if !known {
		class = len(w.counts)
		if class >= leakClasses || len(w.active)*class > leakValues { // too many to remember: numbers may be equal all the same
			clear(w.matches)
			known, class = true, 0
		} else {
			w.classes[label], w.counts = class, append(w.counts, 0)
		}
	}
	w.counts[class]++
	left := w.active[:0]
	for _, c := range w.active {
		column := &w.columns[c]
		if w.matches[c] {
			v := column.code(row, &w.scratch)
			if known {
				w.matches[c] = w.values[c][class] == v
			} else {
				w.matches[c] = !slices.Contains(w.values[c][max(class-8, 0):], v) // those before in settle
				w.values[c] = append(w.values[c], v)
			}
			if !w.matches[c] {
				w.values[c] = nil
			}
		}
		if w.linear != nil && !column.whole && !column.hot {
			w.linear[c].add(float64(row[column.at]), float64(math.Float32frombits(uint32(label))))
		}
		if w.matches[c] || w.linear != nil && w.linear[c].equal() {
			left = append(left, c)
		}
	}
	w.active = left
	return len(w.active) > 0
}

// settle keeps the columns in which no two classes share a value, and those whose numbers equal the
// label but for scale and offset.
func (w *watch) settle() {
	if w.linear != nil && len(w.counts) > 0 && slices.Min(w.counts) < leakLeast { // numbers that hardly repeat are no classes
		clear(w.matches)
	}
	var all []uint64
	w.active = slices.DeleteFunc(w.active, func(c int) bool {
		if w.matches[c] {
			all = append(all[:0], w.values[c]...)
			slices.Sort(all)
			w.matches[c] = len(all) > 1 && len(slices.Compact(all)) == len(w.counts)
		}
		if w.linear != nil && !(w.linear[c].n > 2 && w.linear[c].equal()) {
			w.linear[c] = moments{}
		}
		return !w.matches[c] && (w.linear == nil || w.linear[c].n == 0)
	})
}

// sure reports whether a column that is left cannot be chance: every class has five nodes, and
// shuffled labels would match with a probability below 1e-12. Numbers that equal the label but for
// scale and offset need no class of five.
func (w *watch) sure(c int) bool {
	line := w.linear != nil && w.linear[c].n > 0
	if !line && slices.Min(w.counts) < leakLeast {
		return false
	}
	// Of the n!/Πnₖ! ways to deal the labels, at most k! part the nodes alike. Numbers have two,
	// one for each sign of the scale.
	lgamma := func(n int64) float64 { v, _ := math.Lgamma(float64(n) + 1); return v }
	chance, n := 0.0, int64(0)
	for _, count := range w.counts {
		chance, n = chance+lgamma(count), n+count
	}
	if chance -= lgamma(n); line {
		chance += math.Ln2
	} else {
		chance += lgamma(int64(len(w.counts)))
	}
	return chance < math.Log(leakChance)
}

// moments has the means and variances of pairs of numbers, by Welford's updates.
type moments struct {
	n, x, y, xx, yy, xy float64
	most                float64 // largest |y|
	gap                 bool    // a number is missing where the label is not
}

func (m *moments) add(x, y float64) {
	if x != x {
		m.gap = true
		return
	}
	m.n++
	dx, dy := x-m.x, y-m.y
	m.x, m.y = m.x+dx/m.n, m.y+dy/m.n
	m.xx, m.yy, m.xy = m.xx+dx*(x-m.x), m.yy+dy*(y-m.y), m.xy+dx*(y-m.y)
	m.most = math.Max(m.most, math.Abs(y))
}

// equal reports whether y equals a·x+b up to the rounding of float32. With few numbers it always
// does.
func (m *moments) equal() bool {
	const ulp = 1.0 / (1 << 22) // of float32, with room for a rounding of each
	switch rest := m.yy - m.xy*m.xy/m.xx; {
	case m.gap:
		return false
	case m.n < 3:
		return true
	case m.xx == 0:
		return m.yy == 0
	default:
		return rest <= math.Max(1e-9*m.yy, m.n*(ulp*m.most)*(ulp*m.most))
	}
}

const (
	sampleRows    = 1 << 10 // labelled ones
	sampleRead    = 1 << 14 // among so many
	sampleColumns = 1 << 12
	sampleLeast   = 100
)

// leakSample holds some labelled rows. They show which columns nearly tell the label, which is
// worth a note.
type leakSample struct {
	columns []leakColumn
	l       learnt
	labels  []int32
	first   []int32
	values  [][]float32 // by column
	done    bool
	said    map[string]bool // columns that judgeLeaks reports, after all rows
}

func newLeakSample(columns []leakColumn, l learnt, first []int32) *leakSample {
	s := &leakSample{l: l, first: first, done: l.width > 1, said: map[string]bool{}}
	for _, c := range columns[:min(len(columns), sampleColumns)] {
		if !c.whole {
			s.columns = append(s.columns, c)
		}
	}
	s.values = make([][]float32, len(s.columns))
	return s
}

// take adds a row, and reports whether it wants more.
func (s *leakSample) take(at int64, row []float32) bool {
	if s.done = s.done || len(s.labels) >= sampleRows || at >= int64(min(sampleRead, len(s.first))); s.done {
		return false
	}
	if label, ok := s.l.value(s.first[at]); ok {
		s.labels = append(s.labels, label)
		for i := range s.columns {
			c := &s.columns[i]
			x := row[c.at]
			if c.hot {
				x = float32(c.category(row))
			}
			if x != x {
				x = -math.MaxFloat32 // missing is a value of its own
			}
			s.values[i] = append(s.values[i], x)
		}
	}
	return true
}

// say returns the names of the columns that nearly tell the label, or "" if there are none.
func (s *leakSample) say() string {
	n := len(s.labels)
	if n < sampleLeast || s.l.width > 1 {
		return ""
	}
	var found []string
	share := 0.0
	for i, c := range s.columns {
		if s.said[c.name] {
			continue
		}
		if predicted := s.predicts(s.values[i]); predicted > 0 {
			found, share = append(found, c.name), max(share, predicted)
		}
	}
	if len(found) == 0 {
		return ""
	}
	const most = 5
	names := strings.Join(found[:min(len(found), most)], ", ")
	if len(found) > most {
		names += ", …"
	}
	what := fmt.Sprintf("tells the %s of %.1f %% of the first %d %s that have one", s.l.name, 100*share, n, s.l.of)
	if s.l.numbers {
		what = fmt.Sprintf("goes with the %s nearly as a line does, at the first %d %s that have one", s.l.name, n, s.l.of)
	}
	if len(found) > 1 {
		what = "each of them nearly " + what
	}
	return fmt.Sprintf("column %s %s: is it known before the label is? If not, leave it out of the features", names, what)
}

// predicts returns the share of labels that a column tells: it predicts the most frequent class of
// each thirty-second of its sorted values. It returns 0 unless that is nearly all of what the
// largest class alone gets wrong.
func (s *leakSample) predicts(values []float32) float64 {
	if s.l.numbers {
		var m moments
		for k, x := range values {
			m.add(float64(x), float64(math.Float32frombits(uint32(s.labels[k]))))
		}
		if m.xx > 0 && m.yy > 0 && !m.equal() && m.xy*m.xy > 0.998*m.xx*m.yy {
			return 1
		}
		return 0
	}
	for _, n := range []int{sampleLeast, len(values)} { // the first few tell of nearly all columns
		right, largest := rightBy(values[:n], s.labels[:n])
		loose := 1.0
		if n < len(values) {
			loose = 4
		}
		if wrong, open := float64(n-right), float64(n-largest); open < 0.02*float64(n) || wrong > loose*0.05*open {
			return 0
		}
	}
	right, _ := rightBy(values, s.labels)
	if right == len(values) && len(s.labels) < 2 {
		return 0
	}
	return float64(right) / float64(len(values))
}

// rightBy sorts the values into thirty-two parts, with equal values in one part. It returns how
// many labels are the most frequent one of their part, and how many are of the largest class.
func rightBy(values []float32, labels []int32) (right, largest int) {
	order := make([]int, len(values))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		switch {
		case values[a] < values[b]:
			return -1
		case values[a] > values[b]:
			return 1
		}
		return a - b
	})
	counts, all := map[int32]int{}, map[int32]int{}
	best := 0
	for i, k := range order {
		counts[labels[k]]++
		best = max(best, counts[labels[k]])
		all[labels[k]]++
		largest = max(largest, all[labels[k]])
		if i+1 == len(order) || len(counts) > 0 && values[order[i+1]] != values[k] && sum(counts)*32 >= len(order) {
			right += best
			clear(counts)
			best = 0
		}
	}
	return right, largest
}

func sum(counts map[int32]int) (n int) {
	for _, c := range counts {
		n += c
	}
	return n
}
