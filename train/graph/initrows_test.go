package graph

import (
	"context"
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
	"github.com/gnnstore/gnnstore/train/run"
)

// givenRows is a run.RowFile in memory: rows of so many columns, by stored node.
type givenRows struct {
	cols  int
	order []uint32
	row   func(v uint32) []float32
}

func (g givenRows) Cols() int    { return g.cols }
func (g givenRows) Close() error { return nil }

func (g givenRows) Each(_ context.Context, use func(nodes []store.NodeID, rows []float32) error) error {
	for nodes := range slices.Chunk(g.order, 7) {
		var rows []float32
		for _, v := range nodes {
			rows = append(rows, g.row(v)...)
		}
		if err := use(nodes, rows); err != nil {
			return err
		}
	}
	return nil
}

// TestInitRows: learnt rows begin as a file has them, in whichever order, and those that it has not
// as they are drawn; also where a run was cut before its first checkpoint.
func TestInitRows(t *testing.T) {
	ds := openTyped(t, storetest.Library(400, 3, 2))
	o := learning()
	o.Cache.HostBytes, o.InitRows = 9000, map[string]string{"author": "/rows"}
	file := givenRows{cols: 8, row: func(v uint32) (row []float32) {
		for c := range 8 {
			row = append(row, float32(math.Sin(float64(8*v)+float64(c))))
		}
		return row
	}}
	given := map[int]map[uint32][]float32{0: {}}
	for v := uint32(99); v < 100; v -= 3 {
		file.order = append(file.order, v)
		given[0][v] = make([]float32, o.Optim.Rows.Rule().Columns(8))
		copy(given[0][v], file.row(v))
	}
	h := run.Hooks{OpenRows: func(path string, ids store.IDs) (run.RowFile, error) {
		require.Equal(t, "/rows", path)
		return file, nil
	}}
	want, touched := plainLoopFrom(t, ds, o, given)
	got, err := Run(t.Context(), ds, scratch(t), o, "test", h)
	require.NoError(t, err)
	require.Equal(t, want, got.ParamsXXH3)
	require.Equal(t, touched[0], got.Embeddings[0].RowsTouched)
	drawn := o
	drawn.InitRows = nil
	require.NotEqual(t, want, trained(t, ds, drawn).ParamsXXH3)

	disk, cut := vfs.NewMem(), h
	ctx, cancel := context.WithCancel(t.Context())
	cut.Start = func(*run.Record) { cancel() }
	_, _ = runOn(ctx, disk, ds, o, cut) // before it could take a step
	names, err := disk.List("/run/checkpoints")
	require.NoError(t, err)
	for _, name := range names {
		require.NoError(t, disk.Remove("/run/checkpoints/"+name))
	}
	again := o
	again.InitRows = nil
	got, err = runOn(t.Context(), disk, ds, again, h)
	require.NoError(t, err)
	require.Equal(t, want, got.ParamsXXH3)
	again.InitRows = map[string]string{"author": "/others"}
	_, err = runOn(t.Context(), disk, ds, again, run.Hooks{OpenRows: func(string, store.IDs) (run.RowFile, error) { return file, nil }})
	require.ErrorContains(t, err, `{init_rows} is author=/others and the run's is author=/rows`)

	for want, change := range map[string]func(f *givenRows, o *run.Options){
		"{init_rows} /rows has rows of 5 columns, and those of type author have 8; use {input} author=embed:5": func(f *givenRows, _ *run.Options) { f.cols = 5 },
		"{init_rows} /rows: node 3 is in it twice":                                                             func(f *givenRows, _ *run.Options) { f.order = []uint32{1, 3, 2, 3} },
		"{init_rows} /rows: column 2 of node 4 is NaN": func(f *givenRows, _ *run.Options) {
			f.order, f.row = []uint32{4}, func(uint32) []float32 { return []float32{0, 0, float32(math.NaN()), 0, 0, 0, 0, 0} }
		},
		"{init_rows} paper=/rows: no rows of type paper are learnt; have them learnt by {input} paper=embed:D": func(_ *givenRows, o *run.Options) {
			o.InitRows = map[string]string{"paper": "/rows"}
		},
	} {
		f, o := file, o
		o.Inputs = maps.Clone(o.Inputs)
		change(&f, &o)
		_, err := Run(t.Context(), ds, scratch(t), o, "test", run.Hooks{OpenRows: func(string, store.IDs) (run.RowFile, error) { return f, nil }})
		require.ErrorContains(t, err, want)
	}
	_, err = Run(t.Context(), ds, scratch(t), o, "test", run.Hooks{})
	require.ErrorContains(t, err, "{init_rows} /rows: nobody here reads files of rows")
}
