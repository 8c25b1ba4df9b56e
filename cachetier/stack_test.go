package cachetier_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

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

// direct returns the bytes that Gather must deliver.
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

// checkSums checks st against the equations in the comment of Stats.
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
	for _, dim := range []int{1, 3, 767} {
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
		for _, device := range []int64{0, 1, all / 2, all + 1, math.MaxInt64} {
			for _, host := range []int64{0, 1, size, 20*size + 2000, all / 2, all + 1, math.MaxInt64} {
				for _, pol := range policy.Kinds {
					for _, engine := range []disk.Kind{disk.Mmap, disk.Pread} {
						o := cachetier.Options{DeviceBytes: device, HostBytes: host, Policy: pol, Engine: engine, Readers: 3}
						s, err := cachetier.Open(bg, f, o)
						require.NoError(t, err)
						for i, ids := range batches {
							got := make([]byte, len(ids)*int(size))
							require.NoError(t, s.Gather(bg, got, ids))
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

func TestCountersDoNotDependOnReaders(t *testing.T) {
	f := table(t, 300, 100)
	var first cachetier.Stats
	for _, readers := range []int{1, 2, 64} {
		s, err := cachetier.Open(bg, f, cachetier.Options{DeviceBytes: 3000, HostBytes: 20000, Policy: cachetier.LRU, Engine: disk.Pread, Readers: readers})
		require.NoError(t, err)
		rng := rand.New(rand.NewPCG(7, 8))
		for range 10 {
			ids := skewed(rng, 300, 200)
			require.NoError(t, s.Gather(bg, make([]byte, len(ids)*f.RowBytes()), ids))
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
	s, err := cachetier.Open(bg, f, cachetier.Options{DeviceBytes: 10*size + 5, Engine: disk.Buffered})
	require.NoError(t, err)
	defer s.Close()
	st := s.Stats()
	require.Zero(t, st.InputRows)
	require.EqualValues(t, 10, st.Warmup.Rows)
	require.Equal(t, 10*size, st.Warmup.BytesWanted)
	require.Equal(t, 10*size, st.Tiers.Device.BytesRead)
	require.Equal(t, cachetier.Disk{}, st.Disk)

	ids := []uint32{0, 9, 10, 10}
	require.NoError(t, s.Gather(bg, make([]byte, 4*size), ids))
	delta := s.Stats().Sub(st)
	checkSums(t, delta)
	require.EqualValues(t, 4, delta.InputRows)
	require.EqualValues(t, 2, delta.Tiers.Device.RowsHit)
	require.EqualValues(t, 2, delta.Disk.Rows)
	require.EqualValues(t, 1, delta.Disk.RowsRepeated)
	require.EqualValues(t, store.PageSize, delta.Disk.BytesRead, "a page for one row, wanted twice")
	require.EqualValues(t, store.PageSize/float64(2*size), delta.Disk.Amplification)
	require.Zero(t, delta.Warmup)
	require.Zero(t, delta.Tiers.Device.BytesRead)
	require.EqualValues(t, 10, delta.Tiers.Device.UsedRows)
}

func TestStatsKeysAreStable(t *testing.T) {
	b, err := json.Marshal(cachetier.Stats{})
	require.NoError(t, err)
	tier := `{"capacity_bytes":0,"used_bytes":0,"capacity_rows":0,"used_rows":0,"index_bytes":0,"rows_hit":0,"rows_missed":0,"bytes_out":0,"bytes_read":0,"evictions":0}`
	disk := `{"rows":0,"rows_repeated":0,"bytes_wanted":0,"bytes_read":0,"reads":0,"seconds":0,"amplification":0}`
	require.JSONEq(t, fmt.Sprintf(`{"tiers":{"device":%[1]s,"host":%[1]s,"disk":%[1]s},"disk":%[2]s,"warmup":%[2]s,"input_rows":0,"row_bytes":0,`+
		`"windows":0,"static_rows_hit":0,"rows_bypassed":0}`, tier, disk), string(b))
}

func TestGatherRefuses(t *testing.T) {
	f := table(t, 10, 4)
	s, err := cachetier.Open(bg, f, cachetier.Options{})
	require.NoError(t, err)
	dst := []byte("untouched and long enough")
	require.EqualError(t, s.Gather(bg, dst, []uint32{1, 10}), "cachetier: ids[1] is 10, and the table has 10 rows")
	require.Equal(t, "untouched and long enough", string(dst))
	require.Zero(t, s.Stats().InputRows)
	require.Panics(t, func() { s.Gather(bg, dst[:15], []uint32{1, 2}) })
	require.NoError(t, s.Close())
	require.NoError(t, s.Close())
	require.Panics(t, func() { s.Gather(bg, dst, nil) })
	require.Zero(t, s.Stats().InputRows)
}

func TestOptionsReportEveryProblem(t *testing.T) {
	err := cachetier.Options{
		DeviceBytes: -1, HostBytes: -2, StaticBytes: -4, Policy: "fifo", Lookahead: -5, Engine: "tape", Readers: -3,
	}.Validate()
	for _, want := range []string{"device budget of -1 bytes", "host budget of -2 bytes", "static region of -4 bytes",
		"look-ahead of -5 groups", `policy "fifo"`, `engine "tape"`, "-3 reads at a time"} {
		require.ErrorContains(t, err, want)
	}
	_, err = cachetier.Open(bg, nil, cachetier.Options{Readers: 2000})
	require.ErrorContains(t, err, "2000 reads at a time")
	require.NoError(t, cachetier.Options{}.Validate())
}

func TestTruncatedFile(t *testing.T) {
	for _, engine := range []disk.Kind{disk.Mmap, disk.Pread} {
		t.Run(string(engine), func(t *testing.T) {
			f := table(t, 300, 100)
			size := f.RowBytes()
			o := cachetier.Options{DeviceBytes: int64(10 * size), HostBytes: int64(250 * size), Engine: engine}
			s, err := cachetier.Open(bg, f, o)
			require.NoError(t, err)
			defer s.Close()
			require.NoError(t, s.Gather(bg, make([]byte, 3*size), []uint32{0, 20, 21}))
			before := s.Stats()

			whole := []uint32{0, 20, 21, 22, 23}
			want := direct(f, whole)
			last := f.Shards()[len(f.Shards())-1]
			require.NoError(t, os.Truncate(last.Path, last.DataOffset))
			ids := []uint32{20, 22, 23, uint32(last.FirstRow), 299}
			refused := func(err error) {
				require.ErrorIs(t, err, store.ErrCorrupt)
				require.ErrorContains(t, err, last.Dataset+": "+last.Section)
				require.NotContains(t, err.Error(), "\n")
				require.Equal(t, before.InputRows, s.Stats().InputRows)
				require.Equal(t, before.Tiers.Host.UsedRows, s.Stats().Tiers.Host.UsedRows)
			}
			refused(s.Gather(bg, make([]byte, len(ids)*size), ids))

			s.Expect([][]uint32{whole, ids})
			w := next(t, s)
			require.Equal(t, 2, w.Steps())
			refused(w.Load(bg))
			require.Error(t, w.Load(bg), "still")
			require.Panics(t, func() { w.Gather(bg, 0, make([]byte, len(whole)*size)) })
			s.Expect([][]uint32{ids})
			s.Reset()
			require.Nil(t, next(t, s))

			for i := range 4 { // intact rows can be gathered, planned or not, and rows that never came do not count as there
				got := make([]byte, len(whole)*size)
				if i%2 == 0 {
					require.NoError(t, s.Gather(bg, got, whole))
				} else {
					s.Expect([][]uint32{whole, whole})
					w := next(t, s)
					require.NoError(t, w.Load(bg))
					require.NoError(t, w.Gather(bg, 1, got))
					w.Release()
				}
				require.Equal(t, want, got)
			}
			st := s.Stats()
			require.Equal(t, st.InputRows, st.Tiers.Device.RowsHit+st.Tiers.Host.RowsHit+st.Disk.Rows)
			require.Zero(t, s.SetsInUse())

			require.NoError(t, os.Truncate(f.Shards()[0].Path, 0))
			for want, o := range map[string]cachetier.Options{
				"load the first 300 rows": {DeviceBytes: 1 << 20, Engine: engine},
				"load rows 0 to 300":      {HostBytes: 1 << 20, Engine: engine},
				"fill the host cache":     {HostBytes: int64(100 * size), Prewarm: true, Engine: engine},
			} {
				_, err = cachetier.Open(bg, f, o)
				require.ErrorIs(t, err, store.ErrCorrupt)
				require.ErrorContains(t, err, want)
			}
		})
	}
}

func TestStatsWhileGathersRun(t *testing.T) {
	f := table(t, 300, 100)
	s, err := cachetier.Open(bg, f, cachetier.Options{DeviceBytes: 2000, HostBytes: 20000, Engine: disk.Pread})
	require.NoError(t, err)
	const gathers, n = 20, 250
	errs := make(chan error, 3)
	for g := range uint64(3) {
		go func() {
			rng := rand.New(rand.NewPCG(g, 1))
			dst := make([]byte, n*f.RowBytes())
			for range gathers {
				ids := skewed(rng, 300, n)
				if err := s.Gather(bg, dst, ids); err != nil {
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
