package temporal_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
	"github.com/gnnstore/gnnstore/train/temporal"
)

func ExampleSampler_Draw() {
	// Users 0 and 1 take items 0, 1, 0 and 0. Items are at the places behind users: 2 and 3.
	events, remove := exampleStream(storetest.StreamSpec{
		Users: 2, Items: 2, Src: []uint32{0, 0, 1, 0}, Dst: []uint32{0, 1, 0, 0}, Times: []float64{10, 11, 11, 15},
	})
	defer remove()
	ctx := context.Background()
	s, err := temporal.NewSampler(ctx, events, temporal.SamplerOptions{Fanout: 2})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()

	// The first two events bring state up to date, the others are to be learnt.
	var warm, learnt temporal.Batch
	err = s.Draw(ctx, []temporal.Step{{From: 0, To: 2, StateOnly: true}, {From: 2, To: 4}}, []*temporal.Batch{&warm, &learnt})
	fmt.Println("state of", warm.Nodes, "changes,", len(warm.Writes), "rows are written;", err)
	for i, root := range learnt.Dst {
		row := learnt.Roots[root]
		fmt.Printf("event %d: the item at place %d, at %v, had", int(learnt.From)+i, learnt.Nodes[learnt.RowNode[row]], learnt.RowTime[row])
		for j := learnt.NearStart[root]; j < learnt.NearEnd[root]; j++ {
			fmt.Printf(" user %d by event %d, %v before", learnt.Nodes[learnt.RowNode[learnt.NearRow[j]]], learnt.Events[learnt.NearEvent[j]], learnt.Since[j])
		}
		fmt.Println()
	}
	// Output:
	// state of [0 2 3] changes, 3 rows are written; <nil>
	// event 2: the item at place 2, at 1, had user 0 by event 0, 1 before
	// event 3: the item at place 2, at 5, had user 1 by event 2, 4 before user 0 by event 0, 5 before
}

func exampleStream(spec storetest.StreamSpec) (e *store.Events, remove func()) {
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
	check(storetest.WriteStream(w, spec))
	d, err := store.Open(path)
	check(err)
	return d.Events(0), func() {
		check(d.Close())
		check(os.RemoveAll(dir))
	}
}
