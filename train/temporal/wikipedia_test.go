package temporal

import (
	"bufio"
	"cmp"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/store/storetest"
)

// TestWikipedia finds what is known of the stream's training part, with negatives among all items: the rows of a batch, those that are the
// same counted each time, and its nodes.
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

// BenchmarkDraw draws from a stream of 300,000 events of 20,000 users and 5,000 items, some of which come far oftener than others.
func BenchmarkDraw(b *testing.B) {
	const events, users, items, batch, group = 300_000, 20_000, 5_000, 600, 16
	rng := rand.New(rand.NewPCG(1, 1))
	spec, now := storetest.StreamSpec{Users: users, Items: items}, 0.0
	often := func(n int) uint32 { return uint32(float64(n) * math.Pow(rng.Float64(), 3)) }
	for range events {
		now += rng.ExpFloat64()
		spec.Src, spec.Dst, spec.Times = append(spec.Src, often(users)), append(spec.Dst, often(items)), append(spec.Times, now)
	}
	e := open(b, spec)
	population, err := Destinations(e, 0, events)
	require.NoError(b, err)
	for _, c := range []struct {
		name string
		o    SamplerOptions
	}{
		{"fanout=10/near=newest/engine=mmap", SamplerOptions{Fanout: 10, Disk: disk.Options{Kind: disk.Mmap}}},
		{"fanout=10/near=uniform/engine=mmap", SamplerOptions{Fanout: 10, Uniform: true, Disk: disk.Options{Kind: disk.Mmap}}},
		{"fanout=10/near=newest/engine=uring", SamplerOptions{Fanout: 10, Disk: disk.Options{Kind: disk.Uring}}},
		{"fanout=0", SamplerOptions{}},
	} {
		b.Run(c.name, func(b *testing.B) {
			s := newSampler(b, e, c.o)
			all := steps(0, events, batch, Negatives{population, 1, 1}, func(int) bool { return false })
			into := make([]*Batch, group)
			for i := range into {
				into[i] = &Batch{}
			}
			at, roots := len(all)/2, 0
			for b.Loop() {
				if at+group > len(all) {
					at = len(all) / 2
				}
				if s.next != all[at].From {
					b.StopTimer()
					require.NoError(b, s.Seek(b.Context(), all[at].From))
					b.StartTimer()
				}
				require.NoError(b, s.Draw(b.Context(), all[at:at+group], into))
				at += group
				roots += 3 * batch * group
			}
			b.ReportMetric(float64(roots)/b.Elapsed().Seconds(), "roots/s")
		})
	}
}
