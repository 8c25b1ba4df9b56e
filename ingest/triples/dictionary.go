package triples

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

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

// dictionaryFiles are the names of such files, of entities and of relations, in pairs. nameFirst
// says that the name comes before the id, as OpenKE has it.
var dictionaryFiles = []struct {
	entities, relations string
	nameFirst           bool
}{
	{"entities.dict", "relations.dict", false},       // DGL-KE, RotatE
	{"entity2id.txt", "relation2id.txt", true},       // OpenKE, KB2E
	{"entity_ids.del", "relation_ids.del", false},    // LibKGE
	{"entities.tsv", "relations.tsv", false},         // DGL-KE, as it writes them
	{"entity_to_id.tsv", "relation_to_id.tsv", true}, // PyKEEN
}

// openDictionaries reads the dictionaries beside the triples, if the triples are of ids.
func (s *Source) openDictionaries() error {
	s.dictionaries = dictionaries{}
	if s.files[0].path == s.path || s.files[0].nt {
		return nil
	}
	for _, f := range dictionaryFiles {
		paths := [2]string{filepath.Join(s.path, f.entities), filepath.Join(s.path, f.relations)}
		if _, err := os.Stat(paths[0]); err != nil {
			continue
		}
		if _, err := os.Stat(paths[1]); err != nil {
			return fmt.Errorf("%s: there is %s, and no %s beside it", s.path, f.entities, f.relations)
		}
		first, err := s.firstTriple()
		if err != nil || first == nil {
			return err
		}
		room := s.o.Memory / 4
		entities, err := readDictionary(paths[0], f.nameFirst, &room)
		if err != nil {
			return err
		}
		head := string(first.head)
		if _, id := entities.of[head]; !id || entities.has(head) && !s.files[0].ids {
			if entities.has(head) { // the triples have the names
				return nil
			}
			return fmt.Errorf("%s: the first triple has the head %q, which is neither an id nor a name in %s", s.files[0].path, head, f.entities)
		}
		relations, err := readDictionary(paths[1], f.nameFirst, &room)
		if err != nil {
			return err
		}
		s.dictionaries = dictionaries{entities, relations}
		return nil
	}
	if s.files[0].ids {
		return fmt.Errorf("%s: its triples are of ids, and no entity2id.txt or entity_ids.del beside them has the names", s.files[0].path)
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
	in, err := lines.Open(s.files[0].path)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	p := s.parserOf(in, &s.files[0])
	p.left = nil
	t, err := p.next()
	if err != nil || t == nil {
		return nil, err
	}
	return &triple{head: bytes.Clone(t.head)}, nil
}

// readDictionary reads ids and names, a pair a line, perhaps after a line with their number. Texts
// take from room.
func readDictionary(path string, nameFirst bool, room *int64) (*dictionary, error) {
	in, err := lines.Open(path)
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
		id, name := string(cells[0]), string(cells[1])
		if nameFirst {
			id, name = name, id
		}
		if !begun && nameFirst && name == "label" && id == "id" || !begun && !nameFirst && id == "id" { // a header
			continue
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
	if said >= 0 && said != int64(len(d.of)) {
		return nil, in.Errorf("the first line says %d names, and there are %d; is the file complete?", said, len(d.of))
	}
	return d, nil
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
	p := parser{in: in, nt: f.nt, header: s.o.Header, counted: f.counted}
	if len(s.o.Columns) > 0 {
		p.layout, _ = parseColumns(s.o.Columns) // Validate refuses others
	} else if f.counted {
		p.layout = tailsSnd
	}
	return p
}

// findUnseen finds the entities that no training triple has, and adds a remark that counts the
// held-out triples with such an entity. It holds the entities in memory meanwhile, and gives up if
// they take more than a sixteenth of the memory.
func (s *Source) findUnseen(ctx context.Context) error {
	s.unseen = nil
	for i := range s.files {
		if p := s.parserOf(nil, &s.files[i]); !p.nt {
			if err := s.remarkHeader(&s.files[i]); err != nil {
				return err
			}
		}
	}
	if !s.parted {
		return nil
	}
	seen, unseen, count, room := map[string]bool{}, map[string]bool{}, 0, s.o.Memory/16
	keep := s.o.Unseen
	s.o.Unseen = UnseenKeep // nothing is dropped while looking
	defer func() { s.o.Unseen = keep }()
	err := s.each(ctx, func(f int, t *triple) error {
		lacks := false
		for _, name := range [][]byte{t.head, t.tail} {
			if seen[string(name)] || room < 0 {
				continue
			}
			if s.files[f].part != ingest.Train {
				unseen[string(name)], lacks = true, true
				continue
			}
			seen[string(name)] = true
			room -= int64(len(name)) + 64
		}
		if lacks {
			count++
		}
		return nil
	})
	switch {
	case err != nil || count == 0 && room >= 0:
		return err
	case room < 0 && keep == UnseenDrop:
		return fmt.Errorf("{unseen} drop: the entities of %s take more than a sixteenth of {memory}; give it more", s.path)
	case room < 0:
		s.remarks = append(s.remarks, "entities that training triples lack were not counted, for want of {memory}")
		return nil
	}
	what := "they are kept, and nothing is learnt of them; {unseen} drop leaves them out"
	if keep == UnseenDrop {
		what = "{unseen} drop leaves them out"
	}
	s.unseen = unseen
	s.remarks = append(s.remarks, fmt.Sprintf("%d held-out triples have an entity that no training triple has, %d entities in all: %s", count, len(unseen), what))
	return nil
}

// remarkHeader remarks on a header that is left out.
func (s *Source) remarkHeader(f *file) error {
	in, err := lines.Open(f.path)
	if err != nil {
		return err
	}
	defer in.Close()
	p := s.parserOf(in, f)
	p.left = func(header string) {
		s.remarks = append(s.remarks, fmt.Sprintf("%s: line 1, %q, names columns and is left out; {header} no reads it as a triple", f.path, header))
	}
	_, err = p.next()
	return err
}
