package device_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gnnstore/gnnstore/cachetier/device"
	"github.com/gnnstore/gnnstore/kernels/kerneltest"
)

// TestRings: slots have places of their own, a chunk's one behind the other. Chunks come in the
// order in which they are taken, so rows give way from the last on, and no row that is left lies
// where a step before has stored. What is left for a step does not grow, and does not depend on
// later steps.
func TestRings(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		counts := rapid.SliceOfN(rapid.IntRange(0, 100), 0, 4).Draw(t, "slots")
		cols := rapid.IntRange(1, 9).Draw(t, "columns")
		rows, size := rapid.IntRange(0, 50).Draw(t, "rows"), 2*rapid.IntRange(1, 20).Draw(t, "halves")
		bytes := device.RingsSize(cols, counts...)
		far, err := device.New(kerneltest.Remote(cpu()), bytes, device.Size(int64(rows*size)))
		require.NoError(t, err)
		part, err := far.Rows(rows, 1<<20, size)
		require.NoError(t, err)
		r, err := far.Rings(cols, counts...)
		require.NoError(t, err)
		table, hot := r.Table(), part.Table()
		require.GreaterOrEqual(t, hot.Rows, rows)
		require.Less(t, 2*hot.Off, size, "as many rows as there is room for")
		type slot struct{ ring, slot int }
		places, left := map[uint32]slot{}, hot.Rows
		var since []int // by place
		for step := range rapid.IntRange(0, 9).Draw(t, "steps") {
			now := part.Left(r.Taken(step))
			require.LessOrEqual(t, now, left)
			left = now
			for ring, n := range counts {
				if n == 0 || rapid.Bool().Draw(t, "none") {
					continue
				}
				most := rapid.IntRange(0, n-1).Draw(t, "highest")
				some := rapid.SliceOfN(rapid.Uint32Range(0, uint32(most)), 0, 9).Draw(t, "stored")
				r.Take(ring, step, some)
				for _, s := range some {
					p, ok := r.Place(ring, s)
					require.True(t, ok)
					require.Less(t, int(p), table.Rows)
					before, again := places[p]
					require.True(t, !again || before == slot{ring, int(s)})
					places[p] = slot{ring, int(s)}
					for len(since) <= int(p) {
						since = append(since, 100)
					}
					since[p] = min(since[p], step)
					n := min(r.Chunk(int(s)), counts[ring]-int(s))
					last, ok := r.Place(ring, s+uint32(n)-1)
					require.True(t, ok)
					require.Equal(t, int(p)+n-1, int(last))
				}
			}
			require.Equal(t, now, part.Left(r.Taken(step)))
			for before := range step + 1 {
				rowsLeft := part.Left(r.Taken(before))
				first := hot.Off + (hot.Rows-rowsLeft)*hot.Cols // of the region's halves
				for p := range since {
					if since[p] < before {
						require.LessOrEqual(t, (p+1)*cols, first)
					}
				}
			}
		}
		require.GreaterOrEqual(t, left, rows)
		require.GreaterOrEqual(t, part.Left(far.Taken()), rows)
		require.Panics(t, far.Close)
		r.Close()
		r.Close()
		part.Close()
		far.Close()
	})
}

// TestRingsTakeAgain: a step that is planned anew has the places that it had, and an earlier step
// that turns out to store there counts.
func TestRingsTakeAgain(t *testing.T) {
	far, err := device.New(kerneltest.Remote(cpu()), device.RingsSize(4, 32, 16), 800)
	require.NoError(t, err)
	r, err := far.Rings(4, 32, 16)
	require.NoError(t, err)
	chunk := int64(r.Chunk(0) * 8)
	r.Take(0, 5, []uint32{0, 1})
	r.Take(1, 7, []uint32{15})
	first, _ := r.Place(0, 1)
	_, ok := r.Place(1, 0)
	require.False(t, ok)
	require.Equal(t, []int64{0, chunk, chunk, 2 * chunk}, []int64{r.Taken(5), r.Taken(6), r.Taken(7), r.Taken(8)})
	r.Take(1, 6, []uint32{14})
	r.Take(0, 6, []uint32{1})
	again, _ := r.Place(0, 1)
	require.Equal(t, first, again)
	require.Equal(t, []int64{0, chunk, 2 * chunk}, []int64{r.Taken(5), r.Taken(6), r.Taken(7)})
	require.EqualValues(t, 2*chunk, far.Taken())
	_, err = far.Rings(4, 1)
	require.ErrorContains(t, err, "that has slots")
	r.Close()
	far.Close()
	near, err := device.New(cpu(), 100, 0)
	require.NoError(t, err)
	_, err = near.Rings(4, 1)
	require.ErrorContains(t, err, "the host addresses")
	near.Close()
	full, err := device.New(kerneltest.Remote(cpu()), 100, 100)
	require.NoError(t, err)
	rows, err := full.Rows(10, 10, 10)
	require.NoError(t, err)
	_, err = full.Rings(4, 30)
	require.ErrorContains(t, err, "the region has")
	_, err = full.Rows(1, 0, 2)
	require.ErrorContains(t, err, "rows that slots will displace")
	rows.Close()
	full.Close()
	large := device.RingsSize(64, 1<<20, 3)
	require.Zero(t, large%128)
	require.LessOrEqual(t, large-(1<<20+3)*128, int64(2*device.ChunkBytes))
	require.True(t, slices.Contains([]int64{0}, device.RingsSize(64)))
}
