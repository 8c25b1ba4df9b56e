package cachetier_test

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
)

func ExampleStack_Gather() {
	d, remove := exampleDataset() // 100 nodes, 8 float16 features each
	defer remove()

	// Ten rows in the device region, and some hundred in the host cache.
	s, err := cachetier.Open(d.Features(0), cachetier.Options{DeviceBytes: 160, HostBytes: 4 << 10})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()

	ids := []uint32{3, 40, 41, 40}
	rows := make([]byte, len(ids)*d.Features(0).RowBytes())
	for range 2 {
		if err := s.Gather(rows, ids); err != nil {
			fmt.Println(err)
			return
		}
		st := s.Stats()
		fmt.Printf("%d rows: device %d, host %d, disk %d\n", st.InputRows, st.Tiers.Device.RowsHit, st.Tiers.Host.RowsHit, st.Disk.Rows)
	}
	// Output:
	// 4 rows: device 1, host 1, disk 2
	// 8 rows: device 2, host 4, disk 2
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
	_, err = storetest.Write(w, storetest.Spec{Nodes: 100, Dim: 8})
	check(err)
	d, err = store.Open(path)
	check(err)
	return d, func() {
		check(d.Close())
		check(os.RemoveAll(dir))
	}
}
