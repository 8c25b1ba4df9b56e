package cachetier_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
)

func ExampleStack_Next() {
	d, remove := exampleDataset() // 100 nodes, 64 float16 features each
	defer remove()
	ctx := context.Background()

	// Ten rows fit in the device region, and some twenty in the host tier with its bookkeeping.
	s, err := cachetier.Open(ctx, d.Features(0), cachetier.Options{DeviceBytes: 1280, HostBytes: 4 << 10})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()

	// Two groups of steps are known. Each window reads the rows that it needs once, in file order.
	s.Expect([][]uint32{{3, 70, 41, 40}, {40, 72, 4}})
	s.Expect([][]uint32{{3, 70, 71}})
	for {
		w, err := s.Next(ctx, s.Fit())
		if err == nil && w != nil {
			err = w.Load(ctx)
		}
		if err != nil {
			fmt.Println(err)
			return
		}
		if w == nil {
			return
		}
		rows := make([]byte, 4*d.Features(0).RowBytes())
		for i := range w.Steps() {
			if err := w.Gather(ctx, i, rows); err != nil {
				fmt.Println(err)
				return
			}
		}
		w.Release()
		st := s.Stats()
		fmt.Printf("%d rows: device %d, host %d, disk %d\n", st.InputRows, st.Tiers.Device.RowsHit, st.Tiers.Host.RowsHit, st.Disk.Rows)
	}
	// Output:
	// 7 rows: device 2, host 1, disk 4
	// 10 rows: device 3, host 2, disk 5
}

func ExampleStack_Gather() {
	d, remove := exampleDataset()
	defer remove()
	ctx := context.Background()
	s, err := cachetier.Open(ctx, d.Features(0), cachetier.Options{DeviceBytes: 1280, HostBytes: 4 << 10})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()

	ids := []uint32{3, 40, 41, 40} // nobody planned this
	rows := make([]byte, len(ids)*d.Features(0).RowBytes())
	for range 2 {
		if err := s.Gather(ctx, rows, ids); err != nil {
			fmt.Println(err)
			return
		}
		st := s.Stats()
		fmt.Printf("%d rows: device %d, host %d, disk %d\n", st.InputRows, st.Tiers.Device.RowsHit, st.Tiers.Host.RowsHit, st.Disk.Rows)
	}
	// Output:
	// 4 rows: device 1, host 0, disk 3
	// 8 rows: device 2, host 3, disk 3
}

func exampleDataset() (d *store.Dataset, remove func()) {
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
	_, err = storetest.Write(w, storetest.Spec{Nodes: 100, Dim: 64})
	check(err)
	d, err = store.Open(path)
	check(err)
	return d, func() {
		check(d.Close())
		check(os.RemoveAll(dir))
	}
}
