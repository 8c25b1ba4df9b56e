package triples

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/lines"
	"github.com/gnnstore/gnnstore/store"
)

const (
	entity = "entity" // the node type
	// maxRelations is more than Wikidata's use: whoever has more has them in another column.
	maxRelations = 1 << 16
	checkEvery   = 1 << 12 // triples between two looks at the context
)

// Literals selects what happens to triples of RDF that end in a literal.
type Literals string

const (
	LiteralsNode Literals = "node" // the literal is an entity, as R-GCN has it; equal ones are one
	LiteralsDrop Literals = "drop" // the triple is left out
)

// Header selects what the first line of a text file is.
type Header string

const (
	HeaderAuto Header = "auto" // a header if it names the three columns: head or subject, …
	HeaderYes  Header = "yes"
	HeaderNo   Header = "no"
)

// Unseen selects what happens to held-out triples of an entity that no training triple has.
type Unseen string

const (
	UnseenKeep Unseen = "keep"
	UnseenDrop Unseen = "drop"
)

// Options configure the reading; the zero value works.
type Options struct {
	Literals Literals // default LiteralsNode
	// Columns names the columns of text files: head, relation and tail in the order of the file,
	// and any other word for a column that is left out. Default: that order, or as a header says.
	Columns []string
	Header  Header // default HeaderAuto
	Unseen  Unseen // default UnseenKeep
	// Encoding names the encoding of all text, as in edgelist.Options. Default "utf-8".
	Encoding string
	// Memory bounds the texts of entities, if labels need them, to a quarter of it, and the triples
	// that are held at a time to a sixteenth. Default 1 GiB.
	Memory int64
	// Like is a dataset whose relations are taken, by their names in the source. Default none.
	Like *ingest.Like
}

// Validate reports what is wrong with the options.
func (o Options) Validate() error {
	if o.Literals != "" && o.Literals != LiteralsNode && o.Literals != LiteralsDrop {
		return fmt.Errorf("{literals} %q: choose node or drop", o.Literals)
	}
	if !slices.Contains([]Header{"", HeaderAuto, HeaderYes, HeaderNo}, o.Header) {
		return fmt.Errorf("{header} %q: choose yes, no or auto", o.Header)
	}
	if !slices.Contains([]Unseen{"", UnseenKeep, UnseenDrop}, o.Unseen) {
		return fmt.Errorf("{unseen} %q: choose keep or drop", o.Unseen)
	}
	if _, err := lines.ParseEncoding(o.Encoding); err != nil {
		return err
	}
	if len(o.Columns) > 0 {
		_, err := parseColumns(o.Columns)
		return err
	}
	return nil
}

// Source is a knowledge graph. It holds no file open between sections.
type Source struct {
	ingest.Plain
	o         Options
	encoding  lines.Encoding
	path      string
	files     []file
	parted    bool
	notes     []string  // about files that are not read
	tables    [3]string // of labels, by part; "" where there is none
	relations []string  // by Schema.Relations: as the files have them
	sizes     []int64   // of the triples of each relation in kept, in bytes
	names     []string  // of entities, where there are tables of labels
	labels    *labels
	kept      *kept // nil: no relations are held
	dictionaries
	newcomers *newcomers // nil: no triple is held out
	remarks   []string
	schema    *ingest.Schema // nil until the first call of Schema
}

var _ ingest.Source = (*Source)(nil)

// Open finds the files of a graph. They are read by the first call of Schema.
func (o Options) Open(path string) (*Source, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if o.Memory == 0 {
		o.Memory = 1 << 30
	}
	s := &Source{o: o, path: path}
	var err error
	if s.encoding, err = lines.ParseEncoding(o.Encoding); err != nil {
		return nil, err
	}
	if s.files, s.parted, s.notes, err = findFiles(path); err != nil {
		return nil, err
	}
	if s.files[0].path != path { // a folder
		s.findTables()
	}
	return s, nil
}

// Extras implements [ingest.Source].
func (s *Source) Extras() ingest.Extras {
	return ingest.Extras{
		Remarks:  func() []string { return s.remarks },
		Describe: func() ingest.Description { return ingest.Description{Names: s.relations} },
	}
}

// Schema reads all triples on its first call.
func (s *Source) Schema(ctx context.Context) (*ingest.Schema, error) {
	return ingest.ScanOnce(ctx, &s.schema, s.scan)
}

// scan finds relations, and where there are labels, entities.
func (s *Source) scan(ctx context.Context) (*ingest.Schema, error) {
	name, _ := kindOf(filepath.Base(filepath.Clean(s.path)))
	schema := &ingest.Schema{
		Name: name, NodeTypes: []ingest.NodeType{{Name: entity, IDs: ingest.TextIDs, Gathered: true}},
		Featureless: true, NoLabels: s.path + ": no trainingSet.tsv and testSet.tsv beside the triples",
	}
	s.relations, s.remarks = nil, slices.Clone(s.notes) // not of a reading that was cut
	type size struct{ triples, bytes int64 }
	counts, literals := map[string]*size{}, int64(0)
	var known *entities
	if s.tables[ingest.Train] != "" {
		known = &entities{rows: map[string]uint32{}, room: s.o.Memory / 4}
	}
	s.kept = s.o.newKept()
	if err := s.openDictionaries(); err != nil {
		return nil, err
	}
	if s.newcomers = nil; s.parted {
		s.newcomers = &newcomers{seen: map[string]bool{}, names: map[string]bool{}, room: s.o.Memory / 16}
	}
	tails, triples := map[string]bool{}, int64(0)
	err := s.each(ctx, func(f int, t *triple) error {
		if s.newcomers != nil && s.newcomers.look(t, s.files[f].part) && s.o.Unseen == UnseenDrop {
			return nil
		}
		if t.literal {
			literals++
			if s.o.Literals == LiteralsDrop {
				return nil
			}
		}
		if known != nil {
			if err := errors.Join(known.add(t.head), known.add(t.tail)); err != nil {
				return err
			}
		}
		if s.kept != nil && !s.kept.add(t, f) {
			s.kept = nil
		}
		if triples++; len(tails) <= maxRelations && s.files[f].form == columns {
			tails[string(t.tail)] = true
		}
		n := counts[string(t.relation)]
		if n == nil && len(counts) < maxRelations {
			n = &size{bytes: relationKept + int64(len(t.relation))}
			counts[string(t.relation)] = n
		}
		if n != nil {
			n.triples++
			n.bytes += keptBytes(t)
			return nil
		}
		return fmt.Errorf("%s: more than %d relations; they are the second of three columns: is it another graph's format? {columns} names the columns, as in head,tail,relation", s.path, maxRelations)
	})
	if err != nil {
		return nil, err
	}
	if s.newcomers != nil {
		remark, err := s.newcomers.remark(s.path, s.o.Unseen)
		if err != nil {
			return nil, err
		}
		if s.newcomers.seen = nil; remark != "" {
			s.remarks = append(s.remarks, remark)
		}
	}
	s.relations, s.sizes = slices.Sorted(maps.Keys(counts)), nil
	for _, r := range s.relations {
		s.sizes = append(s.sizes, counts[r].bytes)
	}
	if n := len(counts); len(s.o.Columns) == 0 && s.files[0].form == columns && n > 2 && 2*int64(n) > triples && len(tails) < n {
		s.remarks = append(s.remarks, fmt.Sprintf("%d triples have %d relations and %d tails, so the third column looks like the relation: "+
			"if it is, say {columns} head,tail,relation", triples, n, len(tails)))
	}
	words, err := s.followedWords()
	if err != nil {
		return nil, err
	}
	for i, r := range s.relations {
		schema.Relations = append(schema.Relations, ingest.Relation{Src: entity, Name: words[i], Dst: entity, Edges: counts[r].triples, Parted: s.parted})
	}
	if len(s.relations) == 0 {
		return nil, fmt.Errorf("%s: no triple in it", s.path)
	}
	switch {
	case literals > 0 && s.o.Literals == LiteralsDrop:
		schema.Skipped = append(schema.Skipped, fmt.Sprintf("%d triples that end in a literal: {literals} drop leaves them out", literals))
	case literals > 0:
		s.remarks = append(s.remarks, fmt.Sprintf("%d triples end in a literal, and literals are nodes; {literals} drop leaves them out", literals))
	}
	paths := []string{}
	for _, f := range s.files {
		paths = append(paths, f.path)
	}
	if s.entities != nil {
		paths = append(paths, s.entities.path, s.dictionaries.relations.path)
	}
	if known != nil {
		if s.labels, err = s.readLabels(ctx, known); err != nil {
			return nil, err
		}
		s.names, schema.NoLabels = known.names, ""
		// R-GCN does this to RDF: a triple's subject says as much of its object (Schlichtkrull et
		// al. 2018, section 2.1).
		schema.BackWanted = true
		schema.NodeTypes[0] = ingest.NodeType{Name: entity, Count: int64(len(s.names)), IDs: ingest.TextIDs}
		schema.Labels = []ingest.Label{{Name: s.labels.name, NodeType: entity, Classes: len(s.labels.classes), ClassNames: s.labels.classes}}
		schema.Splits = []ingest.Split{{Name: "given", NodeType: entity}}
		for _, table := range s.tables {
			if table != "" {
				paths = append(paths, table)
			}
		}
	}
	if schema.Identity, err = ingest.Files(paths...); err != nil {
		return nil, err
	}
	schema.Identity += string(s.o.Literals) + strings.Join(s.o.Columns, ",") + string(s.o.Header+Header(s.o.Unseen))
	return schema, nil
}

// followedWords returns safe names of the relations. If there is a dataset to follow, they are its
// names for the same relations of its source.
func (s *Source) followedWords() (words []string, err error) {
	if s.o.Like == nil || s.o.Like.Silent {
		return s.words(), nil
	}
	byName, all := map[string]string{}, []string{}
	for _, r := range s.o.Like.Between(entity, entity) {
		byName[r.Text], all = r.Name, append(all, r.Text)
	}
	for _, text := range s.relations {
		word, ok := byName[text]
		if !ok {
			return nil, s.o.Like.Errorf("%s: relation %q is not there; there are %s; leave its triples out",
				s.path, lines.Clip([]byte(text)), lines.List(all))
		}
		words = append(words, word)
	}
	return words, nil
}

// words are safe names of the relations, no two equal.
func (s *Source) words() []string {
	taken := map[string]bool{}
	var words, same []string
	for _, r := range s.relations {
		plain := store.CleanWord(lastPart(r))
		word := plain
		for n := 2; taken[word]; n++ {
			number := fmt.Sprintf("_%d", n)
			if word = plain + number; len(word) > 100 { // as long as a name may be
				word = store.CleanWord(plain[:100-len(number)]) + number
			}
		}
		if word != plain {
			same = append(same, r)
		}
		taken[word] = true
		words = append(words, word)
	}
	if len(same) > 0 {
		s.remarks = append(s.remarks, fmt.Sprintf("%d relations have the name of another and a number behind it, the first of them %s", len(same), same[0]))
	}
	return words
}

// each visits all triples, file by file, and remarks on headers that are left out.
func (s *Source) each(ctx context.Context, visit func(file int, t *triple) error) error {
	for i := range s.files {
		f := &s.files[i]
		left := func(header string) {
			s.remarks = append(s.remarks, fmt.Sprintf(
				"%s: line 1, %q, names columns and is left out; {header} no reads it as a triple", f.path, header))
		}
		graphs, err := s.eachIn(ctx, i, left, func(t *triple) error { return visit(i, t) })
		if err != nil {
			return err
		}
		if graphs > 0 {
			s.remarks = append(s.remarks, fmt.Sprintf("%s: %d statements name a graph, and the names are left out", f.path, graphs))
		}
	}
	return nil
}

// eachIn visits the triples of a file, and counts those with the name of a graph. left is called
// with a header that is left out.
func (s *Source) eachIn(
	ctx context.Context, number int, left func(string), visit func(t *triple) error,
) (graphs int64, err error) {
	f, n := &s.files[number], 0
	checked := func(t *triple) error {
		if n%checkEvery == 0 && ctx.Err() != nil {
			return fmt.Errorf("%s: %w", f.path, ctx.Err())
		}
		n++
		return visit(t)
	}
	if f.form == turtles {
		in, err := lines.OpenDecoded(f.path, s.encoding)
		if err != nil {
			return 0, err
		}
		defer in.Close()
		return 0, newTurtle(f.path, in, fmt.Sprintf("%d.", number)).each(checked)
	}
	in, err := lines.OpenText(f.path, s.encoding)
	if err != nil {
		return 0, err
	}
	defer in.Close()
	p := s.parserOf(in, f)
	p.left = left
	for {
		t, err := p.next()
		if err != nil || t == nil {
			return p.graphs, err
		}
		if err = s.dictionaries.translate(&p, t); err == nil {
			err = checked(t)
		}
		if err != nil {
			return 0, err
		}
	}
}

// Edges streams the triples of one relation, heads as sources and tails as destinations.
func (s *Source) Edges(ctx context.Context, relation int, emit func(ingest.EdgeChunk) error) error {
	name := s.relations[relation]
	held, err := s.keep(ctx, relation)
	if err != nil {
		return err
	}
	out := ingest.Chunks(ctx, emit)
	c := &out.Chunk
	for i := range s.files {
		f := &s.files[i]
		if err := out.In(f.path); err != nil {
			return err
		}
		add := func(head, tail []byte) error {
			c.SrcTexts.Append(head)
			c.DstTexts.Append(tail)
			if s.parted {
				c.Parts = append(c.Parts, f.part)
			}
			return out.Added()
		}
		if held {
			err = s.kept.each(name, i, add)
		} else {
			_, err = s.eachIn(ctx, i, nil, func(t *triple) error {
				if string(t.relation) != name || s.leaves(t, f.part) {
					return nil
				}
				return add(t.head, t.tail)
			})
		}
		if err != nil {
			return err
		}
	}
	return out.Flush()
}

// leaves reports whether a triple is left out: for its literal, or for an entity that training
// triples lack.
func (s *Source) leaves(t *triple, part ingest.Part) bool {
	return t.literal && s.o.Literals == LiteralsDrop || part != ingest.Train && s.o.Unseen == UnseenDrop &&
		(s.newcomers.names[string(t.head)] || s.newcomers.names[string(t.tail)])
}

// NodeIDs streams the entities, in the order in which triples name them first.
func (s *Source) NodeIDs(ctx context.Context, _ int, emit func(ingest.IDChunk) error) error {
	out := ingest.Chunks(ctx, emit)
	out.Chunk.File = s.path
	for _, name := range s.names {
		out.Chunk.Texts.Append([]byte(name))
		if err := out.Added(); err != nil {
			return err
		}
	}
	return out.Flush()
}

// Rows has nothing to give.
func (s *Source) Rows(context.Context, int, func(ingest.RowChunk) error) error { return nil }

// entities are the nodes by their texts.
type entities struct {
	rows  map[string]uint32
	names []string
	room  int64 // bytes that more may take
}

// add makes sure that there is an entity of this name.
func (e *entities) add(name []byte) error {
	if _, ok := e.rows[string(name)]; ok {
		return nil
	}
	const each = 64 // of the map and the headers, about
	if e.room -= int64(len(name)) + each; e.room < 0 {
		return errors.New("there are too many entities to find labels for: their texts take more than a quarter of {memory}; give it more")
	}
	text := strings.Clone(string(name))
	e.rows[text] = uint32(len(e.names))
	e.names = append(e.names, text)
	return nil
}
