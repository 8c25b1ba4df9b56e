package build

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
)

// TestSharedSections: whatever the graph and the options, relations that share sections have the
// edges, the held-out edges and the report that they have with sections of their own.
func TestSharedSections(t *testing.T) {
	fewer(t, 7)
	dir := t.TempDir()
	n, held := 0, 0
	storetest.CheckUntil(t, func(t *rapid.T) {
		f := drawGraph(t)
		o := Options{
			FS: storetest.NoSync, Reverse: rapid.Bool().Draw(t, "reverse"), Undirected: rapid.Bool().Draw(t, "undirected"),
			Order:      rapid.SampledFrom([]Order{OrderDegree, OrderAccess, OrderOriginal}).Draw(t, "order"),
			Duplicates: rapid.SampledFrom([]Duplicates{DuplicatesKeep, DuplicatesMerge}).Draw(t, "duplicates"),
			Features:   rapid.SampledFrom([]string{"none", "fastrp:4"}).Draw(t, "features"),
		}
		if rapid.Bool().Draw(t, "split") {
			o.EdgeSplit = []string{"random:0.5/0.25/0.25"}
		}
		sealed := func(h hooks) (*Report, *store.Dataset, error) {
			n++
			o.test = h
			path := filepath.Join(dir, fmt.Sprint(n))
			rep, err := Build(context.Background(), f, path, o)
			if err != nil {
				return nil, nil, err
			}
			d, err := store.Open(path)
			require.NoError(t, err)
			problems, err := d.Verify(context.Background(), nil)
			require.NoError(t, err)
			require.Empty(t, problems)
			return rep, d, nil
		}
		want, own, err := sealed(hooks{})
		if err != nil { // of so few edges all may be held out
			require.ErrorContains(t, err, "{edge_split}: no edge is left")
			return
		}
		defer own.Close()
		got, shared, err := sealed(hooks{shares: 1, records: 4, lists: 3, journal: rapid.Bool().Draw(t, "journal")})
		require.NoError(t, err)
		defer shared.Close()
		require.NotEmpty(t, shared.Manifest().Shared)
		require.Equal(t, want.Relations, got.Relations)
		byName := func(a, b EdgeSplitReport) int { return cmp.Compare(a.Relation, b.Relation) }
		require.Equal(t, slices.SortedFunc(slices.Values(want.EdgeSplits), byName), slices.SortedFunc(slices.Values(got.EdgeSplits), byName))
		require.Equal(t, want.Splits, got.Splits)
		for i, r := range own.Manifest().Relations {
			k := relationOf(shared, r.Key())
			of := shared.Manifest().Relations[k]
			require.Equal(t, [3]any{r.Edges, r.Symmetric, r.ReverseOf}, [3]any{of.Edges, of.Symmetric, of.ReverseOf})
			require.Equal(t, leftEdges(own, i), leftEdges(shared, k))
			for p := range store.HeldTest + 1 {
				a, has := own.HeldEdges(i, p)
				b, too := shared.HeldEdges(k, p)
				require.Equal(t, has, too)
				if has {
					src, dst := a.Ends()
					src2, dst2 := b.Ends()
					held += len(src)
					require.True(t, slices.Equal(src, src2) && slices.Equal(dst, dst2))
				}
			}
		}
	}, map[string]*int{"held-out edges": &held})
}
