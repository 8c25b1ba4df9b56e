// Package auto recognises the format of a raw graph by the names of its files and their first
// bytes, and gives its reason. Start at [Recognise].
//
// It looks at names in two levels of folders and at the first 4 KiB, of an archive also the last
// 64, of a few files, so that it costs the same for a graph of any size. It opens nothing as its
// reader would: the reader may still refuse what auto recognises, in more detail.
package auto

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const (
	maxEntries = 4096 // of a folder
	maxInside  = 16   // things inside a folder that are looked at in turn
)

// formats lists the formats that can be recognised, by the names that ingest has for them.
const formats = "csv, graphbolt, graphml, graphsaint, hgb, mag240m, mtx, nodelink, npy, npz, ogb, planetoid, pt, table, tgb, tgl, tgn, triples"

// Recognise returns the format of the file or folder at path, and the reason: "raw/edge.csv.gz: an
// OGB folder". at is path, or the one thing inside that folder that has a format. If it finds none,
// the error lists the things it saw, and names a remedy.
func Recognise(path string) (at, format, why string, err error) {
	format, why, err = recognise(path)
	at = path
	if only := (*only)(nil); errors.As(err, &only) {
		return filepath.Join(path, only.name), only.format, only.why, nil
	}
	return at, format, why, err
}

// only is the one thing in a folder that has a format.
type only struct{ name, format, why string }

func (o *only) Error() string { return o.why }

func recognise(path string) (format, why string, err error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if found, _ := os.Stat(path + ".graph"); found != nil { // a prefix, as planetoid takes it
			return "planetoid", filepath.Base(path) + ".graph: the files of a citation graph", nil
		}
		return "", "", fmt.Errorf("%s: no such file or directory", path)
	case err != nil:
		return "", "", err
	case info.IsDir():
		return folder(path, true)
	case !info.Mode().IsRegular():
		return "", "", fmt.Errorf("%s: neither a file nor a folder", path)
	}
	return file(path)
}

// finding is a format that names in a folder give away.
type finding struct {
	names  []string // all of them there, * standing for anything but a slash; the first is named
	format string   // "" refuses
	say    string
}

// findings are tried in this order.
var findings = []finding{
	{[]string{"metadata.yaml"}, "graphbolt", "a GraphBolt dataset"},
	{[]string{"preprocessed/metadata.yaml"}, "graphbolt", "a preprocessed GraphBolt dataset"},
	{[]string{"meta.pt", "processed/paper"}, "mag240m", "MAG240M as OGB-LSC leaves it"},
	{[]string{"raw/edge.csv.gz"}, "ogb", "an OGB folder"},
	{[]string{"raw/edge.csv"}, "ogb", "an OGB folder whose tables were unpacked"},
	{[]string{"raw/data.npz"}, "ogb", "an OGB folder in its binary layout"},
	{[]string{"raw/triplet-type-list.csv.gz"}, "ogb", "a heterogeneous OGB folder"},
	{[]string{"raw/triplet-type-list.csv"}, "ogb", "a heterogeneous OGB folder whose tables were unpacked"},
	{[]string{"raw/edge_index_dict.npz"}, "ogb", "a heterogeneous OGB folder in its binary layout"},
	{[]string{"node.dat", "link.dat"}, "hgb", "a graph of the Heterogeneous Graph Benchmark"},
	{[]string{"ind.*.graph", "ind.*.allx"}, "planetoid", "the files of a citation graph"},
	{[]string{"adj_full.npz"}, "graphsaint", "a GraphSAINT folder"},
	{[]string{"train.txt", "valid.txt", "test.txt"}, "triples", "the triples of a knowledge graph"},
	{[]string{"train.txt", "test.txt"}, "triples", "the triples of a knowledge graph"},
	{[]string{"train.txt", "valid.txt"}, "triples", "the triples of a knowledge graph"},
	{[]string{"entities.dict", "relations.dict", "train.*"}, "triples", "a knowledge graph with dictionaries, as DGL-KE has it"},
	{[]string{"train2id.txt", "entity2id.txt", "relation2id.txt"}, "triples", "a knowledge graph of OpenKE"},
	{[]string{"train.del", "entity_ids.del"}, "triples", "a knowledge graph of LibKGE"},
	{[]string{"numeric_triples.tsv*", "entity_to_id.tsv*"}, "triples", "a knowledge graph of PyKEEN"},
	{[]string{"*.nt"}, "triples", "RDF as N-Triples"},
	{[]string{"*.nt.gz"}, "triples", "RDF as N-Triples"},
	{[]string{"*.nt.zst"}, "triples", "RDF as N-Triples"},
	{[]string{"edges.csv", "ext_full.npz"}, "tgl", "a temporal graph of TGL"},
	{[]string{"edges.csv", "edge_features.*"}, "tgl", "a temporal graph of TGL"},
	{[]string{"ml_*.csv", "ml_*.npy"}, "tgn", "a temporal graph of TGN"},
	{[]string{"*_edgelist*.csv", "*_val_ns*.pkl"}, "tgb", "a temporal graph of TGB"},

	{[]string{"tkgl-*_edgelist*.csv"}, "tgb", "a temporal knowledge graph of TGB"},
	{[]string{"thgl-*_edgelist*.csv"}, "tgb", "a temporal graph of TGB with types"},
	{[]string{"*.nq"}, "triples", "RDF as N-Quads"},
	{[]string{"*.nq.gz"}, "triples", "RDF as N-Quads"},
	{[]string{"*.nq.zst"}, "triples", "RDF as N-Quads"},
	{[]string{"*.ttl"}, "triples", "RDF as Turtle"},
	{[]string{"*.ttl.gz"}, "triples", "RDF as Turtle"},
	{[]string{"*.ttl.zst"}, "triples", "RDF as Turtle"},

	{[]string{"processed/paper__cites__paper/edge_index.npy"}, "", "an IGB folder, which is not read yet"},
	{[]string{"processed/train_hrt.npy"}, "", "WikiKG90M, which is not read"},
	{[]string{"dataset.yaml", "edges/train_edges.bin"}, "",
		"what Marius preprocessed, which is not read; name the graph that it was made from"},
	{[]string{"metadata.json", "edge_data"}, "", "a chunked graph of DGL, which is not read"},
	{[]string{"tgb*_edgelist*.csv"}, "", "a temporal graph of TGB by its name, without the negatives; if it is, say gnnstore ingest tgb"},
}

// folder looks for what only one format has, and then at the things inside one by one.
func folder(path string, inside bool) (format, why string, err error) {
	names, dirs, err := list(path)
	if err != nil {
		return "", "", err
	}
	if strings.Contains(head(filepath.Join(path, "manifest.json")), `"format": "gnnstore"`) {
		return "", "", fmt.Errorf("%s: manifest.json: it is a dataset already; train, inspect and verify take it as it is", path)
	}
	for _, f := range findings {
		name, ok := f.match(path)
		switch {
		case !ok:
		case f.format == "":
			return "", "", fmt.Errorf("%s: %s: %s", path, name, f.say)
		default:
			return f.format, name + ": " + f.say + without(path, f.format), nil
		}
	}
	if err := incomplete(path); err != nil {
		return "", "", err
	}
	if slices.Contains(names, "meta.yaml") && hasKey(head(filepath.Join(path, "meta.yaml")), "edge_data") {
		return "", "", &only{"meta.yaml", "table", "meta.yaml: a CSVDataset of DGL"}
	}
	if schemas := ofKind(names, ".yaml", ".yml"); len(schemas) > 0 {
		if f, _, _ := file(filepath.Join(path, schemas[0])); f == "table" {
			return "", "", fmt.Errorf("%s: %s describes a graph of tables; name this file", path, schemas[0])
		}
	}
	for _, n := range ofKind(names, ".npy") {
		if strings.HasPrefix(n, "edge") {
			return "npy", n + ": a folder of arrays", nil
		}
	}
	if err := properties(path, names); err != nil {
		return "", "", err
	}
	if f, why, ok := parts(path, names, dirs); ok {
		return f, why, nil
	}
	if !inside {
		return "", "", errNone
	}
	return "", "", within(path, names, dirs)
}

// list returns the names of the files and of the folders in a folder, each ascending.
func list(path string) (names, dirs []string, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	entries, err := f.ReadDir(maxEntries)
	for _, e := range entries {
		switch name := e.Name(); {
		case name[0] == '.' || name[0] == '_':
		case e.IsDir():
			dirs = append(dirs, name)
		default:
			names = append(names, name)
		}
	}
	slices.Sort(names)
	slices.Sort(dirs)
	if len(entries) > 0 {
		err = nil
	}
	if len(entries) == 0 && err != nil {
		err = fmt.Errorf("%s: the folder is empty; name a file or folder of raw data", path)
	}
	return names, dirs, err
}

// match reports whether all names are in a folder, and returns the first.
func (f *finding) match(path string) (string, bool) {
	first := ""
	for _, pattern := range f.names {
		found := pattern
		if dir, base := filepath.Split(pattern); strings.Contains(base, "*") {
			names, _, err := list(filepath.Join(path, dir))
			i := slices.IndexFunc(names, func(n string) bool { ok, _ := filepath.Match(base, n); return ok })
			if err != nil || i < 0 {
				return "", false
			}
			found = dir + names[i]
		} else if _, err := os.Stat(filepath.Join(path, filepath.FromSlash(pattern))); err != nil {
			return "", false
		}
		if first == "" {
			first = found
		}
	}
	return first, true
}

// ofKind are the names that end so.
func ofKind(names []string, ends ...string) []string {
	var some []string
	for _, n := range names {
		if slices.ContainsFunc(ends, func(end string) bool { return strings.HasSuffix(strings.ToLower(n), end) }) {
			some = append(some, n)
		}
	}
	return some
}

// parts recognises a folder that holds nothing but the parts of one edge list: names that differ in
// numbers only.
func parts(path string, names, dirs []string) (format, why string, ok bool) {
	if len(names) < 2 || len(dirs) > 0 {
		return "", "", false
	}
	bare := func(s string) string {
		return strings.Map(func(c rune) rune {
			if '0' <= c && c <= '9' {
				return -1
			}
			return c
		}, s)
	}
	for _, n := range names {
		if bare(n) != bare(names[0]) {
			return "", "", false
		}
	}
	f, _, err := file(filepath.Join(path, names[0]))
	if err != nil || f != "csv" {
		return "", "", false
	}
	return f, fmt.Sprintf("%s and %d more: the parts of an edge list", names[0], len(names)-1), true
}

var errNone = errors.New("no format")

// within returns an error that lists what to name inside a folder that is no graph itself.
func within(path string, names, dirs []string) error {
	var found, others []string
	var last only
	csv := 0
	note := func(name, format, why string, err error) {
		if err != nil {
			others = append(others, name)
			return
		}
		last = only{name, format, why}
		found = append(found, fmt.Sprintf("%s (%s)", name, format))
		if format == "csv" {
			csv++
		}
	}
	for _, d := range dirs[:min(len(dirs), maxInside)] {
		f, why, err := folder(filepath.Join(path, d), false)
		note(d, f, d+": "+why, err)
	}
	for _, n := range names[:min(len(names), maxInside)] {
		if low := strings.ToLower(n); strings.HasPrefix(low, "readme") || strings.HasPrefix(low, "license") || slices.Contains(besideData, n) {
			continue
		}
		f, why, err := file(filepath.Join(path, n))
		note(n, f, why, err)
	}
	if len(found) == 0 && slices.Contains(dirs, processedDir) {
		if name := processed(filepath.Join(path, processedDir)); name != "" {
			name = filepath.Join(processedDir, name)
			return &only{name, "pt", name + ": the graph of a data set of PyTorch Geometric"}
		}
	}
	switch {
	case len(found) == 1 && len(dirs) <= maxInside && len(names) <= maxInside:
		if last.why += "; it is the only graph there"; len(others) > 0 {
			last.why += ", and not read are " + some(others)
		}
		return &last
	case len(found) == 1:
		return fmt.Errorf("%s: name what is inside: %s", path, found[0])
	case len(found) > 1 && csv == len(found):
		return fmt.Errorf("%s: several tables: name the one of the edges among %s, or describe them all: "+
			"gnnstore ingest table {infer} %s writes a first schema", path, some(found), path)
	case len(found) > 1:
		return fmt.Errorf("%s: there are several things inside: name one of %s", path, some(found))
	}
	all := append(slices.Clone(dirs), names...)
	return fmt.Errorf("%s: not one of the formats that are recognised (%s): inside are %s", path, formats, some(all))
}

const processedDir = "processed"

// besideData are the files that a data set of PyTorch Geometric leaves beside its graph.
var besideData = []string{"pre_transform.pt", "pre_filter.pt"}

// processed returns the name of the one file of a graph in the folder that a data set of PyTorch
// Geometric keeps it in; "" where there is none, or another.
func processed(dir string) string {
	names, _, err := list(dir)
	if err != nil {
		return ""
	}
	names = slices.DeleteFunc(ofKind(names, ".pt"), func(n string) bool { return slices.Contains(besideData, n) })
	if len(names) != 1 {
		return ""
	}
	if format, _, err := file(filepath.Join(dir, names[0])); err != nil || format != "pt" {
		return ""
	}
	return names[0]
}

// some names a few.
func some(names []string) string {
	const most = 6
	if len(names) > most {
		return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", len(names)-most)
	}
	return strings.Join(names, ", ")
}
