package build_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/gnnstore/gnnstore/ingest/build"
	"github.com/gnnstore/gnnstore/ingest/npz"
	"github.com/gnnstore/gnnstore/ingest/sampledata"
)

func ExampleBuild() {
	dir, err := os.MkdirTemp("", "ingest")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)

	raw := sampledata.AmazonComputers()
	src, err := npz.OpenReader("computers.npz", bytes.NewReader(raw), int64(len(raw)))
	if err != nil {
		panic(err)
	}
	defer src.Close()
	report, err := build.Build(context.Background(), src, filepath.Join(dir, "computers.gnn"), build.Options{
		Undirected: true,
		Split:      "per-class:20/30",
	})
	if err != nil {
		panic(err)
	}
	r, s := report.Relations[0], report.Splits[0]
	fmt.Printf("%d edges: %d read, %d reverses added\n", r.Edges, r.EdgesRead, r.ReverseAdded)
	fmt.Printf("split %s: %d train, %d valid, %d test\n", s.Name, s.Train, s.Valid, s.Test)
	// Output:
	// 491722 edges: 287209 read, 204513 reverses added
	// split per-class: 200 train, 300 valid, 13252 test
}
