package torch_test

import (
	"fmt"
	"log"

	"github.com/gnnstore/gnnstore/ingest/torch"
)

func Example() {
	f, err := torch.Open("testdata/data.pt", 0) // torch.save of a Data of PyTorch Geometric
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	edges := torch.Fields(f.Value()).Get("edge_index").(*torch.Tensor)
	ids := make([]int64, edges.Len())
	if _, err := edges.Reader().ReadInt64s(ids); err != nil {
		log.Fatal(err)
	}
	fmt.Println(edges, ids)
	// Output: (2, 4) of int64 [0 1 2 3 1 2 3 0]
}
