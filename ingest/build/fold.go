package build

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/internal/extsort"
	"github.com/gnnstore/gnnstore/store"
)

// Edges that become one may have values that differ. A rule of Duplicates then makes one value.
// Both directions of an undirected edge must get the same. One direction sees the given edges u→v
// and the turned edges v→u, the other sees the same two groups the other way round. So each group
// is added up in the order of the source, and then the two sums: adding two floats gives the same
// in either order, and adding three does not.

// rule returns what happens to values of equal edges that are merged.
func (p *plan) rule() Duplicates {
	if p.Duplicates == DuplicatesKeep {
		return DuplicatesMerge
	}
	return p.Duplicates
}

// merges reports whether equal edges of one direction become one.
func (p *plan) merges() bool { return p.Duplicates != DuplicatesKeep }

// checkDuplicates refuses a rule that does not suit the values of edges. It notes that a rule
// applies to all columns.
func (b *builder) checkDuplicates() error {
	if b.Duplicates != DuplicatesSum && b.Duplicates != DuplicatesMax && b.Duplicates != DuplicatesMean {
		return nil
	}
	columns := 0
	for _, r := range b.schema.Relations {
		if b.hasEdgeTable(r.Key()) {
			return fmt.Errorf("{duplicates} %s: edges of relation %s have rows of features, which are not joined; choose first, which keeps the row of the first edge, or keep",
				b.Duplicates, r.Key())
		}
		for _, c := range r.Columns {
			if columns++; b.Duplicates == DuplicatesMean && c.Elem != store.F32 {
				return fmt.Errorf("{duplicates} mean: column %s of relation %s has integers (%v), whose mean may be none; keep it as f32, or choose sum, max or first",
					c.Name, r.Key(), c.Elem)
			}
		}
	}
	if columns == 0 {
		return fmt.Errorf("{duplicates} %s: edges have no values in this dataset, so there is none to join; choose merge, or keep a column: {weight}, {edge_columns}", b.Duplicates)
	}
	if columns > 1 {
		b.note("the rule {duplicates} %s is for each column of edges that become one: times as well as weights", b.Duplicates)
	}
	return nil
}

// unequal is the error of two edges that become one and differ, by their numbers as read.
type unequal struct {
	relation      string // a Key
	first, second uint64
	column        string // in which they differ; empty: each has its own row of features
	values        [2]string
	why           string // the rule has no value that fits; empty without a rule
}

func (u *unequal) Error() string { return "edges that become one have different values" }

// joiner joins the values of equal edges, one key after the other.
type joiner struct {
	form   *edgeForm
	counts [2]int64     // of the edges joined so far, by side
	sums   [2][]float64 // of F32 columns, by side
	totals [2][]int64   // of other columns, by side
}

// edgeNumber returns the number of an edge as read.
func edgeNumber(record []byte) uint64 { return binary.LittleEndian.Uint64(record[8:]) }

// join adds record to the edge in held, which has the same ends. fresh: held is a single edge so
// far, of side heldSide. A side is 0 for given edges and 1 for turned ones.
func (j *joiner) join(held, record []byte, fresh bool, heldSide, side int) error {
	switch j.form.rule {
	case DuplicatesFirst:
		if edgeNumber(record) < edgeNumber(held) {
			copy(held, record)
		}
		return nil
	case DuplicatesMerge:
		return j.same(held, record, heldSide == 0 && side == 0)
	}
	if fresh {
		j.reset()
		if err := j.add(held, held, heldSide); err != nil {
			return err
		}
	}
	if err := j.add(held, record, side); err != nil {
		return err
	}
	if n := edgeNumber(record); n < edgeNumber(held) {
		binary.LittleEndian.PutUint64(held[8:], n)
	}
	return j.put(held, record)
}

// same refuses values that differ. given: both are edges of the source in this direction, so the
// features of one would be lost.
func (j *joiner) same(held, record []byte, given bool) error {
	at := 16
	for _, c := range j.form.Columns {
		size := c.Elem.Size()
		if x, y := getBits(held[at:], size), getBits(record[at:], size); x != y && !(c.Elem == store.F32 && float(x) == float(y)) {
			return j.unequal(held, record, c.Name, [2]string{valueText(c.Elem, x), valueText(c.Elem, y)}, "")
		}
		at += size
	}
	if given && j.form.tabled && edgeNumber(held) != edgeNumber(record) {
		return j.unequal(held, record, "", [2]string{}, "")
	}
	return nil
}

func (j *joiner) unequal(held, record []byte, column string, values [2]string, why string) error {
	u := &unequal{j.form.Key(), edgeNumber(held), edgeNumber(record), column, values, why}
	if u.first > u.second {
		u.first, u.second, u.values[0], u.values[1] = u.second, u.first, u.values[1], u.values[0]
	}
	return u
}

func float(bits uint64) float32 { return math.Float32frombits(uint32(bits)) }

// integer returns the value of an integer column.
func integer(e store.Elem, bits uint64) int64 {
	if e == store.I32 {
		return int64(int32(bits))
	}
	return int64(bits)
}

// valueText prints a value for a message.
func valueText(e store.Elem, bits uint64) string {
	if e == store.F32 {
		return fmt.Sprint(float(bits))
	}
	return fmt.Sprint(integer(e, bits))
}

func (j *joiner) reset() {
	for side := range j.sums {
		if j.sums[side] == nil {
			j.sums[side], j.totals[side] = make([]float64, len(j.form.Columns)), make([]int64, len(j.form.Columns))
		}
		clear(j.sums[side])
		clear(j.totals[side])
	}
	j.counts = [2]int64{}
}

// add adds the values of a record to the sums of its side.
func (j *joiner) add(held, record []byte, side int) error {
	at := 16
	first := j.counts[0]+j.counts[1] == 0
	j.counts[side]++
	for i, c := range j.form.Columns {
		size := c.Elem.Size()
		bits := getBits(record[at:], size)
		at += size
		if c.Elem == store.F32 {
			x := float64(float(bits))
			if j.form.rule != DuplicatesMax {
				j.sums[side][i] += x
			} else if first || x > j.sums[0][i] { // the sides share one maximum
				j.sums[0][i] = x
			}
			continue
		}
		n := integer(c.Elem, bits)
		if j.form.rule == DuplicatesMax {
			if first || n > j.totals[0][i] {
				j.totals[0][i] = n
			}
			continue
		}
		sum, ok := addInts(j.totals[side][i], n)
		if !ok || c.Elem == store.U64 && n < 0 {
			return j.beyond(held, record, c)
		}
		j.totals[side][i] = sum
	}
	return nil
}

func addInts(a, b int64) (int64, bool) {
	sum := a + b
	return sum, (sum > a) == (b > 0)
}

func (j *joiner) beyond(held, record []byte, c ingest.EdgeColumn) error {
	return j.unequal(held, record, c.Name, [2]string{}, fmt.Sprintf("the sum of %s is beyond %v", c.Name, c.Elem))
}

// put writes the joined values into held.
func (j *joiner) put(held, record []byte) error {
	at := 16
	for i, c := range j.form.Columns {
		size := c.Elem.Size()
		dst := held[at : at+size]
		at += size
		if c.Elem == store.F32 {
			x := j.sums[0][i]
			switch j.form.rule {
			case DuplicatesSum:
				x += j.sums[1][i]
			case DuplicatesMean:
				x = (x + j.sums[1][i]) / float64(j.counts[0]+j.counts[1])
			}
			if y := float32(x); math.IsInf(float64(y), 0) && !math.IsInf(x, 0) {
				return j.beyond(held, record, c)
			} else {
				putBits(dst, size, uint64(math.Float32bits(y)))
			}
			continue
		}
		n, ok := j.totals[0][i], true
		if j.form.rule == DuplicatesSum {
			n, ok = addInts(n, j.totals[1][i])
		}
		if !ok || integer(c.Elem, uint64(n)&(1<<(8*size)-1)) != n && size < 8 {
			return j.beyond(held, record, c)
		}
		putBits(dst, size, uint64(n))
	}
	return nil
}

// fold is combine for records with values: it joins equal edges by the rule. It holds back the last
// edge, since the next run may begin with an equal one. The next call of fold returns that edge, or
// finish does. The last list in the result is the list of that edge.
func (c *combiner) fold(runs []extsort.Run) (*merged, error) {
	g := &runs[0]
	var r extsort.Run
	if len(runs) > 1 {
		r = runs[1]
	}
	width := g.Width
	c.items, c.records, c.lengths = c.items[:0], c.records[:0], c.lengths[:0]
	base := g.List
	if c.any { // the held edge comes first
		base = uint32(c.last >> 32)
		c.items, c.records = append(c.items, uint32(c.last)), append(c.records, c.held...)
	}
	lengths := func(list uint32) {
		for uint32(len(c.lengths)) <= list-base {
			c.lengths = append(c.lengths, 0)
		}
	}
	lengths(base)
	if c.any {
		c.lengths[0] = 1
	}
	i, k := 0, 0
	for l, n := range g.Lengths {
		list := g.List + uint32(l)
		iEnd, kEnd := i+int(n), k
		if len(runs) > 1 {
			kEnd = k + int(r.Lengths[l])
		}
		if i == iEnd && k == kEnd {
			continue
		}
		lengths(list)
		for i < iEnd || k < kEnd {
			side, record := 0, []byte(nil)
			if k == kEnd || i < iEnd && g.Items[i] <= r.Items[k] {
				record = g.Record(i)
				i++
			} else {
				side, record = 1, r.Record(k)
				k++
			}
			key := binary.LittleEndian.Uint64(record)
			if c.any && key == c.last {
				if side == 0 {
					c.duplicates++
				}
				tail := c.records[len(c.records)-width:]
				if err := c.join.join(tail, record, c.single, c.side, side); err != nil {
					return nil, err
				}
				c.single = false
				continue
			}
			if side == 1 {
				c.reversed++
			}
			c.any, c.last, c.single, c.side = true, key, true, side
			c.items, c.records = append(c.items, uint32(key)), append(c.records, record...)
			c.lengths[list-base]++
		}
	}
	c.end = g.List + uint32(len(g.Lengths))
	if c.any { // hold it back
		last := len(c.items) - 1
		c.held = append(c.held[:0], c.records[last*width:]...)
		c.items, c.records = c.items[:last], c.records[:last*width]
		c.lengths = c.lengths[:uint32(c.last>>32)-base+1]
		c.lengths[len(c.lengths)-1]--
	} else {
		lengths(c.end - 1)
	}
	return c.folded(base), nil
}

// finish returns the edge that fold holds back, and the empty lists after it. It returns nil if
// fold holds no edge.
func (c *combiner) finish() *merged {
	if !c.folds || !c.any {
		return nil
	}
	base := uint32(c.last >> 32)
	c.items, c.records = append(c.items[:0], uint32(c.last)), append(c.records[:0], c.held...)
	c.lengths = append(c.lengths[:0], make([]uint32, c.end-base)...)
	c.lengths[0], c.any = 1, false
	return c.folded(base)
}

func (c *combiner) folded(base uint32) *merged {
	c.kept += int64(len(c.items))
	c.m = merged{list: base, lengths: c.lengths, items: c.items, records: c.records}
	return &c.m
}

// explain turns an unequal error into a message for the user, and returns other errors as they are.
// It reads the relation once more to name the ends of the two edges.
func (b *builder) explain(ctx context.Context, err error) error {
	var u *unequal
	if !errors.As(err, &u) {
		return err
	}
	i := b.schema.Relation(u.relation)
	r := b.schema.Relations[i]
	first, err := b.edgeAt(ctx, i, u.first)
	if err != nil {
		return err
	}
	second, err := b.edgeAt(ctx, i, u.second)
	if err != nil {
		return err
	}
	if file, place, ok := strings.Cut(first, ": "); ok && strings.HasPrefix(second, file+": ") {
		first, second = file+": "+place, strings.TrimPrefix(second, file+": ")
	}
	two := fmt.Sprintf("%s, and %s, become one", first, second)
	switch {
	case u.why != "":
		return fmt.Errorf("%s, and %s; choose another {duplicates}, or keep the column as f32 or i64", two, u.why)
	case u.column == "":
		return ingest.Ask("%s, and each has its own features: {duplicates} first keeps the features of the first, {duplicates} keep keeps all edges", two)
	}
	more := "first, sum, max or mean"
	if slices.ContainsFunc(r.Columns, func(c ingest.EdgeColumn) bool { return c.Elem != store.F32 }) {
		more = "first, sum or max"
	}
	if b.hasEdgeTable(u.relation) {
		more = "first"
	}
	keep := ", and {duplicates} keep keeps both edges"
	if b.form(i).reverse {
		keep = ""
	}
	return ingest.Ask("%s, and differ in %s, %s and %s: say what it becomes, by {duplicates} %s%s", two, u.column, u.values[0], u.values[1], more, keep)
}

var errFound = errors.New("found")

// edgeAt returns the place of edge number n of relation i as read, and its ends.
func (b *builder) edgeAt(ctx context.Context, i int, n uint64) (place string, err error) {
	f := b.form(i)
	var int8 []byte
	end := func(n *nodes, ids []int64, texts *ingest.Texts, k int) string {
		if n.kind == ingest.RowIDs {
			return fmt.Sprint(ids[k])
		}
		return n.display(n.textOf(ids, texts, k, &int8))
	}
	err = b.src.Edges(ctx, i, func(c ingest.EdgeChunk) error {
		if k := int(int64(n) - c.First); k >= 0 && k < c.Len() {
			place = fmt.Sprintf("%s, %s to %s", c.Edge(k, f.row()), end(f.src, c.Src, &c.SrcTexts, k), end(f.dst, c.Dst, &c.DstTexts, k))
			return errFound
		}
		return ctx.Err()
	})
	switch {
	case errors.Is(err, errFound):
		return place, nil
	case err == nil:
		err = fmt.Errorf("relation %s: edge %d is not there in another reading; did the source change?", f.Key(), n+1)
	}
	return "", err
}
