package store_test

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"

	"github.com/x448/float16"

	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
)

// This program opens a dataset and reads the neighbours and the feature row of a node. Both are
// borrowed from the dataset: copy what is needed after Close.
func Example() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "ring.gnn")
	if err := writeRing(path); err != nil {
		panic(err)
	}

	ds, err := store.Open(path)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer ds.Close()
	for _, r := range ds.Manifest().Relations {
		fmt.Printf("%s: %d edges\n", r.Key(), r.Edges)
	}

	// Mapped memory is read inside Guard: a file that was truncated becomes an error there.
	err = store.Guard(func() error {
		const v = 3
		fmt.Println("in-neighbours:", ds.Graph(0).Neighbors(v))
		row := ds.Features(0).Row(v) // float16, little endian
		for at := 0; at < len(row); at += 2 {
			fmt.Printf("%g ", float16.Frombits(binary.LittleEndian.Uint16(row[at:])).Float32())
		}
		fmt.Println()
		return nil
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// node__to__node: 5 edges
	// in-neighbours: [2]
	// 3 0.5
}

// writeRing makes a dataset of five nodes. Each has an edge from the node before it.
func writeRing(path string) error {
	w, err := store.Create(path, store.WriterOptions{})
	if err != nil {
		return err
	}
	neighbors := [][]store.NodeID{{4}, {0}, {1}, {2}, {3}}
	row := func(v int) []float32 { return []float32{float32(v), 0.5} }
	_, err = storetest.Write(w, storetest.Spec{Nodes: 5, Neighbors: neighbors, Dim: 2, Row: row})
	return err
}
