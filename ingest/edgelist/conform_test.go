package edgelist

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/sourcetest"
)

func TestConform(t *testing.T) {
	input := func(f files, o Options) func() (ingest.Source, error) {
		dir := f.write(t)
		for _, path := range []*string{&o.Nodes, &o.Features} {
			if *path != "" {
				*path = filepath.Join(dir, *path)
			}
		}
		return func() (ingest.Source, error) { return Open(filepath.Join(dir, "edges.csv"), o) }
	}
	const many, dim = ingest.ChunkRows + 9, 30 // edges of the plain list, and persons; the others are fewer
	const n = ingest.ChunkBytes/4/dim + 9      // rows of features
	plain, edges, names := &strings.Builder{}, &strings.Builder{}, &strings.Builder{}
	nodes, persons, features := &strings.Builder{}, &strings.Builder{}, &strings.Builder{}
	edges.WriteString("src,dst,weight\n")
	names.WriteString("src,dst\n")
	nodes.WriteString("id,label" + strings.Repeat(",x", dim) + "\n")
	persons.WriteString("id,label\n")
	for i := range n {
		fmt.Fprintf(edges, "%d,%d,%d\n", 10*i, 10*(i*7%n), i)
		fmt.Fprintf(names, "p%d,p%d\n", i, i*7%n)
		if i%5 == 0 {
			fmt.Fprintf(nodes, "%d,%d%s\n", 10*i, i%3, strings.Repeat(",", dim))
		} else {
			fmt.Fprintf(nodes, "%d,%d%s,%d\n", 10*i, i%3, strings.Repeat(",1", dim-1), i)
			fmt.Fprintf(features, `, "%d": [%d, %d]`, 10*i, i%7, dim-1)
		}
	}
	for i := range many {
		fmt.Fprintf(plain, "%d %d\n", 3*i, i*7%many*3)
		fmt.Fprintf(persons, "p%d,%s\n", i, []string{"red", "blue", ""}[i%3])
	}
	f := files{
		"edges.csv": edges.String() + "1,2,bad\n", "n.csv": nodes.String(), "f.json": "{" + strings.TrimPrefix(features.String(), ", ") + "}",
	}
	sourcetest.Conform(t, input(f, Options{Weight: "weight", Nodes: "n.csv", Missing: "zeros", SkipBad: 1}),
		input(f, Options{Weight: "weight", Nodes: "n.csv", Label: "label:value", Missing: "zeros", SkipBad: 1}),
		input(f, Options{Weight: "weight", Features: "f.json", Missing: "zeros", SkipBad: 1}),
		input(files{"edges.csv": edges.String()}, Options{EdgeColumns: []string{"w=weight"}}),
		input(f, Options{EdgeFeatures: []string{"weight"}, SkipBad: 1}),
		input(files{"edges.csv": edges.String(), "n.csv": nodes.String()}, Options{EdgeFeatures: []string{"3-3"}, EdgeColumns: []string{"weight"}, Nodes: "n.csv", Missing: "zeros"}),
		input(files{"edges.csv": edges.String()}, Options{Events: true, Time: "weight", EdgeFeatures: []string{"weight"}, IDType: "int"}),
		input(files{"edges.csv": "src,dst,time,kind\n1,2,3,a\n2,1,4,b\n"}, Options{Events: true, Types: "kind"}),
		input(files{"edges.csv": plain.String()}, Options{}),
		input(files{"edges.csv": names.String(), "n.csv": persons.String()}, Options{Nodes: "n.csv"}),
		input(withColumns("l", "a|b", "b", "", "a"), Options{Nodes: "n.csv", Label: "l", MultiLabel: true}),
		input(withColumns("a,b", "1,0", "0,1", ",", "0,1"), Options{Nodes: "n.csv", Label: "a,b"}),
		input(files{"edges.csv": names.String()}, Options{}))
}
