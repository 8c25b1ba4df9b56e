package generate_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/gnnstore/gnnstore/ingest/build"
	"github.com/gnnstore/gnnstore/ingest/generate"
)

// A ten-thousandth of ogbn-papers100M, from nothing to a sealed dataset.
func Example() {
	dir, err := os.MkdirTemp("", "generate")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	source, err := generate.Open("papers100m", generate.Options{Scale: 0.0001})
	if err != nil {
		log.Fatal(err)
	}
	defer source.Close()
	report, err := build.Build(context.Background(), source, filepath.Join(dir, "papers.gnn"), build.Options{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(report.NodeTypes[0].Count, "nodes,", report.Relations[0].Edges, "edges,", report.Labels[0].Classes, "classes")
	// Output: 11106 nodes, 161569 edges, 172 classes
}
