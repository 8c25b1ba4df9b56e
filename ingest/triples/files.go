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
	nt   bool
	ids  bool // its triples consist of ids, whose names are in a dictionary
	// counted: the file is OpenKE's. Its first line is the number of triples, and its columns are
	// head, tail and relation.
	counted bool
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
	{stems: [3][]string{{"train"}, {"valid", "validation", "dev"}, {"test"}}, kinds: []string{".txt", ".tsv", ".nt"}},
	// OpenKE, LibKGE, PyKEEN
	{[3][]string{{"train2id"}, {"valid2id"}, {"test2id"}}, []string{".txt"}, true, true},
	{[3][]string{{"train"}, {"valid", "validation"}, {"test"}}, []string{".del"}, true, false},
	{[3][]string{{"numeric_triples"}}, []string{".tsv"}, true, false},
}

// findFiles finds the triples of a file or folder, and whether some of them are held out. A part
// may be an empty file, whose name is among empty.
func findFiles(path string) (files []file, parted bool, empty []string, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, false, nil, err
	}
	if !info.IsDir() {
		_, kind := kindOf(path)
		return []file{{path: path, nt: kind == ".nt"}}, false, nil, lines.RefusePointer(path)
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
				empty = append(empty, name)
				continue
			}
			held = held || ingest.Part(p) != ingest.Train
			files = append(files, file{filepath.Join(path, name), ingest.Part(p), kind == ".nt", ways[way].ids, ways[way].counted})
		}
	}
	if len(files) > 0 && !there[ingest.Train] {
		return nil, false, nil, fmt.Errorf("%s: there is %s, and no train.txt beside it", path, filepath.Base(files[0].path))
	}
	if len(files) == 0 {
		for _, name := range names {
			if _, kind := kindOf(name); kind == ".nt" {
				files = append(files, file{path: filepath.Join(path, name), nt: true})
			}
		}
	}
	if len(files) == 0 {
		return nil, false, nil, fmt.Errorf("%s: no train.txt, train.tsv or .nt file in it; name the file of triples", path)
	}
	var errs []error
	for _, f := range files {
		errs = append(errs, lines.RefusePointer(f.path))
	}
	return files, held, empty, errors.Join(errs...)
}
