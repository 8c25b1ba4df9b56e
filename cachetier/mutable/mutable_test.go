package mutable_test

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"maps"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/cachetier/mutable"
	"github.com/gnnstore/gnnstore/cachetier/policy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// within runs do. If do takes much longer than any machine needs, it hangs: within panics with all
// stacks.
func within(do func()) {
	defer time.AfterFunc(time.Minute, func() {
		stacks := make([]byte, 1<<20)
		panic("it hangs:\n" + string(stacks[:runtime.Stack(stacks, true)]))
	}).Stop()
	do()
}

// drawCache draws cache options, with budgets from nothing to more than the table.
func drawCache(t *rapid.T, rows, size int) cachetier.Options {
	all := int64(rows * size)
	return cachetier.Options{
		DeviceBytes: rapid.SampledFrom([]int64{0, 0, 5 * int64(size)}).Draw(t, "device"),
		// The bookkeeping of a cache takes about 2 KB, and at most half of the budget.
		HostBytes:   rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(0, all+3000), rapid.Int64Range(4500, 4500+all)).Draw(t, "host"),
		StaticBytes: rapid.SampledFrom([]int64{0, 0, 7 * int64(size)}).Draw(t, "static"),
		Policy:      rapid.SampledFrom(policy.Kinds).Draw(t, "policy"),
		Lookahead:   rapid.IntRange(0, 3).Draw(t, "lookahead"),
		Prewarm:     rapid.IntRange(0, 3).Draw(t, "prewarm") == 0,
		Engine:      rapid.SampledFrom([]disk.Kind{disk.Mmap, disk.Pread, disk.Buffered, disk.Uring, disk.Auto}).Draw(t, "engine"),
		Readers:     4,
	}
}

// TestTableDoesWhatTheOracleDoes runs steps, checkpoints, their removal, resuming and clearing on a
// table, under any budget, policy, engine and lag. It compares all that steps and checkpoints see
// with plain maps.
func TestTableDoesWhatTheOracleDoes(t *testing.T) {
	const rows = 70
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.SampledFrom([]int{1, 12, 90, 508, 700, 1000}).Draw(t, "row bytes")
		lag := rapid.IntRange(0, 3).Draw(t, "lag")
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		o := mutable.Options{Place: mutable.Place{FS: vfs.NewMem(), Dir: "run/table", Run: "this"}, Rows: rows, RowBytes: size, Initial: initial, Kept: 9, Lag: lag}
		if rapid.Bool().Draw(t, "on disk") {
			dir, err := os.MkdirTemp("", "mutable")
			require.NoError(t, err)
			defer os.RemoveAll(dir)
			o.FS, o.Dir = vfs.Default, dir+"/table"
		}
		o.Cache = drawCache(t, rows, size)
		mutable.SetBatches(rapid.SampledFrom([]int64{0, 3 * 4096, 4 << 20}).Draw(t, "bytes written"), rapid.Int64Range(0, 5000).Draw(t, "bytes copied"))
		defer mutable.SetBatches(4<<20, 4<<20)
		table, err := mutable.Open(bg, o)
		require.NoError(t, err)
		defer func() { table.Close() }()
		require.NoError(t, table.Begin(bg))
		model := newOracle(lag, size)
		for range rapid.IntRange(0, 2).Draw(t, "puts") {
			require.NoError(t, table.Put(rows/2, func(i int) (uint32, []byte) {
				v := uint32(2*i + 1)
				model.rows[v] = bytes.Repeat([]byte{byte(v)}, size)
				return v, model.rows[v]
			}))
			require.NoError(t, table.Reload(bg))
		}
		states, marks := map[int64]map[uint32][]byte{}, map[int64]mutable.Mark{}
		last := int64(-1)
		within(func() {
			for range rapid.IntRange(1, 14).Draw(t, "deeds") {
				switch deed := rapid.SampledFrom([]string{"steps", "steps", "checkpoint", "checkpoint", "retain", "resume", "show", "each", "peek", "clear"}).Draw(t, "deed"); deed {
				case "steps":
					atOnce := rapid.Bool().Draw(t, "at once")
					require.NoError(t, take(table, model, randomGroups(rng, rows), rapid.IntRange(1, 4).Draw(t, "ahead"), atOnce))
				case "checkpoint":
					last += int64(1 + rng.IntN(3))
					mark, err := table.Checkpoint(last)
					require.NoError(t, err)
					again, err := table.Checkpoint(last)
					require.NoError(t, err)
					require.Equal(t, mark, again)
					states[last], marks[last] = maps.Clone(model.rows), mark
				case "retain":
					for _, step := range slices.Sorted(maps.Keys(states)) {
						if rng.IntN(2) == 0 {
							delete(states, step)
							delete(marks, step)
						}
					}
					require.NoError(t, table.Retain(bg, slices.Collect(maps.Keys(states))...))
					require.LessOrEqual(t, generations(t, o), len(states)+3, "with the spill")
				case "resume":
					if len(marks) == 0 {
						continue
					}
					steps := slices.Sorted(maps.Keys(states))
					last = steps[rng.IntN(len(steps))]
					table.Close()
					o.Cache = drawCache(t, rows, size)
					table, err = mutable.Open(bg, o)
					require.NoError(t, err)
					require.NoError(t, table.Resume(bg, marks[last]))
					model.rows = maps.Clone(states[last])
					for step := range states {
						if step > last {
							delete(states, step)
							delete(marks, step)
						}
					}
				case "show":
					last++
					mark, err := table.Checkpoint(last)
					require.NoError(t, err)
					states[last], marks[last] = maps.Clone(model.rows), mark
					for _, step := range slices.Sorted(maps.Keys(states)) {
						require.NoError(t, table.Show(bg, step))
						got, err := each(table)
						require.NoError(t, err)
						require.Equal(t, (&oracle{rows: states[step]}).all(), got)
					}
					require.NoError(t, table.ShowNow(bg))
				case "each":
					got, err := each(table)
					require.NoError(t, err)
					require.Equal(t, model.all(), got)
				case "peek":
					ids := make([]uint32, rng.IntN(40))
					var want []byte
					for i := range ids {
						ids[i] = uint32(rng.IntN(rows))
						want = append(want, model.row(ids[i])...)
					}
					got, get := make([]byte, len(want)), table.Peek
					if rng.IntN(2) == 0 {
						get = table.Gather
					}
					require.NoError(t, get(bg, got, ids))
					require.True(t, bytes.Equal(want, got), "wrong rows")
				case "clear":
					require.NoError(t, table.Clear(bg))
					clear(model.rows)
				}
				require.Equal(t, int64(len(model.rows)), table.Counts().RowsTouched)
				st := table.Stats()
				require.LessOrEqual(t, st.Tiers.Host.CapacityBytes+st.Tiers.Host.IndexBytes, max(o.Cache.HostBytes, 0))
				require.Equal(t, st.InputRows, st.Tiers.Device.RowsHit+st.Tiers.Host.RowsHit+st.Disk.Rows)
			}
		})
	})
}

// generations counts the row files, the spill included.
func generations(t require.TestingT, o mutable.Options) (n int) {
	names, err := o.FS.List(o.Dir)
	require.NoError(t, err)
	for _, name := range names {
		if name[:4] == "rows" {
			n++
		}
	}
	return n
}

// TestForecast compares the forecast of some steps with what they read, for rows spread over
// generations.
func TestForecast(t *testing.T) {
	for seed := range uint64(8) {
		rng := rand.New(rand.NewPCG(seed, 2))
		o := mutable.Options{Place: mutable.Place{Dir: t.TempDir() + "/table"}, Rows: 300, RowBytes: 200, Initial: initial}
		o.Cache = cachetier.Options{HostBytes: 30_000, Engine: disk.Pread, Policy: policy.Kinds[seed%5]}
		table, err := mutable.Open(bg, o)
		require.NoError(t, err)
		require.NoError(t, table.Begin(bg))
		model := newOracle(1, 200)
		var mark mutable.Mark
		for step := range int64(3) {
			require.NoError(t, take(table, model, randomGroups(rng, 300), 2, false))
			mark, err = table.Checkpoint(step)
			require.NoError(t, err)
		}
		table.Close()
		table, err = mutable.Open(bg, o)
		require.NoError(t, err)
		require.NoError(t, table.Resume(bg, mark))
		var groups [][]step
		var trace [][]uint32
		for range 4 {
			var g []step
			for range 3 {
				var s step
				for _, v := range rng.Perm(300)[:1+rng.IntN(40)] {
					s.reads = append(s.reads, uint32(v))
				}
				g, trace = append(g, s), append(trace, s.reads)
			}
			groups = append(groups, g)
		}
		f, err := table.Forecast(trace, 3)
		require.NoError(t, err)
		before := table.Stats()
		require.NoError(t, take(table, model, groups, 9, false))
		st := table.Stats().Sub(before)
		require.Equal(t, f.All.Reads, st.Disk.Reads)
		require.Equal(t, f.All.Bytes, st.Disk.BytesRead)
		require.Equal(t, f.All.Rows, st.Disk.Rows-st.Disk.RowsRepeated)
		require.Positive(t, st.Disk.Reads)
		require.NoError(t, table.Close())
	}
}

// TestSum checks that a record's checksum is the CRC-32C of serial number, row and bytes, as
// rowfile.go describes.
func TestSum(t *testing.T) {
	b := []byte("the bytes of a row")
	for _, serial := range []uint64{0, 1, 0xfedcba9876543210} {
		for _, row := range []uint32{0, 7, 0xfffffffe} {
			all := binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, serial), uint64(row))
			require.Equal(t, crc32.Checksum(append(all, b...), crc32.MakeTable(crc32.Castagnoli)), mutable.Sum(serial, row, b))
		}
	}
}
