package extsort

import (
	"bytes"
	"encoding/binary"
	"io/fs"
	"math/rand/v2"
	"slices"
	"sync"
	"syscall"
	"testing"
	"unsafe"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/gnnstore/gnnstore/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// area returns an Area in which each bucket has a file of its own.
func area(t testing.TB) *Area {
	a, err := Open(storetest.NoSync, t.TempDir())
	require.NoError(t, err)
	a.Packed = 1
	return a
}

func TestRanges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Uint64Range(1, 1<<32-1).Draw(t, "n")
		r := EvenRanges(n, rapid.IntRange(1, 700).Draw(t, "k"))
		if rapid.Bool().Draw(t, "quantiles") {
			sample := rapid.SliceOf(rapid.Uint32Range(0, uint32(n-1))).Draw(t, "sample")
			width := max(n/500, 1)
			r = Quantiles(sample, n, rapid.IntRange(1, 60).Draw(t, "k"), width)
			for i := range r.Len() {
				lo, end := r.Bounds(i)
				require.LessOrEqual(t, end-lo, width)
			}
		}
		_, last := r.Bounds(r.Len() - 1)
		require.Equal(t, n, last)
		for range 20 {
			v := rapid.Uint32Range(0, uint32(n-1)).Draw(t, "v")
			lo, end := r.Bounds(r.Find(v))
			require.True(t, lo <= uint64(v) && uint64(v) < end)
		}
	})
}

// fill writes records through several Appenders at once, into buckets by ranges of lists.
func fill(t require.TestingT, a *Area, name string, r *Ranges, width int, records [][]byte) []Bucket {
	w, err := a.NewWriter(name, r.Len(), sector)
	require.NoError(t, err)
	var wg sync.WaitGroup
	for g := range 3 {
		wg.Go(func() {
			to := w.NewAppender()
			for i := g; i < len(records); i += 3 {
				k := binary.LittleEndian.Uint64(records[i])
				if width == 8 {
					to.Put8(r.Find(uint32(k>>32)), k)
				} else {
					to.Put(r.Find(uint32(k>>32)), records[i])
				}
			}
			to.Flush()
		})
	}
	wg.Wait()
	buckets, err := w.Close()
	require.NoError(t, err)
	return buckets
}

// TestSorter: whatever there is to sort, in however little memory, it comes out as slices.Sort has
// it.
func TestSorter(t *testing.T) {
	onDisk, inMemory := area(t), At(vfs.NewMem(), "spill")
	require.NoError(t, inMemory.fs.MkdirAll("spill", 0o777))
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		a := inMemory
		if n++; n%8 == 0 { // it is slow, and transfers go around its cache
			a = onDisk
		}
		a.Packed = rapid.SampledFrom([]int{1, 500, 64 << 10}).Draw(t, "packed")
		width := rapid.SampledFrom([]int{8, 16, 20, 27}).Draw(t, "width")
		lists := rapid.Uint32Range(1, 3000).Draw(t, "lists")
		count := rapid.IntRange(0, 20000).Draw(t, "records")
		hot := rapid.Float64Range(0, 1).Draw(t, "share of one list")
		few := rapid.Uint32Range(1, 1<<32-1).Draw(t, "items")
		rng := rand.New(rand.NewPCG(1, rapid.Uint64().Draw(t, "seed")))
		records := make([][]byte, count)
		for i := range records {
			list := rng.Uint32N(lists)
			if rng.Float64() < hot {
				list = lists / 2
			}
			rec := make([]byte, width)
			binary.LittleEndian.PutUint64(rec, MakeKey(list, rng.Uint32N(few)))
			if width > 8 {
				binary.LittleEndian.PutUint64(rec[8:], uint64(i))
				for j := 16; j < width; j++ {
					rec[j] = byte(i)
				}
			}
			records[i] = rec
		}
		r := EvenRanges(uint64(lists), rapid.IntRange(1, 9).Draw(t, "buckets"))
		buckets := fill(t, a, "x", r, width, records)
		room := rapid.Int64Range(1500, 30000).Draw(t, "room")
		s, err := a.NewSorter(room, rapid.Int64Range(1, 4000).Draw(t, "room for lists"), width, 1)
		require.NoError(t, err)
		defer s.Close()
		var got [][]byte
		lengths := make([]int, lists)
		for i, b := range buckets {
			lo, end := r.Bounds(i)
			last := -1
			require.NoError(t, s.Runs([]Bucket{b}, lo<<32, end<<32-1, func(runs []Run) error {
				run := runs[0]
				require.GreaterOrEqual(t, int(run.List), last, "in order")
				last = int(run.List)
				at := 0
				for l, length := range run.Lengths {
					list := run.List + uint32(l)
					lengths[list] += int(length)
					for range length {
						rec := make([]byte, 8)
						binary.LittleEndian.PutUint64(rec, MakeKey(list, run.Items[at]))
						if width > 8 {
							require.Equal(t, rec, run.Record(at)[:8])
							rec = bytes.Clone(run.Record(at))
						}
						got = append(got, rec)
						at++
					}
				}
				require.Len(t, run.Items, at)
				return nil
			}))
		}
		require.NoError(t, a.Remove(buckets...))
		slices.SortFunc(records, func(x, y []byte) int {
			kx, ky := binary.LittleEndian.Uint64(x), binary.LittleEndian.Uint64(y)
			if kx != ky {
				if kx < ky {
					return -1
				}
				return 1
			}
			return int(binary.LittleEndian.Uint64(append(bytes.Clone(x[8:]), make([]byte, 8)...))) -
				int(binary.LittleEndian.Uint64(append(bytes.Clone(y[8:]), make([]byte, 8)...)))
		})
		require.Equal(t, len(records), len(got))
		for i := range records {
			require.Equal(t, records[i], got[i], i)
		}
		left, err := a.fs.List(a.dir)
		require.NoError(t, err)
		require.Empty(t, left, "parts are removed")
	})
}

// TestOneEdge: a single key beyond the memory comes by its numbers, or streams where nothing rides
// on it.
func TestOneEdge(t *testing.T) {
	a := area(t)
	for _, width := range []int{8, 16} {
		records := make([][]byte, 5000)
		for i := range records {
			records[i] = binary.LittleEndian.AppendUint64(nil, MakeKey(3, 9))
			if width > 8 {
				records[i] = binary.LittleEndian.AppendUint64(records[i], uint64(i))
			}
		}
		r := EvenRanges(10, 1)
		buckets := fill(t, a, "x", r, width, records)
		s, err := a.NewSorter(1000, 10, width, 2)
		require.NoError(t, err)
		n := 0
		err = s.Runs([]Bucket{buckets[0], {}}, 0, 10<<32-1, func(runs []Run) error {
			for i := range runs[0].Items {
				if width > 8 {
					require.EqualValues(t, n, binary.LittleEndian.Uint64(runs[0].Record(i)[8:]))
				}
				n++
			}
			return nil
		})
		s.Close()
		require.NoError(t, err)
		require.Equal(t, 5000, n)
		require.NoError(t, a.Remove(buckets...))
		left, err := a.fs.List(a.dir)
		require.NoError(t, err)
		require.Empty(t, left)
	}
}

func TestPlacer(t *testing.T) {
	a := area(t)
	rapid.Check(t, func(t *rapid.T) {
		rows := rapid.Int64Range(1, 3000).Draw(t, "rows")
		width := rapid.IntRange(1, 3000).Draw(t, "width")
		memory := max(PlacerMemory(rows, width), rapid.Int64Range(1, 4<<20).Draw(t, "memory"))
		p, err := a.NewPlacer("p", rows, width, memory)
		require.NoError(t, err)
		want := make([]byte, rows*int64(width))
		rng := rand.New(rand.NewPCG(2, 3))
		for _, place := range rng.Perm(int(rows))[:rapid.IntRange(0, int(rows)).Draw(t, "put")] {
			row := want[place*width : (place+1)*width]
			for i := range row {
				row[i] = byte(rng.Uint32())
			}
			p.Put(uint32(place), row)
		}
		buckets, err := p.Close()
		require.NoError(t, err)
		got := make([]byte, 0, len(want))
		emit := func(first int64, part []byte) error {
			require.Equal(t, len(got), int(first)*width)
			got = append(got, part...)
			return nil
		}
		if PlacerFits(rows, width, memory) {
			require.Nil(t, buckets)
			require.NoError(t, p.Each(emit))
		} else {
			require.NoError(t, a.Placed(buckets, rows, width, memory, emit))
		}
		require.True(t, bytes.Equal(want, got))
		require.NoError(t, a.Remove(buckets...))
	})
}

// TestDiskFails fails the n-th operation for every n: the error comes back, nothing hangs, no
// goroutine stays.
func TestDiskFails(t *testing.T) {
	for n := int32(0); ; n++ {
		inj := errorfs.OnIndex(n)
		fsys := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
			if err := inj.MaybeError(op); err != nil {
				return &fs.PathError{Op: "do", Path: op.Path, Err: syscall.ENOSPC}
			}
			return nil
		}))
		a, err := Open(fsys, "spill")
		if a != nil {
			a.Packed = 1
		}
		if err != nil {
			require.ErrorIs(t, err, syscall.ENOSPC)
			continue
		}
		w, err := a.NewWriter("x", 2, sector)
		require.NoError(t, err)
		to := w.NewAppender()
		for i := range uint64(3000) {
			to.Put8(int(i%2), MakeKey(uint32(i%2), uint32(i)))
		}
		to.Flush()
		buckets, err := w.Close()
		if err == nil {
			var s *Sorter
			s, err = a.NewSorter(500, 10, 8, 1)
			require.NoError(t, err)
			for i, b := range buckets {
				if err == nil {
					err = s.Runs([]Bucket{b}, uint64(i)<<32, uint64(i+1)<<32-1, func([]Run) error { return nil })
				}
			}
			s.Close()
			if err == nil {
				err = a.Remove(buckets...)
			}
		}
		if err == nil {
			require.Greater(t, n, int32(10))
			return
		}
		require.ErrorIs(t, err, syscall.ENOSPC)
	}
}

func TestShortBucket(t *testing.T) {
	a := area(t)
	buckets := fill(t, a, "x", EvenRanges(1, 1), 8, [][]byte{make([]byte, 8)})
	require.True(t, a.Has(buckets[0]))
	buckets[0].Bytes = 1 << 20
	require.False(t, a.Has(buckets[0]))
	_, err := a.Load(buckets[0], 0, 1<<20, make([]byte, 1<<20))
	require.ErrorContains(t, err, "of 1048576: something else changed it")
}

func BenchmarkSorter(b *testing.B) {
	a := area(b)
	const n, lists = 4 << 20, 1 << 18
	rng := rand.New(rand.NewPCG(1, 1))
	w, err := a.NewWriter("x", 1, MaxBlock)
	require.NoError(b, err)
	to := w.NewAppender()
	for range n {
		to.Put8(0, MakeKey(rng.Uint32N(lists), rng.Uint32()))
	}
	to.Flush()
	buckets, err := w.Close()
	require.NoError(b, err)
	s, err := a.NewSorter(n, lists, 8, 1)
	require.NoError(b, err)
	defer s.Close()
	b.SetBytes(8 * n)
	for b.Loop() {
		require.NoError(b, s.Runs(buckets, 0, lists<<32-1, func([]Run) error { return nil }))
	}
	b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Medges/s")
}

// TestMemoryThatLiesElsewhere: transfers around the page cache want memory on a sector; where a
// buffer does not lie so, as under the race detector, they go through it.
func TestMemoryThatLiesElsewhere(t *testing.T) {
	a := area(t)
	kept, err := a.Keep("x", bytes.Repeat([]byte("0123456789"), 1000))
	require.NoError(t, err)
	dst := make([]byte, RoundUp(kept.Bytes)+16)
	skip := int(-uintptr(unsafe.Pointer(unsafe.SliceData(dst))) % 8)
	got, err := a.Load(kept, 0, kept.Bytes, dst[skip+1:][:RoundUp(kept.Bytes)])
	require.NoError(t, err)
	require.Equal(t, "0123456789", string(got[9990:]))
}
