package train_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
	"github.com/gnnstore/gnnstore/train"
	"github.com/gnnstore/gnnstore/train/graph"
	"github.com/gnnstore/gnnstore/train/run"
)

// This program trains a network, follows its epochs by a hook, and predicts the class of a node
// with it. Weights depend on the data, the options and the seed alone.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	ds, err := communities(filepath.Join(dir, "graph.gnn"))
	if err != nil {
		panic(err)
	}
	defer ds.Close()

	o := run.DefaultOptions()
	o.LR = 0.01
	o.Fanouts, o.Hidden, o.Batch, o.Epochs = []int{5, 5}, 16, 100, 20
	best := 0.0
	hooks := run.Hooks{Epoch: func(e run.Epoch) { best = max(best, *e.ValidAcc) }}
	path := filepath.Join(dir, "run")
	r, err := train.Run(ctx, ds, func() (*run.Dir, error) { return run.Create(path) }, o, "example", hooks)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(r.Status, len(r.Epochs), "epochs; validation above 90 %:", best > 0.9)

	d, err := run.Look(path)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer d.Close()
	n, err := train.Open(ctx, ds, d, graph.NetworkOptions{Predicts: true}, run.Hooks{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer n.Close()
	layer, err := n.Graph.Layer(graph.Classes, graph.DefaultLayer)
	if err != nil {
		fmt.Println(err)
		return
	}
	err = n.Graph.Predict(ctx, graph.Classes, layer, 0, []uint32{7}, func(nodes []uint32, rows []float32) error {
		for i, v := range nodes {
			fmt.Printf("node %d has class %g\n", v, rows[i])
		}
		return nil
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// done 20 epochs; validation above 90 %: true
	// node 7 has class 3
}

// communities makes a dataset of 400 nodes in four communities, which are the classes.
func communities(path string) (*store.Dataset, error) {
	w, err := store.Create(path, store.WriterOptions{})
	if err != nil {
		return nil, err
	}
	if _, err := storetest.Write(w, storetest.Communities(400, 4, 6, 8, 1)); err != nil {
		return nil, err
	}
	return store.Open(path)
}
