package topology_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/cachetier/topology"
	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
)

// valued returns a column of each element type. Some of its integers are no float32.
func valued() (columns []storetest.Column) {
	for elem, scale := range map[store.Elem]float64{
		store.U8: 1, store.F32: 1.0 / 3, store.I32: -(1 << 20) - 1, store.U32: 1<<21 + 3, store.I64: -(1 << 41) - 7, store.U64: 1<<43 + 5,
	} {
		columns = append(columns, storetest.Column{
			Name: elem.String(), Elem: elem, Value: func(v, i int) float64 { return float64((v*31+i*7)%250) * scale },
		})
	}
	slices.SortFunc(columns, func(a, b storetest.Column) int { return int(a.Elem) - int(b.Elem) })
	return columns
}

// openValued is open for a graph whose edges have weights and values.
func openValued(t testing.TB, lists [][]uint32) (g *store.Graph, weights *store.EdgeColumn, values []*store.EdgeColumn, path string) {
	columns := valued()
	path = storetest.Build(t, storetest.Spec{Nodes: len(lists), Neighbors: lists, Dim: 1, Weight: weightOf, Columns: columns})
	g = reopen(t, path)
	for _, c := range columns {
		values = append(values, g.Column(c.Name))
	}
	return g, g.Column("weight"), values, path
}

// wantValues returns a column of v's edges in float32, computed from what was written.
func wantValues(column, v, degree int) []float32 {
	c, want := valued()[column], make([]float32, degree)
	for i := range want {
		want[i] = float32(c.Value(v, i))
	}
	return want
}

// readValues returns the values that ReadValues serves.
func readValues(t *topology.Tier, column int, nodes []uint32) ([][]float32, error) {
	got := make([][]float32, len(nodes))
	for i, v := range nodes {
		got[i] = make([]float32, t.Degree(v))
	}
	var mu sync.Mutex
	served := make([]int, len(nodes))
	err := t.ReadValues(bg, column, nodes, func(i, from int, part []float32) error {
		mu.Lock()
		defer mu.Unlock()
		served[i] += len(part)
		if copy(got[i][from:], part) != len(part) || len(part) > topology.MaxPart {
			return fmt.Errorf("%d values from %d on, of %d", len(part), from, len(got[i]))
		}
		return nil
	})
	for i := range served {
		if err == nil && served[i] != len(got[i]) {
			err = fmt.Errorf("node %d: %d of %d values came", nodes[i], served[i], len(got[i]))
		}
	}
	return got, err
}

// holdsValues compares all values of a tier with what was written.
func holdsValues(t *testing.T, g *store.Graph, tier *topology.Tier) {
	var cold []uint32
	for v := range uint32(g.Nodes()) {
		degree := tier.Degree(v)
		if v >= tier.Resident() {
			if degree > 0 {
				cold = append(cold, v)
			}
			continue
		}
		places := make([]uint32, degree)
		for i := range places {
			places[i] = uint32(degree - 1 - i)
		}
		got := make([]float32, degree*tier.Columns())
		tier.TakeValues(got, v, places)
		for c := range tier.Columns() {
			want := wantValues(c, int(v), degree)
			for i, p := range places {
				if got[i*tier.Columns()+c] != want[p] {
					require.Equal(t, want[p], got[i*tier.Columns()+c], "column %d, node %d, place %d", c, v, p)
				}
			}
		}
	}
	for c := range tier.Columns() {
		got, err := readValues(tier, c, cold)
		require.NoError(t, err)
		for i, v := range cold {
			require.True(t, slices.Equal(wantValues(c, int(v), len(got[i])), got[i]), "column %d, node %d", c, v)
		}
	}
}

// TestTierHoldsValues checks columns of every element type, resident and cold, at any budget, by
// any engine, and after any Resize.
func TestTierHoldsValues(t *testing.T) {
	g, weights, values, _ := openValued(t, withHub(5*topology.MaxPart, 60))
	for _, w := range []*store.EdgeColumn{nil, weights} {
		least, all := topology.LeastBytes(g), topology.LeastBytes(g)+topology.ListBytes(g, w, values...)
		each := int64(4 + 1 + 3*4 + 2*8)
		if w != nil {
			each += 4
		}
		require.Equal(t, each, topology.EdgeBytes(w, values...))
		require.Equal(t, least+each*g.Edges(), all)
		for _, kind := range disk.Kinds[1:] {
			start := kernels.HostBytes()
			tier, err := topology.Open(bg, g, topology.Options{Bytes: least, Weights: w, Values: values, Options: disk.Options{Kind: kind, Depth: 8}})
			require.NoError(t, err)
			require.Equal(t, len(values), tier.Columns())
			for _, bytes := range []int64{least, least + 40*300, (least + all) / 2, all, least + 40*200} {
				require.NoError(t, tier.Resize(bg, bytes))
				stats := tier.Stats()
				require.LessOrEqual(t, stats.OffsetBytes+stats.ResidentBytes, bytes)
				require.Equal(t, all-least, stats.TotalBytes)
				require.GreaterOrEqual(t, stats.Warmup.BytesRead, stats.Warmup.BytesWanted)
				require.Equal(t, bytes == all, tier.Resident() == uint32(g.Nodes()))
				if w != nil && tier.Resident() > 2 {
					require.True(t, slices.Equal(store.EdgeValues[float32](w, 2), tier.Weights(2)))
				}
				holdsValues(t, g, tier)
			}
			require.Panics(t, func() { tier.TakeValues(nil, tier.Resident(), nil) })
			tier.Close()
			require.Equal(t, start, kernels.HostBytes())
		}
	}
}

// TestColdValuesAreCounted checks that cold values count bytes, and no lists.
func TestColdValuesAreCounted(t *testing.T) {
	g, _, values, _ := openValued(t, withHub(topology.MaxPart/2+1, 3))
	tier, err := topology.Open(bg, g, topology.Options{Bytes: topology.LeastBytes(g), Values: values, Options: disk.Options{Kind: disk.Pread}})
	require.NoError(t, err)
	defer tier.Close()
	var cold []uint32
	for v := range uint32(g.Nodes()) {
		if tier.Degree(v) > 0 {
			cold = append(cold, v)
		}
	}
	for c, column := range values {
		before := tier.Stats().Cold
		_, err := readValues(tier, c, cold)
		require.NoError(t, err)
		did := tier.Stats().Cold.Sub(before)
		require.Zero(t, did.Rows)
		require.Equal(t, int64(column.Column.Elem.Size())*g.Edges(), did.BytesWanted)
		require.GreaterOrEqual(t, did.BytesRead, did.BytesWanted)
	}
}

// TestValuesThatCannotBeRead checks that the error names the section.
func TestValuesThatCannotBeRead(t *testing.T) {
	lists := withHub(3000, 9)
	for _, kind := range disk.Kinds[1:] {
		g, _, values, path := openValued(t, lists)
		tier, err := topology.Open(bg, g, topology.Options{Bytes: topology.LeastBytes(g), Values: values, Options: disk.Options{Kind: kind}})
		require.NoError(t, err)
		file := "topo/node__to__node/i64.i64"
		require.NoError(t, os.Truncate(filepath.Join(path, file), 3*store.PageSize))
		last := uint32(len(lists) - 1)
		at := slices.IndexFunc(values, func(c *store.EdgeColumn) bool { return c.Column.Elem == store.I64 })
		_, err = readValues(tier, at, []uint32{last - 100, last})
		require.ErrorIs(t, err, store.ErrCorrupt)
		require.ErrorContains(t, err, path+": "+file)
		_, err = readValues(tier, 0, []uint32{last - 100, last})
		require.NoError(t, err, "other columns are fine")
		tier.Close()
	}
	g, _, _, _ := openValued(t, lists)
	_, _, values, _ := openValued(t, lists)
	require.Panics(t, func() { _, _ = topology.Open(bg, g, topology.Options{Bytes: 1 << 30, Values: values}) }, "columns of another graph")
}

// TestFloats checks that integers that are no float32 become the nearest one.
func TestFloats(t *testing.T) {
	_, _, values, _ := openValued(t, [][]uint32{{0}})
	b := []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
	want := map[store.Elem]float32{
		store.U8: 255, store.I32: -1, store.U32: 1 << 32, store.I64: -1, store.U64: 1 << 63 * 2, store.F32: float32(math.NaN()),
	}
	for _, c := range values {
		got := c.Float(b, 0)
		if c.Column.Elem == store.F32 {
			require.True(t, got != got)
			continue
		}
		require.Equal(t, want[c.Column.Elem], got, c.Column.Elem)
	}
}
