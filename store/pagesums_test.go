package store_test

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
)

// reads holds sections of a dataset, each with a call that lends it.
var reads = map[string]func(d *store.Dataset){
	"topo/node__to__node/offsets.u64":   func(d *store.Dataset) { d.Graph(0).Degree(4) },
	"topo/node__to__node/neighbors.u32": func(d *store.Dataset) { d.Graph(0).Neighbors(4) },
	"feat/node/feat-00001.f16":          func(d *store.Dataset) { d.Features(0).Row(5) },
	"label/node/label.i32":              func(d *store.Dataset) { d.Labels(0).Class(3) },
	"split/given/valid.u32":             func(d *store.Dataset) { d.Split(0) },
	"ids/node/original.i64":             func(d *store.Dataset) { d.IDs(0).Original(0) },
	"ids/node/order.u32":                func(d *store.Dataset) { d.IDs(0).Order() },
}

// TestLentPages damages a byte of each section, in the rows or in the padding behind them. Whoever
// lends that page reports the section and the page, in one line with a remedy.
func TestLentPages(t *testing.T) {
	for section, read := range reads {
		for _, at := range []int64{store.PageSize, store.PageSize + 8, 2*store.PageSize - 1} {
			dir := storetest.Build(t, small())
			patch(t, dir, section, at, []byte{0x5a})
			d, err := store.Open(dir)
			require.NoError(t, err, "opening reads no data")
			guarded := func() error {
				return store.Guard(func() error {
					read(d)
					return nil
				})
			}
			for range 2 { // the page stays wrong
				err = guarded()
				require.ErrorIs(t, err, store.ErrCorrupt)
				require.Regexp(t, "^"+dir+": "+section+" at 0x1000: the checksum of this page is [0-9a-f]{8}, and [0-9a-f]{8} was sealed: "+
					"the file is damaged; restore it from a copy, or ingest again$", err.Error())
			}
			require.NoError(t, d.Close())
		}
	}
}

// TestDamagedSums damages the page checksums, their padding, and the header's hash of them.
func TestDamagedSums(t *testing.T) {
	const section = "feat/node/feat-00001.f16"
	for _, at := range []int64{2 * store.PageSize, 3*store.PageSize - 1} {
		dir := storetest.Build(t, small())
		patch(t, dir, section, at, []byte{0x5a})
		d, err := store.Open(dir)
		require.NoError(t, err)
		err = store.Guard(func() error {
			d.Features(0).Row(5)
			return nil
		})
		require.ErrorContains(t, err, section+" at 0x2000: the page checksums hash to ")
		problems, err := d.Verify(t.Context(), nil)
		require.NoError(t, err)
		require.Len(t, problems, 1)
		require.NoError(t, d.Close())
	}
	dir := storetest.Build(t, small())
	patch(t, dir, section, 0x234, []byte{0x5a})
	_, err := store.Open(dir)
	require.ErrorContains(t, err, "header checksum is ")
}

// TestCheckPages checks pages that a reader brings. The header page, and pages of checksums, always
// pass.
func TestCheckPages(t *testing.T) {
	dir := storetest.Build(t, storetest.Spec{Nodes: 40, Dim: 3000})
	d, err := store.Open(dir)
	require.NoError(t, err)
	defer d.Close()
	file := d.Features(0).Shards()[0].SectionFile
	b, err := os.ReadFile(filepath.Join(dir, file.Section))
	require.NoError(t, err)
	require.EqualValues(t, len(b), file.Size)
	pages := int64(40*6016+store.PageSize-1) / store.PageSize
	require.EqualValues(t, store.PageSize+(pages+31)/32*4, file.SumBytes())
	require.NoError(t, file.Check(0, b))
	var wg sync.WaitGroup
	for at := int64(0); at < file.Size; at += store.PageSize {
		wg.Go(func() {
			page := append([]byte(nil), b[at:at+store.PageSize]...)
			require.NoError(t, file.Check(at, page))
			page[at/store.PageSize] ^= 1
			err := file.Check(at, page)
			if at == 0 || at > pages*store.PageSize {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, fmt.Sprintf("%s at 0x%x: the checksum of this page is ", file.Section, at))
		})
	}
	wg.Wait()
	require.Panics(t, func() { _ = file.Check(1, b[1:]) })
	require.NoError(t, (&store.SectionFile{}).Check(1, b), "nothing is known of a file that is no section")
}

// TestLentOnce checks that a page is checked only when it is first lent. A later change goes
// unnoticed, as FORMAT.md says.
func TestLentOnce(t *testing.T) {
	dir := storetest.Build(t, small())
	d, err := store.Open(dir)
	require.NoError(t, err)
	defer d.Close()
	want := d.Labels(0).Class(3)
	patch(t, dir, "label/node/label.i32", store.PageSize, []byte{77, 0, 0, 0})
	require.Equal(t, want, d.Labels(0).Class(3))
	require.EqualValues(t, 77, d.Labels(0).Class(0))
}
