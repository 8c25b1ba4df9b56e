package main

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/gnnstore/gnnstore/ingest/lines"
	"github.com/gnnstore/gnnstore/ingest/parquet"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/graph"
)

// pairFile reads pairs of nodes by their original ids from a table of csv or Parquet: sources,
// destinations, numbers given with each pair, and a relation that the run learns. The relation may
// be left out if there is just one. Or each pair has a time, in place of a relation.
type pairFile struct {
	path      string
	flag      string   // the flag that names the file
	columns   []string // of a table with a header, which may have others; without one they are the first. The numbers' columns come after them
	types     [2]string
	checkTime func(t float64) error // nil: pairs have no times
	relations []*store.Relation
	learnt    string       // of the relations: links or edges
	ids       [2]store.IDs // of sources and destinations
	given     []string     // the columns of the numbers

	pairs   graph.Pairs
	times   []float64 // of all pairs
	numbers []string  // of a pair
	use     func(graph.Pairs) error
	count   int64 // of pairs, once each has gone through them
}

// newPairFile returns a file of pairs of the relations that a network has learnt.
func newPairFile(path string, n *graph.Network) *pairFile {
	_, src, dst := n.Relation()
	d := n.Data()
	p := &pairFile{path: path, flag: "pairs", columns: pairColumns, relations: learntRelations(n), learnt: "links", ids: [2]store.IDs{d.IDs(src), d.IDs(dst)}}
	p.types = [2]string{p.relations[0].Src, p.relations[0].Dst}
	if n.Edges() {
		p.learnt = "edges"
		for _, c := range d.Given() {
			p.given = append(p.given, c.Column.Name)
		}
	}
	return p
}

// learntRelations returns the relations that a run of links or edges learns.
func learntRelations(n *graph.Network) (all []*store.Relation) {
	d := n.Data()
	for _, l := range d.Links.All {
		all = append(all, d.Relations[l.Relation].Relation)
	}
	return all
}

// relationOf returns the index of the relation whose name, key or SRC,REL,DST is text, or -1.
func relationOf(relations []*store.Relation, text string) int {
	return slices.IndexFunc(relations, func(r *store.Relation) bool {
		return text == r.Name || text == r.Key() || text == strings.Join([]string{r.Src, r.Name, r.Dst}, ",")
	})
}

// guarded is each under store.Guard, for graph.EachPair.
func (p *pairFile) guarded(use func(graph.Pairs) error) error {
	return store.Guard(func() error { return p.each(use) })
}

// check reads the whole file, before anything is computed. Its pairs are named items.
func (p *pairFile) check(ctx context.Context, show *progress, items string) error {
	show.show("read pairs", 0, 0, items)
	return p.guarded(func(graph.Pairs) error { return ctx.Err() })
}

// Columns of pairFile.
var (
	pairColumns  = []string{"src", "dst", "relation"}
	timedColumns = []string{"src", "dst", "time"}
)

// pairsAtOnce is the number of pairs that use gets together.
const pairsAtOnce = 1 << 16

// each calls use with the pairs, in the order of the file. An error names the file, and the line or
// row.
func (p *pairFile) each(use func(graph.Pairs) error) (err error) {
	p.use, p.count, p.times = use, 0, p.times[:0]
	p.clear()
	isParquet, err := startsWith(p.path, "PAR1")
	if err != nil {
		return p.fail("%w", err)
	}
	read := p.eachLine
	if isParquet {
		read = p.eachRow
	}
	if err := read(); err != nil {
		return err
	}
	if p.count == 0 {
		return p.fail("no pair is in it")
	}
	return p.flush()
}

func (p *pairFile) flush() error {
	err := p.use(p.pairs)
	p.clear()
	return err
}

func (p *pairFile) clear() {
	p.pairs.Src, p.pairs.Dst, p.pairs.Of, p.pairs.Given = p.pairs.Src[:0], p.pairs.Dst[:0], p.pairs.Of[:0], p.pairs.Given[:0]
}

func (p *pairFile) fail(format string, args ...any) error {
	return fmt.Errorf("--%s %s: %w", p.flag, p.path, fmt.Errorf(format, args...))
}

// startsWith reports whether a file starts with magic.
func startsWith(path, magic string) (bool, error) {
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	b := make([]byte, len(magic))
	_, err = io.ReadFull(f, b)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	return string(b) == magic, err
}

// add takes a pair of texts of the place, a line or a row, and p.numbers; third is a relation,
// empty where the table has none, or a time.
func (p *pairFile) add(place, src, dst, third string) error {
	take := p.addRelation
	if p.checkTime != nil {
		take = p.addTime
	}
	if err := take(place, third); err != nil {
		return err
	}
	return p.addPair(place, src, dst)
}

func (p *pairFile) addTime(place, text string) error {
	t, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil {
		return p.fail("%s: time: %q is no number", place, text)
	}
	if err := p.checkTime(t); err != nil {
		return p.fail("%s: time %s: %w", place, text, err)
	}
	p.times = append(p.times, t)
	return nil
}

func (p *pairFile) addRelation(place, relation string) error {
	of := relationOf(p.relations, relation)
	switch several := len(p.relations) > 1; {
	case several && relation == "":
		return p.fail("%s: no relation, and the run learns the links of %d; name one in a column relation", place, len(p.relations))
	case several && of < 0:
		return p.fail("%s: relation %s is none of those whose %s the run learns; remove the %s", place, relation, p.learnt, strings.Fields(place)[0])
	case several:
		p.pairs.Of = append(p.pairs.Of, uint32(of))
	case relation != "" && of < 0:
		return p.fail("%s: relation %s is not %s, whose %s the run learns; remove the %s", place, relation, p.relations[0].Name, p.learnt,
			strings.Fields(place)[0])
	}
	return nil
}

func (p *pairFile) addPair(place, src, dst string) error {
	var nodes [2]uint32
	for end, text := range []string{src, dst} {
		v, ok, err := storedID(p.ids[end], text)
		if err != nil {
			return p.fail("%s: %s: %w", place, p.columns[end], err)
		}
		if !ok {
			return p.fail("%s: %s: no node of type %s has the id %s; remove the %s", place, p.columns[end],
				p.types[end], text, strings.Fields(place)[0])
		}
		nodes[end] = v
	}
	for i, text := range p.numbers {
		x, err := strconv.ParseFloat(strings.TrimSpace(text), 32)
		if err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
			return p.fail("%s: column %s: %q is no finite number, and the network reads one; give it, or remove the %s", place, p.given[i], text,
				strings.Fields(place)[0])
		}
		p.pairs.Given = append(p.pairs.Given, float32(x))
	}
	p.pairs.Src, p.pairs.Dst = append(p.pairs.Src, nodes[0]), append(p.pairs.Dst, nodes[1])
	p.count++
	if len(p.pairs.Src) == pairsAtOnce {
		return p.flush()
	}
	return nil
}

// eachLine reads text, with commas between cells, or tabs where the first line has some and no
// comma.
func (p *pairFile) eachLine() error {
	f, err := lines.OpenBytes(p.path)
	if err != nil {
		return fmt.Errorf("--%s %w", p.flag, err)
	}
	defer f.Close()
	head := make([]byte, 4096)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("--%s %w", p.flag, err)
	}
	text := strings.TrimPrefix(string(head[:n]), "\ufeff")
	r := csv.NewReader(io.MultiReader(strings.NewReader(text), f))
	r.FieldsPerRecord, r.ReuseRecord = -1, true
	if first, _, _ := strings.Cut(text, "\n"); strings.Contains(first, "\t") && !strings.Contains(first, ",") {
		r.Comma = '\t'
	}
	at := []int{0, 1, 2} // of pairColumns, and of the numbers
	for first := true; ; first = false {
		cells, err := r.Read()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return p.fail("%w", err)
		}
		if first {
			named, err := p.placesOf(cells)
			if err != nil {
				return err
			}
			if named != nil {
				at = named
				continue
			}
		}
		line, _ := r.FieldPos(0)
		place := fmt.Sprintf("line %d", line)
		needed := slices.Concat(at[:2], at[3:])
		if p.checkTime != nil {
			needed = at
		}
		if len(cells) <= slices.Max(needed) {
			want := "src,dst or src,dst,relation"
			switch {
			case p.checkTime != nil:
				want = strings.Join(p.columns, ",")
			case len(p.given) > 0:
				want = "src,dst," + strings.Join(p.given, ",")
			}
			return p.fail("%s: %d cells; want %s", place, len(cells), want)
		}
		p.numbers = p.numbers[:0]
		for _, c := range at[3:] {
			p.numbers = append(p.numbers, cells[c])
		}
		third := ""
		if at[2] >= 0 && at[2] < len(cells) {
			third = cells[at[2]]
		}
		if err := p.add(place, cells[at[0]], cells[at[1]], third); err != nil {
			return err
		}
	}
}

// placesOf returns the places in a header of p.columns, -1 for a missing relation, and of the
// numbers. It returns nil if the header names no ends and need not.
func (p *pairFile) placesOf(names []string) (at []int, err error) {
	for _, c := range slices.Concat(p.columns, p.given) {
		at = append(at, slices.Index(names, c))
	}
	if len(p.given) == 0 && (at[0] < 0 || at[1] < 0) {
		return nil, nil
	}
	if p.checkTime != nil && at[2] < 0 {
		return nil, p.fail("its first row names %s, and no column time; want src, dst and time", strings.Join(names, ", "))
	}
	for i, c := range p.given {
		if at[0] < 0 || at[1] < 0 || at[len(p.columns)+i] < 0 {
			return nil, p.fail("its first row names %s, and no column %s; the network reads of each edge %s, so that a header has to name src, dst and these",
				strings.Join(names, ", "), c, strings.Join(p.given, ", "))
		}
	}
	return at, nil
}

// eachRow reads Parquet.
func (p *pairFile) eachRow() error {
	f, err := parquet.Open(p.path)
	if err != nil {
		return fmt.Errorf("--%s %w", p.flag, err)
	}
	defer f.Close()
	names := f.Names()
	at, err := p.placesOf(names)
	switch {
	case err != nil:
		return err
	case at == nil:
		want := "src and dst"
		if p.checkTime != nil {
			want = "src, dst and time"
		}
		return p.fail("it has the columns %s; want %s", strings.Join(names, ", "), want)
	}
	numbers := len(at) - len(p.given) // where they begin
	if at[2] < 0 {
		at = slices.Delete(at, 2, 3)
		numbers--
	}
	for i, c := range at {
		switch k := f.Columns()[c].Kind; {
		case i == 2 && p.checkTime != nil:
			if k != parquet.Int && k != parquet.Float {
				return p.fail("column time has %v; want numbers", k)
			}
		case i < numbers && k != parquet.Int && k != parquet.Text:
			return p.fail("column %s has %v; want integers or text", names[c], k)
		case i >= numbers && k != parquet.Int && k != parquet.Float:
			return p.fail("column %s has %v; want numbers", names[c], k)
		}
	}
	rows, cells := f.Rows(at), make([]parquet.Value, len(at))
	for {
		switch err := rows.Next(cells); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("--%s %w", p.flag, err)
		}
		place := fmt.Sprintf("row %d", rows.Row()+1)
		texts := make([]string, len(cells))
		for i, c := range cells {
			switch c.Kind {
			case parquet.Int:
				texts[i] = strconv.FormatInt(c.Int, 10)
			case parquet.Float:
				texts[i] = strconv.FormatFloat(c.Float, 'g', -1, 64)
			case parquet.Text:
				texts[i] = string(c.Text)
			default:
				return p.fail("%s: column %s has no value", place, names[at[i]])
			}
		}
		p.numbers = texts[numbers:]
		third := ""
		if numbers == len(p.columns) {
			third = texts[2]
		}
		if err := p.add(place, texts[0], texts[1], third); err != nil {
			return err
		}
	}
}

// storedID returns the node with the original id or name text. ok is false if there is none.
func storedID(ids store.IDs, text string) (v uint32, ok bool, err error) {
	if ids.HasNames() {
		return ids.Find([]byte(text))
	}
	id, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil {
		return 0, false, fmt.Errorf("%q is no whole number, as the ids of this dataset are", text)
	}
	v, ok = ids.Stored(id)
	return v, ok, nil
}
