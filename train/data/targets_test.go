package data

import (
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/store"
)

// multiLabel seals the bits of a label of three classes and opens it.
func multiLabel(t *testing.T, bits []uint8) *Data {
	t.Helper()
	path := filepath.Join(t.TempDir(), "multi.gnn")
	w, err := store.Create(path, store.WriterOptions{})
	require.NoError(t, err)
	original := make([]int64, len(bits)/3)
	for v := range original {
		original[v] = int64(v)
	}
	require.NoError(t, w.AddNodeType("node", original))
	require.NoError(t, w.AddMultiLabels("label", "node", bits, 3, nil))
	_, err = w.Seal(store.Manifest{Name: "multi", Order: "original", Provenance: store.Provenance{Tool: "test"}})
	require.NoError(t, err)
	ds, err := store.Open(path)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, ds.Close()) })
	return &Data{Set: ds, Labels: ds.Labels(0)}
}

func TestTargets(t *testing.T) {
	const missing = store.MissingBit
	d := multiLabel(t, []uint8{0, 1, 0 /* */, 1, missing, 1 /* */, missing, missing, missing /* */, 1, 1, 1})
	got, known, err := d.Targets([]float32{7}, []uint32{1, 2, 0, 1})
	require.NoError(t, err)
	require.Equal(t, 2+0+3+2, known)
	nan := float32(math.NaN())
	want := []float32{7, 1, nan, 1, nan, nan, nan, 0, 1, 0, 1, nan, 1}
	require.Len(t, got, len(want))
	for i := range want {
		require.True(t, got[i] == want[i] || got[i] != got[i] && want[i] != want[i], "%d: %v, want %v", i, got[i], want[i])
	}
	got, known, err = d.Targets(got[:0], nil)
	require.NoError(t, err)
	require.Empty(t, got)
	require.Zero(t, known)
	for v, want := range []bool{true, true, false, true} {
		require.Equal(t, want, d.Labels.Has(uint32(v)), v)
	}

	f, err := os.OpenFile(filepath.Join(d.Set.Path(), d.Set.Manifest().Labels[0].Values.Path), os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.WriteAt([]byte{9}, store.PageSize+4) // of a page that was compared with its checksum before
	require.NoError(t, err)
	require.NoError(t, f.Close())
	_, _, err = d.Targets(nil, []uint32{0, 1})
	require.ErrorIs(t, err, store.ErrCorrupt)
	require.ErrorContains(t, err, "node 1 has 9 for class 1; want 0, 1 or 255; run gnnstore verify")
}
