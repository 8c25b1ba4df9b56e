package edgelist

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/lines"
)

// Names of the ends of edges from one kind of node to another, whose ids are numbered apart.
var (
	actors = []string{"user", "customer", "reviewer", "author", "reader", "listener", "viewer", "u"}
	items  = []string{
		"item", "movie", "product", "book", "paper", "article", "song", "track", "artist", "business", "venue", "location", "poi", "page",
		"post", "video", "game", "app", "tag", "group", "i",
	}
)

// twoKinds reports whether headers name an actor and an item.
func twoKinds(a, b string) bool {
	a, b = ingest.EndName(a), ingest.EndName(b)
	return slices.Contains(actors, a) && slices.Contains(items, b) || slices.Contains(actors, b) && slices.Contains(items, a)
}

// Ends finds the columns that a header calls the ends of edges, when it names one pair of them.
func Ends(header []string) (src, dst int, ok bool) {
	src, dst, found := ingest.EdgeEnds(header)
	columns := map[string][]int{}
	for i, h := range header {
		name := ingest.EndName(h)
		columns[name] = append(columns[name], i)
	}
	for _, a := range actors {
		for _, b := range items {
			if n := len(columns[a]) * len(columns[b]); n > 0 {
				src, dst = columns[a][0], columns[b][0]
				found += n
			}
		}
	}
	return src, dst, found == 1
}

// edgeColumns returns the columns of sources and destinations.
func (o *Options) edgeColumns(t *table) (src, dst int, err error) {
	if t.columns == 0 {
		return 0, 1, nil // an empty list
	}
	src, dst = 0, 1
	s, d, named := Ends(t.header)
	if named {
		src, dst = s, d
	}
	flags := [2]string{"{src}", "{dst}"}
	if len(o.Ends) > 0 {
		flags = [2]string{"{columns}", "{columns}"}
	}
	for i, end := range []struct {
		name   string
		column *int
	}{{o.Src, &src}, {o.Dst, &dst}} {
		if end.name == "" && !named && t.header != nil && t.columns > 2 {
			return 0, 0, ingest.Ask("%s: which of the columns %s are the ends of edges? Their names do not tell, so say %s",
				t.Name(), lines.List(t.header), o.endsBy("SRC", "DST"))
		}
		if end.name == "" {
			continue
		}
		if *end.column, err = t.column(flags[i], end.name); err != nil {
			return 0, 0, err
		}
	}
	if src == dst {
		return 0, 0, fmt.Errorf("%s: %s is both source and destination; choose two with %s", t.Name(), t.title(src), o.endsBy("SRC", "DST"))
	}
	most := max(src, dst)
	switch {
	case most < t.columns:
		return src, dst, nil
	case t.counts != nil:
		err = bad(0, "found %d columns, and an edge has two ids; if this row counts edges, say {header} yes", t.columns)
	default:
		err = bad(0, "found %d columns, and an edge has two ids; parted by commas, tabs, semicolons, bars, double colons or blanks?",
			t.columns)
	}
	return 0, 0, t.judge(nil, err)
}

// endsBy names the options that choose the columns of the ends.
func (o *Options) endsBy(src, dst string) string {
	switch {
	case o.Events || o.OwnNodes:
		return fmt.Sprintf("{src} %s and {dst} %s", src, dst)
	case src == "SRC":
		return "{columns} SRC,DST[,WEIGHT]"
	}
	return fmt.Sprintf("{columns} %s,%s", src, dst)
}

// namesEnds reports whether a first row is a header, judged by the names in it.
func (s *Source) namesEnds(t *table) bool {
	_, _, named := Ends(t.header)
	return named || t.named(s.o.Src, s.o.Dst) || slices.ContainsFunc(s.kept, func(c keptColumn) bool { return t.named(c.from) })
}

// refuseTriples refuses a list without a header whose second column is a relation. In its first
// rows, the third column has texts that also stand in the first column, and the second column
// does not.
func (s *Source) refuseTriples(path string) error {
	if !s.text || s.o.Src+s.o.Dst != "" {
		return nil
	}
	t, err := openTable(path, s.form, true, true)
	if err != nil {
		return err
	}
	defer t.Close()
	if t.header != nil || t.columns < 3 {
		return nil
	}
	var columns [3]map[string]bool
	for i := range columns {
		columns[i] = map[string]bool{}
	}
	for range idRows {
		cells, err := t.next()
		if err != nil {
			break // what is wrong is told when all are read
		}
		for i := range columns {
			columns[i][string(cells[i])] = true
		}
	}
	inFirst := [3]bool{}
	for i := range columns {
		for cell := range columns[i] {
			inFirst[i] = inFirst[i] || columns[0][cell]
		}
	}
	if inFirst[1] || !inFirst[2] {
		return nil
	}
	return fmt.Errorf("%s: triples: the first column and the third hold the same nodes, and the second a relation; say %s to pass it "+
		"over, or describe the relations: gnnstore ingest table {infer} %s writes a first schema", path, s.o.endsBy("1", "3"), filepath.Dir(path))
}
