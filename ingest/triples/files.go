package triples

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/lines"
)

// file is a file of triples.
type file struct {
	path string
	part ingest.Part
	form form
	ids  bool // its triples consist of ids, whose names are in a dictionary
	// counted: the file is OpenKE's. Its first line is the number of triples, and its columns are
	// head, tail and relation.
	counted bool
}

// form is the syntax of a file of triples.
type form int

const (
	columns  form = iota
	nTriples      // a statement a line
	nQuads        // the same, perhaps with the name of a graph
	turtles       // Turtle
)

// rdfForms has the forms of RDF by the ends of files, in order of preference: a folder may have one
// graph in several.
var rdfForms = []struct {
	kind string
	form form
	name string
}{{".nt", nTriples, "N-Triples"}, {".nq", nQuads, "N-Quads"}, {".ttl", turtles, "Turtle"}}

// converters has, for other forms of RDF by the ends of files, a line that converts them.
var converters = map[string]string{
	".trig": "rapper -i trig -o nquads FILE > graph.nq",
	".rdf":  "rapper -i rdfxml -o ntriples FILE > graph.nt",
	".owl":  "rapper -i rdfxml -o ntriples FILE > graph.nt",
	".n3":   "rapper -i turtle -o ntriples FILE > graph.nt",
	".jsonld": "python3 -c \"import rdflib; " +
		"rdflib.Dataset().parse('FILE', format='json-ld').serialize('graph.nq', format='nquads')\"",
}

// formOf returns the form of a file by the end of its name.
func formOf(kind string) form {
	for _, r := range rdfForms {
		if r.kind == kind {
			return r.form
		}
	}
	return columns
}

// kindOf returns a name's stem and extension, without the extension of its compression.
func kindOf(name string) (stem, kind string) {
	name = strings.TrimSuffix(strings.TrimSuffix(name, ".gz"), ".zst")
	kind = filepath.Ext(name)
	return strings.TrimSuffix(name, kind), kind
}

// ways lists the names that the files of a split may have, in order of preference.
var ways = []struct {
	stems   [3][]string // by part
	kinds   []string
	ids     bool
	counted bool
}{
	{stems: [3][]string{{"train"}, {"valid", "validation", "dev"}, {"test"}}, kinds: []string{".txt", ".tsv", ".nt", ".nq", ".ttl"}},
	// OpenKE, LibKGE, PyKEEN
	{[3][]string{{"train2id"}, {"valid2id"}, {"test2id"}}, []string{".txt"}, true, true},
	{[3][]string{{"train"}, {"valid", "validation"}, {"test"}}, []string{".del"}, true, false},
	{[3][]string{{"numeric_triples"}}, []string{".tsv"}, true, false},
}

// findFiles finds the triples of a file or folder, and whether some of them are held out. notes
// are remarks on files that are not read.
func findFiles(path string) (files []file, parted bool, notes []string, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, false, nil, err
	}
	if !info.IsDir() {
		_, kind := kindOf(path)
		if line, ok := converters[kind]; ok {
			return nil, false, nil, fmt.Errorf("%s: this form of RDF is not read; convert it: %s", path, line)
		}
		return []file{{path: path, form: formOf(kind)}}, false, nil, lines.RefusePointer(path)
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, false, nil, err
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	slices.SortFunc(names, lines.Natural)
	var there [3]bool
	held := false
	way := 0
	for i, w := range slices.Backward(ways) {
		if slices.ContainsFunc(names, func(name string) bool {
			stem, kind := kindOf(name)
			return slices.Contains(w.stems[ingest.Train], stem) && slices.Contains(w.kinds, kind)
		}) {
			way = i
		}
	}
	for p, all := range ways[way].stems {
		before := ""
		for _, name := range names {
			stem, kind := kindOf(name)
			if !slices.Contains(all, stem) || !slices.Contains(ways[way].kinds, kind) {
				continue
			}
			if there[p] {
				return nil, false, nil, fmt.Errorf("%s: two files of %v triples, %s and %s; leave one", path, ingest.Part(p), before, name)
			}
			there[p], before = true, name
			if info, err := os.Stat(filepath.Join(path, name)); err == nil && info.Size() == 0 && ingest.Part(p) != ingest.Train {
				notes = append(notes, name+" is empty: no triple is held out by it")
				continue
			}
			held = held || ingest.Part(p) != ingest.Train
			files = append(files, file{
				filepath.Join(path, name), ingest.Part(p), formOf(kind), ways[way].ids, ways[way].counted,
			})
		}
	}
	if len(files) > 0 && !there[ingest.Train] {
		return nil, false, nil, fmt.Errorf("%s: there is %s, and no train.txt beside it", path, filepath.Base(files[0].path))
	}
	if len(files) == 0 {
		files, notes = findRDF(path, names)
	}
	if len(files) == 0 {
		return nil, false, nil, fmt.Errorf("%s: no train.txt, train.tsv, .nt, .nq or .ttl file in it; name the file of triples",
			path)
	}
	var errs []error
	for _, f := range files {
		errs = append(errs, lines.RefusePointer(f.path))
	}
	return files, held, notes, errors.Join(errs...)
}

// findRDF returns the files of the first form of RDF that a folder has. notes are about files of
// the other forms, which may have the same triples.
func findRDF(path string, names []string) (files []file, notes []string) {
	for _, r := range rdfForms {
		for _, name := range names {
			switch _, kind := kindOf(name); {
			case kind != r.kind:
			case len(files) > 0 && files[0].form != r.form:
				notes = append(notes, fmt.Sprintf("%s is not read beside %s: name it, or move it to a folder of its own, "+
					"if it has other triples", name, filepath.Base(files[0].path)))
			default:
				files = append(files, file{path: filepath.Join(path, name), form: r.form})
			}
		}
	}
	return files, notes
}
