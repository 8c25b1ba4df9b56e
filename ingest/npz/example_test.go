package npz_test

import (
	"bytes"
	"context"
	"fmt"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/npz"
	"github.com/gnnstore/gnnstore/ingest/sampledata"
)

func ExampleOpenReader() {
	file := sampledata.AmazonComputers()
	src, err := npz.OpenReader("amazon_computers.npz", bytes.NewReader(file), int64(len(file)))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer src.Close()
	schema, err := src.Schema(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(schema.Name, schema.NodeTypes[0].Count, "nodes", schema.Relations[0].Edges, "edges")
	fmt.Println(schema.Tables[0].Dim, "features", schema.Labels[0].Classes, "classes")
	err = src.Edges(context.Background(), 0, func(c ingest.EdgeChunk) error {
		if c.First == 0 {
			fmt.Println("first edge", c.Src[0], "→", c.Dst[0])
		}
		return nil
	})
	fmt.Println(err)
	// Output:
	// amazon_computers 13752 nodes 287209 edges
	// 767 features 10 classes
	// first edge 0 → 6551
	// <nil>
}
