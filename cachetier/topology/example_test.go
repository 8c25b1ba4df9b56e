package topology_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/gnnstore/gnnstore/cachetier/topology"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
)

func ExampleTier_Read() {
	g, remove := exampleGraph([][]uint32{{1, 2}, {0, 3}, {}, {0}, {1, 2, 3}})
	defer remove()
	ctx := context.Background()

	// All degrees, and four neighbours: the lists of nodes 0, 1 and 2.
	tier, err := topology.Open(ctx, g, topology.Options{Bytes: topology.LeastBytes(g) + 4*4})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer tier.Close()
	fmt.Println(tier.Resident(), "lists are resident; 1 has", tier.Neighbors(1))

	cold, total := []uint32{3, 4}, 0
	var mu sync.Mutex
	err = tier.Read(ctx, cold, func(i, from int, part []uint32) error { // called by several goroutines
		mu.Lock()
		defer mu.Unlock()
		total += len(part)
		return nil
	})
	fmt.Println(total, "neighbours read,", tier.Degree(3)+tier.Degree(4), "expected;", err)
	// Output:
	// 3 lists are resident; 1 has [0 3]
	// 4 neighbours read, 4 expected; <nil>
}

func exampleGraph(lists [][]uint32) (g *store.Graph, remove func()) {
	check := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	dir, err := os.MkdirTemp("", "example")
	check(err)
	path := filepath.Join(dir, "example.gnn")
	w, err := store.Create(path, store.WriterOptions{})
	check(err)
	_, err = storetest.Write(w, storetest.Spec{Nodes: len(lists), Neighbors: lists})
	check(err)
	d, err := store.Open(path)
	check(err)
	return d.Graph(0), func() {
		check(d.Close())
		check(os.RemoveAll(dir))
	}
}
