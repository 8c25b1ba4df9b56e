package arrays_test

import (
	"context"
	"fmt"
	"log"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/arrays"
)

func ExampleOpen() {
	ctx := context.Background()
	src, err := arrays.Open("../torch/testdata/data.pt", arrays.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer src.Close()
	schema, err := src.Schema(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(schema.NodeTypes[0].Count, "nodes,", schema.Relations[0].Edges, "edges,", schema.Tables[0].Dim, "features")
	err = src.Edges(ctx, 0, func(c ingest.EdgeChunk) error {
		fmt.Println(c.Src, c.Dst)
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// 4 nodes, 4 edges, 2 features
	// [0 1 2 3] [1 2 3 0]
}
