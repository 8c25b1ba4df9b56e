package triples

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/gnnstore/gnnstore/ingest/lines"
)

// layout has the columns of head, relation and tail, and how many there are.
type layout struct {
	at    [3]int
	total int
}

var (
	usual    = layout{[3]int{0, 1, 2}, 3}
	tailsSnd = layout{[3]int{0, 2, 1}, 3} // head, tail, relation: OpenKE's order
)

// roles are the words that name the columns of a triple in headers.
var roles = [3][]string{
	{"head", "h", "subject", "subj", "s"},
	{"relation", "rel", "r", "predicate", "pred", "p"},
	{"tail", "t", "object", "obj", "o"},
}

// parseColumns reads Options.Columns: head, relation and tail in any order. Other words stand for
// columns that are left out.
func parseColumns(words []string) (layout, error) {
	l, found := layoutOf(words)
	if !found {
		return l, fmt.Errorf("{columns} %s: name head, relation and tail, each once, in the order of the file; "+
			"another word, as in head,relation,tail,year, leaves its column out", strings.Join(words, ","))
	}
	return l, nil
}

// layoutOf finds the columns that words name. found is false unless each role is there once.
func layoutOf(words []string) (l layout, found bool) {
	l = layout{[3]int{-1, -1, -1}, len(words)}
	for i, word := range words {
		for role, names := range roles {
			if !slices.Contains(names, strings.ToLower(strings.TrimSpace(word))) {
				continue
			}
			if l.at[role] >= 0 {
				return l, false
			}
			l.at[role] = i
		}
	}
	return l, !slices.Contains(l.at[:], -1)
}

// isRule reports whether cells are dashes, as a table has them below its header.
func isRule(cells [][]byte) bool {
	return !slices.ContainsFunc(cells, func(c []byte) bool { return len(c) == 0 || len(bytes.Trim(c, "-=")) > 0 })
}

// isHeader decides about the first line of a file, and finds the columns that it names.
func (p *parser) isHeader(cells [][]byte) bool {
	var words []string
	for _, c := range cells {
		words = append(words, string(c))
	}
	l, found := layoutOf(words)
	if p.header == HeaderNo || p.header != HeaderYes && !found {
		return false
	}
	if found && p.layout.total == 0 {
		p.layout = l
	}
	return true
}

// split cuts a line into its columns.
func (p *parser) split(line []byte) (cells [][]byte, few bool) {
	p.cells, few = lines.Cells(p.cells[:0], line, p.by)
	return p.cells, few
}

// skips reports whether a line is no triple: a header, the dashes below it, or a count.
func (p *parser) skips(line []byte) bool {
	if !p.begun {
		p.begun = true
		if bytes.IndexByte(line, '\t') >= 0 {
			p.by = '\t'
		}
		cells, _ := p.split(line)
		if p.counted && len(cells) == 1 {
			p.says = string(cells[0])
			return true
		}
		p.ruled = p.isHeader(cells)
		if p.ruled && p.left != nil {
			p.left(lines.Clip(line))
		}
		return p.ruled
	}
	ruled := p.ruled
	p.ruled = false
	if !ruled {
		return false
	}
	cells, _ := p.split(line)
	return isRule(cells)
}

// columns reads head, relation and tail.
func (p *parser) columns(line []byte) (*triple, error) {
	cells, few := p.split(line)
	l := p.layout
	if l.total == 0 {
		l = usual
	}
	if len(cells) != l.total {
		more := ""
		if !few {
			more = "more than "
		}
		if p.layout.total > 0 {
			return nil, p.in.Errorf("found %s%d columns, and {columns} or the header names %d", more, len(cells), l.total)
		}
		return nil, p.in.Errorf("found %s%d columns; a triple has three, head, relation and tail, between tabs or blanks; "+
			"{columns} names them where there are more, as in head,relation,tail,year", more, len(cells))
	}
	var t triple
	for role, to := range []*[]byte{&t.head, &t.relation, &t.tail} {
		cell := cells[l.at[role]]
		if err := p.checkName(l.at[role], cell); err != nil {
			return nil, err
		}
		*to = cell
	}
	return &t, nil
}
