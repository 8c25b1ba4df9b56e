package triples

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/zeebo/xxh3"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/lines"
)

// triple is one line, lent until the next.
type triple struct {
	head, relation, tail []byte
	literal              bool // the tail is one
}

// parser reads the triples of a file.
type parser struct {
	in    *lines.Scanner
	form  form
	by    byte // between columns: a tab, or 0 for blanks; the first line decides
	cells [][]byte
	// begun is true once by is known.
	begun bool

	layout  layout              // zero: head, relation, tail, or as a header says
	header  Header              // default HeaderAuto
	left    func(header string) // called with a header that is left out; may be nil
	ruled   bool                // the last line was a header
	counted bool                // the first line may be the number of triples
	says    string              // the number; "" where there is none
	triples int64
	graphs  int64 // statements of N-Quads with the name of a graph
}

// next is the next triple; nil at the end.
func (p *parser) next() (*triple, error) {
	for {
		line, err := p.in.Next()
		if err == io.EOF {
			if n, bad := strconv.ParseInt(p.says, 10, 64); p.says != "" && (bad != nil || n != p.triples) {
				return nil, p.in.Errorf("the first line says %s triples, and the file has %d; is it complete?", lines.Clip([]byte(p.says)), p.triples)
			}
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		if err := p.in.CheckEnds(line); err != nil {
			return nil, err
		}
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		if p.form != columns {
			if line[0] == '#' {
				continue
			}
			return p.statement(line)
		}
		if p.skips(line) {
			continue
		}
		p.triples++
		return p.columns(line)
	}
}

// checkName refuses a name that is empty or too long.
func (p *parser) checkName(column int, name []byte) error {
	if len(name) == 0 || len(name) > ingest.MaxIDBytes {
		return p.in.ErrorIn(column+1, "it has %d bytes; names have 1 to %d", len(name), ingest.MaxIDBytes)
	}
	return nil
}

// statement reads a line of N-Triples or N-Quads (W3C Recommendations of 2014): subject, predicate,
// object and a full stop. It leaves out the name of a graph.
func (p *parser) statement(line []byte) (*triple, error) {
	var t triple
	rest := line
	for i, term := range []*[]byte{&t.head, &t.relation, &t.tail} {
		var literal bool
		var err error
		if *term, rest, literal, err = cutTerm(rest); err == nil && literal && i < 2 {
			err = fmt.Errorf("%s is a literal, which is an object only", lines.Clip(*term))
		}
		if err == nil && i == 1 && bytes.HasPrefix(*term, []byte("_:")) {
			err = fmt.Errorf("%s is a blank node, which is no predicate", lines.Clip(*term))
		}
		if turtle := []string{"@prefix", "@base", "PREFIX", "BASE"}; err != nil && i == 0 &&
			slices.ContainsFunc(turtle, func(word string) bool { return bytes.HasPrefix(line, []byte(word)) }) {
			return nil, p.in.Errorf("%q is Turtle's; rename the file to end in .ttl", lines.Clip(line))
		}
		if err != nil {
			return nil, p.in.Errorf("%s: %w; a line is a subject, a predicate, an object and a full stop, as in <a> <b> \"c\" .",
				[]string{"subject", "predicate", "object"}[i], err)
		}
		t.literal = literal
	}
	rest = bytes.TrimLeft(rest, " \t")
	if named := len(rest) > 0 && (rest[0] == '<' || rest[0] == '_'); named && p.form == nQuads {
		p.graphs++
		_, behind, _, err := cutTerm(rest)
		if err != nil {
			return nil, p.in.Errorf("graph: %w; a line is a subject, a predicate, an object, perhaps a graph, and a full stop",
				err)
		}
		rest = bytes.TrimLeft(behind, " \t")
	} else if named {
		return nil, p.in.Errorf("no full stop behind the object, but the name of a graph, as N-Quads have it; " +
			"rename the file to end in .nq")
	}
	if len(rest) == 0 || rest[0] != '.' {
		return nil, p.in.Errorf("no full stop behind the object; %s", oneALine)
	}
	if rest = bytes.TrimLeft(rest[1:], " \t"); len(rest) > 0 && rest[0] != '#' {
		return nil, p.in.Errorf("%q follows the full stop; %s", lines.Clip(rest), oneALine)
	}
	return &t, nil
}

const oneALine = "a file of RDF has one statement a line, unless it is Turtle, whose name ends in .ttl"

// cutTerm takes an IRI, without its brackets, a blank node or a literal off the front of a line.
func cutTerm(line []byte) (term, rest []byte, literal bool, err error) {
	line = bytes.TrimLeft(line, " \t")
	end := 0
	switch {
	case len(line) == 0:
		return nil, nil, false, fmt.Errorf("it is missing")
	case line[0] == '<':
		if end = bytes.IndexByte(line, '>'); end < 0 {
			return nil, nil, false, fmt.Errorf("no > ends the IRI")
		}
		if term, err = unescaped(line[1:end], false); err != nil {
			return nil, nil, false, err
		}
		rest = line[end+1:]
	case bytes.HasPrefix(line, []byte("_:")):
		if end = bytes.IndexAny(line, " \t"); end < 0 {
			end = len(line)
		}
		end = len(bytes.TrimRight(line[:end], ".")) // a name may have stops in it, and does not end with one
		term, rest = line[:end], line[end:]
	case line[0] == '"':
		for end = 1; end < len(line) && line[end] != '"'; end++ {
			if line[end] == '\\' {
				end++
			}
		}
		if end++; end > len(line) {
			return nil, nil, true, fmt.Errorf("no quote ends the literal")
		}
		if bytes.HasPrefix(line[end:], []byte("^^<")) {
			n := bytes.IndexByte(line[end:], '>')
			if n < 0 {
				return nil, nil, true, fmt.Errorf("no > ends the type of the literal")
			}
			end += n + 1
		} else if end < len(line) && line[end] == '@' {
			for end < len(line) && line[end] != ' ' && line[end] != '\t' && line[end] != '.' {
				end++
			}
		}
		if term, err = unescaped(line[:end], true); err != nil {
			return nil, nil, true, err
		}
		rest, literal = line[end:], true
	default:
		return nil, nil, false, fmt.Errorf("%q begins neither an IRI, <…>, nor a blank node, _:…, nor a literal, \"…\"", lines.Clip(line))
	}
	if len(term) == 0 {
		return nil, nil, false, fmt.Errorf("an IRI of no letters")
	}
	if len(term) > ingest.MaxIDBytes {
		if !literal {
			return nil, nil, false, fmt.Errorf("it has %d bytes; names have 1 to %d", len(term), ingest.MaxIDBytes)
		}
		term = shortened(term)
	}
	return term, rest, literal, nil
}

// shortened is the name of a literal that is too long for one: its beginning, and a hash of all of
// it.
func shortened(literal []byte) []byte {
	sum := xxh3.Hash128(literal)
	return fmt.Appendf(nil, "%s… %016x%016x", literal[:ingest.MaxIDBytes-40], sum.Hi, sum.Lo)
}

// lastPart returns the name of a thing in its IRI: the text after its last #, / or :.
func lastPart(iri string) string {
	s := strings.TrimRight(iri, "#/:")
	return s[strings.LastIndexAny(s, "#/:")+1:]
}
