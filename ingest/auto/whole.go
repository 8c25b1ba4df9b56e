package auto

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/gnnstore/gnnstore/ingest/edgelist"
	"github.com/gnnstore/gnnstore/ingest/lines"
	"github.com/gnnstore/gnnstore/ingest/table"
)

// whole lists the files that a format has when none is missing.
type whole struct {
	format, say string
	names       []string
	enough      int // so many of the names, from the first on, tell the format
	least       int // so many of these must be there to tell it
}

var wholes = []whole{
	{"hgb", "a graph of the Heterogeneous Graph Benchmark", []string{"node.dat", "link.dat", "label.dat"}, 2, 1},
	{"planetoid", "a citation graph", []string{
		"ind.*.graph", "ind.*.allx", "ind.*.ally", "ind.*.test.index", "ind.*.x", "ind.*.tx", "ind.*.y", "ind.*.ty"}, 4, 1},
	{"graphsaint", "a GraphSAINT folder", []string{"adj_full.npz", "role.json", "feats.npy", "class_map.json"}, 2, 1},
	{"triples", "a knowledge graph", []string{"train.txt", "valid.txt", "test.txt"}, 3, 2},
	{"mag240m", "MAG240M", []string{"processed/paper", "meta.pt"}, 1, 1},
	{"tgb", "a temporal graph of TGB", []string{"*_val_ns*.pkl", "*_test_ns*.pkl", "*_edgelist*.csv"}, 2, 1},
}

// state returns the first name that is there, the missing ones, and whether the names that are
// there tell the format.
func (w *whole) state(path string) (first string, missing []string, sure bool) {
	there := 0
	for i, name := range w.names {
		f := finding{names: []string{name}}
		found, ok := f.match(path)
		switch {
		case !ok:
			missing = append(missing, name)
			continue
		case first == "":
			first = found
		}
		if i < w.enough {
			there++
		}
	}
	return first, missing, there >= w.least
}

// without names the files that a folder of a format lacks.
func without(path, format string) string {
	for i := range wholes {
		if wholes[i].format != format {
			continue
		}
		if _, missing, _ := wholes[i].state(path); len(missing) > 0 && len(missing) < len(wholes[i].names) {
			return ", without " + strings.Join(missing, ", ")
		}
	}
	return ""
}

// incomplete refuses a folder that lacks some files of the one format that others tell.
func incomplete(path string) error {
	for i := range wholes {
		w := &wholes[i]
		if first, missing, sure := w.state(path); sure && len(missing) > 0 {
			return fmt.Errorf("%s: %s: %s has %s as well, and it is not there; fetch it again", path, first, w.say, strings.Join(missing, ", "))
		}
	}
	return nil
}

// properties refuses a folder of tables of a property graph, or of GraphStorm, and names the way
// that reads it.
func properties(path string, names []string) error {
	if table.GraphStorm(path) {
		return fmt.Errorf("%s: %s", path, schemaWay("a graph as GraphStorm constructs it, by its configuration", path))
	}
	tables := ofKind(names, ".csv", ".csv.gz", ".tsv")
	for _, n := range tables[:min(maxInside, len(tables))] {
		if system := propertySystem(filepath.Join(path, n)); system != "" {
			return fmt.Errorf("%s: %s: %s", path, n, propertyWay(system, path))
		}
	}
	return nil
}

// propertySystem is the system whose header a table has; "" without one.
func propertySystem(path string) string {
	in, err := lines.Open(path)
	if err != nil {
		return ""
	}
	defer in.Close()
	line, err := in.Next()
	if err != nil {
		return ""
	}
	return table.PropertyGraph(edgelist.Cells(strings.TrimPrefix(string(line), "\ufeff")))
}

func propertyWay(system, dir string) string {
	return schemaWay("a property graph by its header, of "+system, dir)
}

// schemaWay names the commands that read a folder by a schema.
func schemaWay(what, dir string) string {
	schema := filepath.Join(dir, "schema.yaml")
	return fmt.Sprintf("%s; gnnstore ingest table {infer} %s > %s writes a schema of its types, and gnnstore ingest table %s OUT reads the graph",
		what, dir, schema, schema)
}
