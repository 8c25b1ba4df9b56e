package main

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/gnnstore/gnnstore/ingest/lines"
	"github.com/gnnstore/gnnstore/ingest/parquet"
	"github.com/gnnstore/gnnstore/store"
)

// pairFile is pairs of nodes under the ids that users know, in a table of csv or Parquet: sources, destinations and, where it names one, a
// relation, which has to be the one that the run learns.
type pairFile struct {
	path     string
	relation *store.Relation
	ids      [2]store.IDs // of sources and destinations

	src, dst []uint32
	use      func(src, dst []uint32) error
	count    int64 // of pairs, once each has gone through them
}

// pairColumns are the columns of a table with a header, which may have others. Without one they are the first.
var pairColumns = []string{"src", "dst", "relation"}

// pairsAtOnce is how many pairs go on together.
const pairsAtOnce = 1 << 16

// each calls use with the pairs, in the order of the file. An error names the file, and the line or row.
func (p *pairFile) each(use func(src, dst []uint32) error) (err error) {
	p.src, p.dst, p.use, p.count = p.src[:0], p.dst[:0], use, 0
	isParquet, err := startsWith(p.path, "PAR1")
	if err != nil {
		return fmt.Errorf("--pairs %s: %w", p.path, err)
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
	err := p.use(p.src, p.dst)
	p.src, p.dst = p.src[:0], p.dst[:0]
	return err
}

func (p *pairFile) fail(format string, args ...any) error {
	return fmt.Errorf("--pairs %s: %w", p.path, fmt.Errorf(format, args...))
}

// startsWith tells whether a file does.
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

// add takes a pair of texts of the place, a line or a row; relation is empty where the table has none.
func (p *pairFile) add(place string, src, dst, relation string) error {
	if r := p.relation; relation != "" && !slices.Contains([]string{r.Name, r.Key(), strings.Join([]string{r.Src, r.Name, r.Dst}, ",")}, relation) {
		return p.fail("%s: relation %s is not %s, whose links the run learns; remove the %s", place, relation, r.Name, strings.Fields(place)[0])
	}
	var nodes [2]uint32
	for end, text := range []string{src, dst} {
		v, ok, err := storedID(p.ids[end], text)
		if err != nil {
			return p.fail("%s: %s: %w", place, pairColumns[end], err)
		}
		if !ok {
			return p.fail("%s: %s: no node of type %s has the id %s; remove the %s", place, pairColumns[end],
				[]string{p.relation.Src, p.relation.Dst}[end], text, strings.Fields(place)[0])
		}
		nodes[end] = v
	}
	p.src, p.dst = append(p.src, nodes[0]), append(p.dst, nodes[1])
	p.count++
	if len(p.src) == pairsAtOnce {
		return p.flush()
	}
	return nil
}

// eachLine reads text, with commas between cells, or tabs where the first line has some and no comma.
func (p *pairFile) eachLine() error {
	f, err := lines.OpenBytes(p.path)
	if err != nil {
		return fmt.Errorf("--pairs %w", err)
	}
	defer f.Close()
	head := make([]byte, 4096)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("--pairs %w", err)
	}
	text := strings.TrimPrefix(string(head[:n]), "\ufeff")
	r := csv.NewReader(io.MultiReader(strings.NewReader(text), f))
	r.FieldsPerRecord, r.ReuseRecord = -1, true
	if first, _, _ := strings.Cut(text, "\n"); strings.Contains(first, "\t") && !strings.Contains(first, ",") {
		r.Comma = '\t'
	}
	at := []int{0, 1, 2} // of pairColumns
	for first := true; ; first = false {
		cells, err := r.Read()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return p.fail("%w", err)
		}
		if first {
			if named := placesOf(cells); named != nil {
				at = named
				continue
			}
		}
		line, _ := r.FieldPos(0)
		place := fmt.Sprintf("line %d", line)
		if len(cells) <= max(at[0], at[1]) {
			return p.fail("%s: %d cells; want src,dst or src,dst,relation", place, len(cells))
		}
		relation := ""
		if at[2] >= 0 && at[2] < len(cells) {
			relation = cells[at[2]]
		}
		if err := p.add(place, cells[at[0]], cells[at[1]], relation); err != nil {
			return err
		}
	}
}

// placesOf is where a header has pairColumns, -1 where it has no relation; nil where it names no ends.
func placesOf(names []string) (at []int) {
	for _, c := range pairColumns {
		at = append(at, slices.Index(names, c))
	}
	if at[0] < 0 || at[1] < 0 {
		return nil
	}
	return at
}

// eachRow reads Parquet.
func (p *pairFile) eachRow() error {
	f, err := parquet.Open(p.path)
	if err != nil {
		return fmt.Errorf("--pairs %w", err)
	}
	defer f.Close()
	var names []string
	for _, c := range f.Columns() {
		names = append(names, c.Name)
	}
	at := placesOf(names)
	if at == nil {
		return p.fail("it has the columns %s; want src and dst", strings.Join(names, ", "))
	}
	if at[2] < 0 {
		at = at[:2]
	}
	for _, c := range at {
		if k := f.Columns()[c].Kind; k != parquet.Int && k != parquet.Text {
			return p.fail("column %s has %v; want integers or text", names[c], k)
		}
	}
	rows, cells := f.Rows(at), make([]parquet.Value, len(at))
	for {
		switch err := rows.Next(cells); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("--pairs %w", err)
		}
		place := fmt.Sprintf("row %d", rows.Row()+1)
		var texts [3]string
		for i, c := range cells {
			switch c.Kind {
			case parquet.Int:
				texts[i] = strconv.FormatInt(c.Int, 10)
			case parquet.Text:
				texts[i] = string(c.Text)
			default:
				return p.fail("%s: column %s has no value", place, pairColumns[i])
			}
		}
		if err := p.add(place, texts[0], texts[1], texts[2]); err != nil {
			return err
		}
	}
}

// storedID is the node that users know by a text. It says false where there is none.
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
