package staleness

import (
	"bufio"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestOverlap holds counts to their definition, with sets.
func TestOverlap(t *testing.T) {
	const nodes, steps = 30, 40
	rng := rand.New(rand.NewPCG(1, 2))
	draw := func() []uint32 {
		var s []uint32
		for _, v := range rng.Perm(nodes)[:rng.IntN(8)] {
			s = append(s, uint32(v))
		}
		return s
	}
	o := NewOverlap(nodes)
	require.Equal(t, 0.0, o.Share(5))
	require.Equal(t, 1, o.Most())
	var read, written [][]uint32
	for range steps {
		read, written = append(read, draw()), append(written, draw())
		o.Add(read[len(read)-1], written[len(written)-1])
	}
	most := 0
	for k := 1; k <= steps; k++ {
		share := 0.0
		for i, nodes := range read {
			if i < k-1 {
				continue
			}
			stale := 0
			for _, v := range nodes {
				if slices.ContainsFunc(written[max(0, i-k+1):i], func(w []uint32) bool { return slices.Contains(w, v) }) {
					stale++
				}
			}
			share += float64(stale) / float64(max(1, len(nodes))) / float64(steps-k+1)
		}
		require.InDelta(t, share, o.Share(k), 1e-12, "k = %d", k)
		if share <= 0.5 && most == k-1 {
			most = k
		}
	}
	for k := 1; k <= steps+1; k++ {
		r := NewRealised(k)
		for epoch := range 2 {
			for i := range read {
				r.Add(read[i], written[i])
			}
			require.InDelta(t, o.Share(k), r.Mean(), 1e-12, "k = %d", k)
			require.Equal(t, (epoch+1)*max(0, steps-k+1), r.Steps)
			r.Begin()
			require.Empty(t, r.last)
		}
	}
	require.Equal(t, most, o.Most())
	require.Less(t, most, steps)
}

// TestOverlapOfWikipedia finds what is known of the stream's training part, with batches of 600,
// ten neighbours and negatives among all nodes.
func TestOverlapOfWikipedia(t *testing.T) {
	dir := os.Getenv("GNNSTORE_DATA")
	if dir == "" {
		t.Skip("GNNSTORE_DATA is not set: the folder with jodie_wikipedia_edges")
	}
	const nodes, train, batch, fanout = 9228, 110232, 600, 10
	f, err := os.Open(filepath.Join(dir, "jodie_wikipedia_edges", "ml_wikipedia.txt"))
	require.NoError(t, err)
	defer f.Close()
	type event struct {
		at   float64
		node uint32
	}
	o, near, rng := NewOverlap(nodes), make([][]event, nodes), rand.New(rand.NewPCG(1, 1))
	read, written := map[uint32]bool{}, map[uint32]bool{}
	root := func(v uint32, at float64) {
		read[v] = true
		for i, found := len(near[v])-1, 0; i >= 0 && found < fanout; i-- {
			if near[v][i].at < at {
				read[near[v][i].node] = true
				found++
			}
		}
	}
	list := func(set map[uint32]bool) (all []uint32) {
		for v := range set {
			all = append(all, v)
		}
		clear(set)
		return all
	}
	lines, n := bufio.NewScanner(f), 0
	for n < train && lines.Scan() {
		var node [2]uint64
		words := strings.Fields(lines.Text())
		for i := range node {
			node[i], err = strconv.ParseUint(words[i], 10, 32)
			require.NoError(t, err)
		}
		at, err := strconv.ParseFloat(words[2], 64)
		require.NoError(t, err)
		u, v := uint32(node[0]), uint32(node[1])
		root(u, at)
		root(v, at)
		root(rng.Uint32N(nodes), at)
		written[u], written[v] = true, true
		near[u], near[v] = append(near[u], event{at, v}), append(near[v], event{at, u})
		if n++; n%batch == 0 {
			o.Add(list(read), list(written))
		}
	}
	require.NoError(t, lines.Err())
	require.Equal(t, train, n)
	for k, want := range map[int]float64{2: 0.148, 3: 0.223, 4: 0.280, 5: 0.328, 10: 0.484} {
		require.InDelta(t, want, o.Share(k), 0.002, "k = %d", k)
	}
	require.Equal(t, 10, o.Most())
}
