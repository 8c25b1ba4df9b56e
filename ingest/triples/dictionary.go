package triples

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/lines"
)

// dictionaries have the names of entities and relations, for triples that consist of ids. They are
// nil if the triples have the names themselves.
type dictionaries struct{ entities, relations *dictionary }

// dictionary is a file of ids and names.
type dictionary struct {
	path string
	of   map[string]string // names by ids
}

// dictionaryFiles are the names of such files, of entities and of relations, in pairs; the files
// may be compressed. nameFirst says that the name comes before the id, unless a header says
// otherwise.
var dictionaryFiles = []struct {
	entities, relations string
	nameFirst           bool
}{
	{"entities.dict", "relations.dict", false},        // DGL-KE, RotatE
	{"entity2id.txt", "relation2id.txt", true},        // OpenKE, KB2E
	{"entity_ids.del", "relation_ids.del", false},     // LibKGE
	{"entities.tsv", "relations.tsv", false},          // DGL-KE, as it writes them
	{"entity_to_id.tsv", "relation_to_id.tsv", false}, // PyKEEN
}

// findFile returns the path of a file in a folder, compressed or not; "" if there is none.
func findFile(folder, name string) string {
	for _, end := range []string{"", ".gz", ".zst"} {
		path := filepath.Join(folder, name+end)
		if info, err := os.Stat(path); err == nil && !info.IsDir() {
			return path
		}
	}
	return ""
}

// openDictionaries reads the dictionaries beside the triples, if the triples are of ids.
func (s *Source) openDictionaries() error {
	s.dictionaries = dictionaries{}
	if s.files[0].path == s.path || s.files[0].form != columns {
		return nil
	}
	for _, f := range dictionaryFiles {
		paths := [2]string{findFile(s.path, f.entities), findFile(s.path, f.relations)}
		if paths[0] == "" {
			continue
		}
		if paths[1] == "" {
			return fmt.Errorf("%s: there is %s, and no %s beside it", s.path, f.entities, f.relations)
		}
		first, err := s.firstTriple()
		if err != nil || first == nil {
			return err
		}
		room := s.o.Memory / 4
		entities, err := readDictionary(paths[0], s.encoding, f.nameFirst, &room)
		if err != nil {
			return err
		}
		head := string(first.head)
		if _, id := entities.of[head]; !id || entities.has(head) && !s.files[0].ids {
			if entities.has(head) { // the triples have the names
				return nil
			}
			return fmt.Errorf("%s: the first triple has the head %q, which is neither an id nor a name in %s",
				s.files[0].path, lines.Clip(first.head), filepath.Base(paths[0]))
		}
		relations, err := readDictionary(paths[1], s.encoding, f.nameFirst, &room)
		if err != nil {
			return err
		}
		s.dictionaries = dictionaries{entities, relations}
		return nil
	}
	if s.files[0].ids {
		return fmt.Errorf("%s: its triples are of ids, and no entity2id.txt, entity_ids.del or entity_to_id.tsv beside them has the names",
			s.files[0].path)
	}
	return nil
}

func (d *dictionary) has(name string) bool {
	for _, n := range d.of {
		if n == name {
			return true
		}
	}
	return false
}

// firstTriple returns the first triple of the first file, as it stands there.
func (s *Source) firstTriple() (*triple, error) {
	in, err := lines.OpenText(s.files[0].path, s.encoding)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	p := s.parserOf(in, &s.files[0])
	t, err := p.next()
	if err != nil || t == nil {
		return nil, err
	}
	return &triple{head: bytes.Clone(t.head)}, nil
}

// readDictionary reads ids and names, a pair a line, perhaps after a line with their number or a
// header. It subtracts the memory of the texts from room.
func readDictionary(path string, encoding lines.Encoding, nameFirst bool, room *int64) (*dictionary, error) {
	in, err := lines.OpenText(path, encoding)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	return parseDictionary(in, path, nameFirst, room)
}

func parseDictionary(in *lines.Scanner, path string, nameFirst bool, room *int64) (*dictionary, error) {
	d, names := &dictionary{path, map[string]string{}}, map[string]bool{}
	said := int64(-1)
	var cells [][]byte
	for begun := false; ; begun = true {
		line, err := in.Next()
		if err == io.EOF {
			break
		}
		if err == nil {
			err = in.CheckEnds(line)
		}
		if err != nil {
			return nil, err
		}
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		by := byte(0)
		if bytes.IndexByte(line, '\t') >= 0 {
			by = '\t'
		}
		cells, _ = lines.Cells(cells[:0], line, by)
		if !begun && len(cells) == 1 {
			if said, err = strconv.ParseInt(string(cells[0]), 10, 64); err != nil || said < 0 {
				return nil, in.Errorf("%q is neither the number of names nor an id and a name", lines.Clip(line))
			}
			continue
		}
		if len(cells) != 2 {
			return nil, in.Errorf("found %d columns; a dictionary has an id and a name, between tabs", len(cells))
		}
		if at := headerID(cells); !begun && at >= 0 {
			nameFirst = at == 1
			continue
		}
		id, name := string(cells[0]), string(cells[1])
		if nameFirst {
			id, name = name, id
		}
		if n, err := strconv.ParseInt(id, 10, 64); err != nil || n < 0 || strconv.FormatInt(n, 10) != id {
			return nil, in.Errorf("%q is no id; ids are whole numbers from 0 on", lines.Clip([]byte(id)))
		}
		if len(name) == 0 || len(name) > ingest.MaxIDBytes {
			return nil, in.Errorf("the name of %s has %d bytes; names have 1 to %d", id, len(name), ingest.MaxIDBytes)
		}
		if old, again := d.of[id]; again {
			return nil, in.Errorf("id %s is that of %q as well", id, lines.Clip([]byte(old)))
		}
		if names[name] {
			return nil, in.Errorf("%q has an id before; a name has one", lines.Clip([]byte(name)))
		}
		const each = 128 // of two maps, about
		if *room -= int64(len(name)+len(id)) + each; *room < 0 {
			return nil, in.Errorf("the dictionaries take more than a quarter of {memory}; give it more")
		}
		d.of[id], names[name] = name, true
	}
	if len(d.of) == 0 {
		return nil, fmt.Errorf("%s: it has no id and no name; is the file complete?", path)
	}
	if said >= 0 && said != int64(len(d.of)) {
		return nil, in.Errorf("the first line says %d names, and there are %d; is the file complete?", said, len(d.of))
	}
	return d, nil
}

// headerID returns the column of ids that a header names, as in "id label"; -1 if cells are an id
// and a name.
func headerID(cells [][]byte) int {
	at := -1
	for i, c := range cells {
		if len(c) > 0 && c[0] >= '0' && c[0] <= '9' {
			return -1
		}
		if strings.EqualFold(string(c), "id") {
			at = i
		}
	}
	return at
}

// translate puts names in the place of the ids of a triple.
func (d *dictionaries) translate(p *parser, t *triple) error {
	if d.entities == nil {
		return nil
	}
	for i, to := range []*[]byte{&t.head, &t.relation, &t.tail} {
		from := d.entities
		if i == 1 {
			from = d.relations
		}
		name, ok := from.of[string(*to)]
		if !ok {
			l := p.layout
			if l.total == 0 {
				l = usual
			}
			return p.in.ErrorIn(l.at[i]+1, "id %q is not in %s", lines.Clip(*to), filepath.Base(from.path))
		}
		*to = []byte(name)
	}
	return nil
}

// parserOf returns the parser of a file.
func (s *Source) parserOf(in *lines.Scanner, f *file) parser {
	p := parser{in: in, form: f.form, header: s.o.Header, counted: f.counted}
	if len(s.o.Columns) > 0 {
		p.layout, _ = parseColumns(s.o.Columns) // Validate refuses others
	} else if f.counted {
		p.layout = tailsSnd
	}
	return p
}
