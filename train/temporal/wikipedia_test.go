package temporal

import (
	"bufio"
	"cmp"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/store/storetest"
)

// TestWikipedia finds what is known of the stream's training part, with negatives among all items:
// the rows of a batch, those that are the same counted each time, and its nodes.
func TestWikipedia(t *testing.T) {
	dir := os.Getenv("GNNSTORE_DATA")
	if dir == "" {
		t.Skip("GNNSTORE_DATA is not set: the folder with jodie_wikipedia_edges")
	}
	const users, items, train, batch = 8227, 1000, 110_232, 600
	f, err := os.Open(filepath.Join(dir, "jodie_wikipedia_edges", "ml_wikipedia.txt"))
	require.NoError(t, err)
	defer f.Close()
	spec := storetest.StreamSpec{Users: users, Items: items}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		words := strings.Fields(lines.Text())
		u, err := strconv.ParseUint(words[0], 10, 32)
		v, err2 := strconv.ParseUint(words[1], 10, 32)
		at, err3 := strconv.ParseFloat(words[2], 64)
		require.NoError(t, cmp.Or(err, err2, err3))
		spec.Src, spec.Dst, spec.Times = append(spec.Src, uint32(u-1)), append(spec.Dst, uint32(v-1-users)), append(spec.Times, at)
	}
	e := open(t, spec)
	n := Negatives{Each: 1, Key: 1}
	n.Population, err = Destinations(e, 0, e.Len())
	require.NoError(t, err)
	require.Len(t, n.Population, items)
	s := newSampler(t, e, SamplerOptions{Fanout: 10, Workers: 2})
	var all, rows, nodes, batches float64
	b := &Batch{}
	for _, p := range steps(0, train, batch, n, func(int) bool { return false }) {
		require.NoError(t, s.Draw(t.Context(), []Step{p}, []*Batch{b}))
		for _, roots := range [][]uint32{b.Src, b.Dst, b.Negatives} {
			for _, r := range roots {
				all += 1 + float64(b.NearEnd[r]-b.NearStart[r])
			}
		}
		batches, rows, nodes = batches+1, rows+float64(len(b.RowNode)), nodes+float64(len(b.Nodes))
	}
	t.Logf("%.0f batches: %.1f rows, %.1f of them different, %.1f nodes; %+v", batches, all/batches, rows/batches, nodes/batches, s.Stats())
	require.InEpsilon(t, 16678, all/batches, 0.002)
	require.InEpsilon(t, 1675, nodes/batches, 0.002)
}
