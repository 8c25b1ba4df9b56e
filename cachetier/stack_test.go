package cachetier_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/cachetier/policy"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// table builds a table of random rows in several shards.
func table(t testing.TB, rows, dim int) *store.Features {
	rng := rand.New(rand.NewPCG(uint64(rows), uint64(dim)))
	path := storetest.Build(t, storetest.Spec{Nodes: rows, Dim: dim, ShardBytes: 20 << 10, Row: func(int) []float32 {
		row := make([]float32, dim)
		for c := range row {
			row[c] = rng.Float32()
		}
		return row
	}})
	d, err := store.Open(path)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return d.Features(0)
}

// direct is what Gather must give.
func direct(f *store.Features, ids []uint32) []byte {
	var b []byte
	for _, v := range ids {
		b = append(b, f.Row(v)...)
	}
	return b
}

// skewed draws n ids with repeats, small ones more often.
func skewed(rng *rand.Rand, rows, n int) []uint32 {
	ids := make([]uint32, n)
	for i := range ids {
		x := rng.Float64()
		ids[i] = uint32(x * x * float64(rows))
	}
	return ids
}

// checkSums holds st to the equations in the comment of Stats.
func checkSums(t require.TestingT, st cachetier.Stats) {
	device, host, onDisk := st.Tiers.Device, st.Tiers.Host, st.Tiers.Disk
	require.Equal(t, st.InputRows, device.RowsHit+host.RowsHit+st.Disk.Rows)
	require.Equal(t, st.InputRows*st.RowBytes, device.BytesOut+host.BytesOut+onDisk.BytesOut)
	require.Equal(t, device.RowsMissed, host.RowsHit+host.RowsMissed)
	require.Equal(t, host.RowsMissed, st.Disk.Rows)
	require.Equal(t, onDisk.RowsHit, st.Disk.Rows)
	require.Zero(t, onDisk.RowsMissed)
	require.Equal(t, st.Disk.Rows*st.RowBytes, st.Disk.BytesWanted)
	require.Equal(t, onDisk.BytesRead, st.Disk.BytesRead)
	require.GreaterOrEqual(t, st.Disk.BytesRead, (st.Disk.Rows-st.Disk.RowsRepeated)*st.RowBytes)
	for _, tier := range []cachetier.Tier{device, host, onDisk} {
		require.LessOrEqual(t, tier.UsedRows, tier.CapacityRows)
		require.Equal(t, tier.UsedRows*st.RowBytes, tier.UsedBytes)
		require.Equal(t, tier.CapacityRows*st.RowBytes, tier.CapacityBytes)
		require.Equal(t, tier.RowsHit*st.RowBytes, tier.BytesOut)
	}
}

func TestGatherGivesTheSameBytes(t *testing.T) {
	const rows = 200
	for _, dim := range []int{1, 3, 100, 767} {
		f := table(t, rows, dim)
		size := int64(f.RowBytes())
		all := size * rows
		rng := rand.New(rand.NewPCG(5, 6))
		var batches [][]uint32
		var want [][]byte
		for _, n := range []int{0, 1, 70, 300} {
			ids := skewed(rng, rows, n)
			batches = append(batches, ids, ids) // the second time, the cache has what it can hold
			want = append(want, direct(f, ids), direct(f, ids))
		}
		for _, device := range []int64{0, 1, size, all / 2, all + 1, math.MaxInt64} {
			for _, host := range []int64{0, 1, size, size + policy.LRUBytesPerRow + 1, all / 2, all + 1, math.MaxInt64} {
				for _, pol := range []cachetier.Policy{cachetier.LRU, cachetier.None} {
					for _, engine := range []disk.Kind{disk.Mmap, disk.Pread} {
						o := cachetier.Options{DeviceBytes: device, HostBytes: host, Policy: pol, Engine: engine, Readers: 3}
						s, err := cachetier.Open(f, o)
						require.NoError(t, err)
						for i, ids := range batches {
							got := make([]byte, len(ids)*int(size))
							require.NoError(t, s.Gather(got, ids))
							// One comparison of all bytes: require.Equal would format them.
							require.True(t, bytes.Equal(want[i], got), "dim %d, %+v, batch %d", dim, o, i)
						}
						st := s.Stats()
						checkSums(t, st)
						require.LessOrEqual(t, st.Tiers.Device.CapacityBytes+st.Tiers.Device.IndexBytes, device)
						require.LessOrEqual(t, st.Tiers.Host.CapacityBytes+st.Tiers.Host.IndexBytes, host)
						require.LessOrEqual(t, st.Tiers.Device.CapacityRows+st.Tiers.Host.CapacityRows, int64(rows), "capped at the table")
						require.NoError(t, s.Close())
					}
				}
			}
		}
	}
}

// lruModel is the host cache as the comments tell it: rows in order of use, oldest first.
type lruModel struct {
	hot, capacity           int
	held                    []uint32
	device, host, evictions int64
	disk, unique            int64
}

func (m *lruModel) gather(ids []uint32) {
	read := map[uint32]bool{}
	for _, v := range ids {
		if int(v) < m.hot {
			m.device++
			continue
		}
		if i := slices.Index(m.held, v); i >= 0 {
			m.host++
			m.held = append(slices.Delete(m.held, i, i+1), v)
			continue
		}
		m.disk++
		read[v] = true
		if m.capacity == 0 {
			continue
		}
		if len(m.held) == m.capacity {
			m.held = slices.Delete(m.held, 0, 1)
			m.evictions++
		}
		m.held = append(m.held, v)
	}
	m.unique += int64(len(read))
}

func TestGatherCountsWhatTheModelDoes(t *testing.T) {
	const rows = 40
	f := table(t, rows, 3)
	size := int64(f.RowBytes())
	rapid.Check(t, func(t *rapid.T) {
		m := lruModel{hot: rapid.IntRange(0, 10).Draw(t, "hot"), capacity: rapid.IntRange(0, rows-10).Draw(t, "host rows")}
		o := cachetier.Options{
			DeviceBytes: int64(m.hot) * size,
			HostBytes:   int64(m.capacity) * (size + policy.LRUBytesPerRow + 1),
			Engine:      rapid.SampledFrom([]disk.Kind{disk.Mmap, disk.Pread}).Draw(t, "engine"),
			Readers:     rapid.IntRange(0, 5).Draw(t, "readers"),
		}
		s, err := cachetier.Open(f, o)
		require.NoError(t, err)
		defer s.Close()
		for _, ids := range rapid.SliceOfN(rapid.SliceOfN(rapid.Uint32Range(0, rows-1), 0, 80), 1, 8).Draw(t, "batches") {
			got := make([]byte, len(ids)*int(size))
			require.NoError(t, s.Gather(got, ids))
			require.True(t, bytes.Equal(direct(f, ids), got), "wrong rows")
			m.gather(ids)

			st := s.Stats()
			checkSums(t, st)
			require.Equal(t, m.device, st.Tiers.Device.RowsHit)
			require.Equal(t, m.host, st.Tiers.Host.RowsHit)
			require.Equal(t, m.evictions, st.Tiers.Host.Evictions)
			require.Equal(t, m.disk, st.Disk.Rows)
			require.Equal(t, m.disk-m.unique, st.Disk.RowsRepeated)
			require.EqualValues(t, len(m.held), st.Tiers.Host.UsedRows)
			require.EqualValues(t, m.capacity, st.Tiers.Host.CapacityRows)
		}
	})
}

func TestCountersDoNotDependOnReaders(t *testing.T) {
	f := table(t, 300, 100)
	var first cachetier.Stats
	for _, readers := range []int{1, 2, 64} {
		s, err := cachetier.Open(f, cachetier.Options{DeviceBytes: 3000, HostBytes: 9000, Engine: disk.Pread, Readers: readers})
		require.NoError(t, err)
		rng := rand.New(rand.NewPCG(7, 8))
		for range 10 {
			ids := skewed(rng, 300, 200)
			require.NoError(t, s.Gather(make([]byte, len(ids)*f.RowBytes()), ids))
		}
		st := s.Stats()
		st.Disk.Seconds, st.Warmup.Seconds = 0, 0
		if readers == 1 {
			first = st
		}
		require.Equal(t, first, st)
		require.NoError(t, s.Close())
	}
	require.Positive(t, first.Tiers.Host.RowsHit)
	require.Positive(t, first.Tiers.Host.Evictions)
	require.Positive(t, first.Disk.Rows)
}

func TestWarmupIsCountedApart(t *testing.T) {
	f := table(t, 300, 100)
	size := int64(f.RowBytes())
	s, err := cachetier.Open(f, cachetier.Options{DeviceBytes: 10*size + 5, Engine: disk.Buffered})
	require.NoError(t, err)
	defer s.Close()
	st := s.Stats()
	require.Zero(t, st.InputRows)
	require.EqualValues(t, 10, st.Warmup.Rows)
	require.Equal(t, 10*size, st.Warmup.BytesWanted)
	require.Equal(t, 10*size, st.Tiers.Device.BytesRead)
	require.Equal(t, cachetier.Disk{}, st.Disk)

	ids := []uint32{0, 9, 10, 10}
	require.NoError(t, s.Gather(make([]byte, 4*size), ids))
	delta := s.Stats().Sub(st)
	checkSums(t, delta)
	require.EqualValues(t, 4, delta.InputRows)
	require.EqualValues(t, 2, delta.Tiers.Device.RowsHit)
	require.EqualValues(t, 2, delta.Disk.Rows)
	require.EqualValues(t, 1, delta.Disk.RowsRepeated)
	require.EqualValues(t, 0.5, delta.Disk.Amplification, "one row read for two wanted")
	require.Zero(t, delta.Warmup)
	require.Zero(t, delta.Tiers.Device.BytesRead)
	require.EqualValues(t, 10, delta.Tiers.Device.UsedRows)
}

func TestStatsKeysAreStable(t *testing.T) {
	b, err := json.Marshal(cachetier.Stats{})
	require.NoError(t, err)
	tier := `{"capacity_bytes":0,"used_bytes":0,"capacity_rows":0,"used_rows":0,"index_bytes":0,"rows_hit":0,"rows_missed":0,"bytes_out":0,"bytes_read":0,"evictions":0}`
	disk := `{"rows":0,"rows_repeated":0,"bytes_wanted":0,"bytes_read":0,"reads":0,"seconds":0,"amplification":0}`
	require.JSONEq(t, fmt.Sprintf(`{"tiers":{"device":%[1]s,"host":%[1]s,"disk":%[1]s},"disk":%[2]s,"warmup":%[2]s,"input_rows":0,"row_bytes":0}`, tier, disk), string(b))
}

func TestGatherRefuses(t *testing.T) {
	f := table(t, 10, 4)
	s, err := cachetier.Open(f, cachetier.Options{})
	require.NoError(t, err)
	dst := []byte("untouched and long enough")
	require.EqualError(t, s.Gather(dst, []uint32{1, 10}), "cachetier: ids[1] is 10, and the table has 10 rows")
	require.Equal(t, "untouched and long enough", string(dst))
	require.Zero(t, s.Stats().InputRows)
	require.Panics(t, func() { s.Gather(dst[:15], []uint32{1, 2}) })
	require.NoError(t, s.Close())
	require.NoError(t, s.Close())
	require.Panics(t, func() { s.Gather(dst, nil) })
	require.Zero(t, s.Stats().InputRows)
}

func TestOptionsReportEveryProblem(t *testing.T) {
	err := cachetier.Options{DeviceBytes: -1, HostBytes: -2, Policy: "fifo", Engine: "tape", Readers: -3}.Validate()
	for _, want := range []string{"device budget of -1 bytes", "host budget of -2 bytes", `policy "fifo"`, `engine "tape"`, "-3 reads at a time"} {
		require.ErrorContains(t, err, want)
	}
	_, err = cachetier.Open(nil, cachetier.Options{Readers: 2000})
	require.ErrorContains(t, err, "2000 reads at a time")
	require.NoError(t, cachetier.Options{}.Validate())
}

func TestTruncatedFile(t *testing.T) {
	for _, engine := range []disk.Kind{disk.Mmap, disk.Pread} {
		t.Run(string(engine), func(t *testing.T) {
			f := table(t, 300, 100)
			size := f.RowBytes()
			s, err := cachetier.Open(f, cachetier.Options{DeviceBytes: int64(10 * size), HostBytes: 1 << 20, Engine: engine})
			require.NoError(t, err)
			defer s.Close()
			require.NoError(t, s.Gather(make([]byte, 3*size), []uint32{0, 20, 21}))
			before := s.Stats()

			whole := []uint32{0, 20, 21, 22, 23}
			want := direct(f, whole)
			last := f.Shards()[len(f.Shards())-1]
			require.NoError(t, os.Truncate(last.Path, last.DataOffset))
			ids := []uint32{20, 22, 23, uint32(last.FirstRow), 299}
			err = s.Gather(make([]byte, len(ids)*size), ids)
			require.ErrorIs(t, err, store.ErrCorrupt)
			require.ErrorContains(t, err, last.Dataset+": "+last.Section)
			require.NotContains(t, err.Error(), "\n")

			st := s.Stats()
			require.Zero(t, st.Tiers.Host.UsedRows, "emptied: rows 22 and 23 were admitted and never came")
			require.Equal(t, before.InputRows, st.InputRows)
			for range 2 {
				got := make([]byte, len(whole)*size)
				require.NoError(t, s.Gather(got, whole), "rows that are still there can be had")
				require.Equal(t, want, got)
			}
			checkSums(t, s.Stats())

			require.NoError(t, os.Truncate(f.Shards()[0].Path, 0))
			_, err = cachetier.Open(f, cachetier.Options{DeviceBytes: 1 << 20, Engine: engine})
			require.ErrorIs(t, err, store.ErrCorrupt)
			require.ErrorContains(t, err, "load the first 300 rows")
		})
	}
}

func TestStatsWhileGathersRun(t *testing.T) {
	f := table(t, 300, 100)
	s, err := cachetier.Open(f, cachetier.Options{DeviceBytes: 2000, HostBytes: 10000, Engine: disk.Pread})
	require.NoError(t, err)
	const gathers, n = 20, 250
	errs := make(chan error, 3)
	for g := range uint64(3) {
		go func() {
			rng := rand.New(rand.NewPCG(g, 1))
			dst := make([]byte, n*f.RowBytes())
			for range gathers {
				ids := skewed(rng, 300, n)
				if err := s.Gather(dst, ids); err != nil {
					errs <- err
					return
				}
				if !bytes.Equal(dst, direct(f, ids)) {
					errs <- fmt.Errorf("wrong rows")
					return
				}
			}
			errs <- nil
		}()
	}
	for done := 0; done < 3; {
		select {
		case err := <-errs:
			require.NoError(t, err)
			done++
		default:
			checkSums(t, s.Stats())
		}
	}
	require.EqualValues(t, 3*gathers*n, s.Stats().InputRows)
	require.NoError(t, s.Close())
}
