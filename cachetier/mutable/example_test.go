package mutable_test

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/gnnstore/gnnstore/cachetier/mutable"
)

// Two steps count how often they have met a row. Then the run is closed, and resumes from its
// checkpoint.
func Example() {
	ctx := context.Background()
	o := mutable.Options{
		Place: mutable.Place{FS: vfs.NewMem(), Dir: "run/counts", Run: "example"}, Rows: 1000, RowBytes: 4,
		Initial: func(dst []byte, row uint32) { binary.LittleEndian.PutUint32(dst, 100*row) },
	}
	table, err := mutable.Open(ctx, o)
	if err == nil {
		err = table.Begin(ctx)
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	table.Expect([][]uint32{{7, 3}, {3, 9}})
	for {
		w, err := table.Next(ctx, table.Fit())
		if w == nil || err != nil || w.Load(ctx) != nil {
			break
		}
		for i := range w.Steps() {
			rows := make([]byte, 2*4)
			_ = w.Gather(ctx, i, rows)
			for b := rows; len(b) > 0; b = b[4:] {
				binary.LittleEndian.PutUint32(b, binary.LittleEndian.Uint32(b)+1)
			}
			_ = table.WriteAll(rows)
			table.Passed()
		}
		w.Release()
	}
	mark, err := table.Checkpoint(2)
	fmt.Println(mark.Generations, err)
	table.Close()

	table, _ = mutable.Open(ctx, o)
	defer table.Close()
	fmt.Println(table.Resume(ctx, mark))
	_ = table.Each(ctx, func(row uint32, b []byte) error {
		fmt.Println(row, binary.LittleEndian.Uint32(b))
		return nil
	})
	// Output:
	// [gen-000000000002] <nil>
	// <nil>
	// 3 302
	// 7 701
	// 9 901
}
