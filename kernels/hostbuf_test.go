package kernels

import (
	"fmt"
	"math"
	"sync"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// newHostBuf is NewHostBuf, closed when the test ends.
func newHostBuf(t testing.TB, bytes int) *HostBuf {
	t.Helper()
	h, err := NewHostBuf(bytes)
	require.NoError(t, err)
	t.Cleanup(h.Close)
	return h
}

func allZero(b []byte) bool {
	for _, x := range b {
		if x != 0 {
			return false
		}
	}
	return true
}

func TestHostBufSizesAndAlignment(t *testing.T) {
	start := HostBytes()
	for _, bytes := range []int{0, 1, 63, 64, 100, pageSize - 1, pageSize, pageSize + 1, 64 << 10, 100_000, hugePage - 1, hugePage, hugePage + 1, maxSpare, maxSpare + 1} {
		h, err := NewHostBuf(bytes)
		require.NoError(t, err)
		b := h.Bytes()
		require.Len(t, b, bytes)
		require.Equal(t, bytes, cap(b), "an append copies")
		require.True(t, allZero(b), bytes)
		at := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
		switch {
		case bytes >= hugePage && canMap:
			require.Zero(t, at%hugePage, bytes)
		case bytes >= pageSize && canMap:
			require.Zero(t, at%uintptr(pageSize), bytes)
		default:
			require.Zero(t, at%cacheLine, bytes)
		}
		for i := range b {
			b[i] = 0xaa // the last byte is there, too
		}
		if bytes >= pageSize && canMap {
			grown := HostBytes() - start
			require.GreaterOrEqual(t, grown, int64(bytes))
			require.LessOrEqual(t, grown, int64(bytes)*5/4+int64(pageSize))
		}
		h.Close()
		require.Empty(t, h.Bytes())
		h.Close() // does nothing
		require.Equal(t, start, HostBytes())
	}
}

func TestHostBufViews(t *testing.T) {
	h := newHostBuf(t, 8<<10)
	floats, halves, uints := h.Float32s(), h.Uint16s(), h.Uint32s()
	require.Len(t, floats, 2<<10)
	require.Len(t, halves, 4<<10)
	require.Len(t, uints, 2<<10)
	floats[2047] = 1
	require.Equal(t, math.Float32bits(1), uints[2047])
	require.Len(t, h.Uint64s(), 1<<10)
	require.Equal(t, uint64(math.Float32bits(1))<<32, h.Uint64s()[1023], "little-endian, as are all machines that are served")
	require.Len(t, h.Float64s(), 1<<10)
	require.Nil(t, newHostBuf(t, 0).Float32s())
	require.Panics(t, func() { newHostBuf(t, 6).Float32s() })
	require.Len(t, newHostBuf(t, 6).Uint16s(), 3)
}

// TestHostBufRecycles finds a closed buffer's memory in the next of its size, and finds it zeroed.
func TestHostBufRecycles(t *testing.T) {
	if !canMap {
		t.Log("every HostBuf is in the Go heap here")
	}
	const bytes = 300_000
	h := newHostBuf(t, bytes)
	at := unsafe.SliceData(h.Bytes())
	for i := range h.Bytes() {
		h.Bytes()[i] = 0xaa
	}
	h.Close()
	again := newHostBuf(t, bytes+1000)
	require.Equal(t, canMap, at == unsafe.SliceData(again.Bytes()))
	require.True(t, allZero(again.Bytes()))
}

func TestHostBufSparesAreBounded(t *testing.T) {
	var all []*HostBuf
	for range 2 * MaxSpareBytes / (1 << 20) {
		all = append(all, newHostBuf(t, 1<<20))
	}
	for _, h := range all {
		h.Close()
	}
	before := LimitSpare(3 << 20)
	require.EqualValues(t, MaxSpareBytes, before)
	require.EqualValues(t, 3<<20, SpareBytes())
	defer LimitSpare(before)
	spare.Lock()
	defer spare.Unlock()
	require.LessOrEqual(t, spare.bytes, 3<<20)
	total := 0
	for size, list := range spare.bySize {
		total += size * len(list)
	}
	require.Equal(t, spare.bytes, total)
}

// TestHostBufsAreApart opens, writes and closes in any order: a buffer keeps what was written to
// it, and starts as zeros.
func TestHostBufsAreApart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		start, open := HostBytes(), []*HostBuf{}
		holds := func(h *HostBuf, v byte) {
			b := h.Bytes()
			require.Equal(t, [2]byte{v, v}, [2]byte{b[0], b[len(b)-1]})
		}
		for range rapid.IntRange(1, 30).Draw(t, "operations") {
			if len(open) > 0 && rapid.Bool().Draw(t, "close") {
				i := rapid.IntRange(0, len(open)-1).Draw(t, "which")
				open[i].Close()
				open = append(open[:i], open[i+1:]...)
			} else {
				bytes := rapid.SampledFrom([]int{1, 5000, 65536, 70_000, 80_000, 200_000, 3 << 20}).Draw(t, "bytes")
				h, err := NewHostBuf(bytes)
				require.NoError(t, err)
				holds(h, 0)
				open = append(open, h)
			}
			for i, h := range open {
				h.Bytes()[0], h.Bytes()[len(h.Bytes())-1] = byte(i+1), byte(i+1)
			}
			for i, h := range open {
				holds(h, byte(i+1))
			}
		}
		for _, h := range open {
			h.Close()
		}
		require.Equal(t, start, HostBytes())
	})
}

func TestHostBufsFromManyGoroutines(t *testing.T) {
	start := HostBytes()
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 50 {
				h, err := NewHostBuf((i + 1) * 5000)
				if err != nil {
					panic(err)
				}
				b := h.Lend()
				for k := 0; k < len(b); k += 4096 {
					if b[k] != 0 {
						panic("not zero")
					}
					b[k] = byte(g + 1)
				}
				h.Return()
				h.Close()
			}
		})
	}
	wg.Wait()
	require.Equal(t, start, HostBytes())
}

func TestHostBufRefusals(t *testing.T) {
	for _, bytes := range []int{-1, math.MinInt, math.MaxInt, maxHostBuf + 1, 1 << 50} { // a system refuses the last

		_, err := NewHostBuf(bytes)
		var refused *MemoryError
		require.ErrorAs(t, err, &refused)
		require.Equal(t, bytes, refused.Bytes)
		require.ErrorContains(t, err, fmt.Sprintf("no memory for a buffer of %d bytes: ", bytes))
		require.ErrorContains(t, err, "use smaller caches")
	}
}

func TestAllocOfTooMuchIsAnError(t *testing.T) {
	c := NewCPU(CPUOptions{Threads: 1})
	alloc := func(t DType, n int) (err error) {
		defer RecoverMemory(&err)
		c.Free(c.Alloc(t, n))
		return nil
	}
	require.NoError(t, alloc(F32, 1<<20))
	for _, n := range []int{math.MaxInt, math.MaxInt / 2, math.MaxInt / 4} {
		for _, dtype := range []DType{F32, F16, U32} {
			var refused *MemoryError
			require.ErrorAs(t, alloc(dtype, n), &refused, "%v × %d", dtype, n)
		}
	}
	require.PanicsWithValue(t, "another", func() {
		var err error
		defer RecoverMemory(&err)
		panic("another")
	})
}

func TestLargeBuffersAreOutsideTheHeap(t *testing.T) {
	c := NewCPU(CPUOptions{Threads: 2})
	for _, dtype := range []DType{F32, F16, U32} {
		start := HostBytes()
		b := c.Alloc(dtype, 100_000)
		require.Equal(t, 100_000, b.Len())
		if canMap {
			require.GreaterOrEqual(t, HostBytes()-start, int64(200_000))
		}
		c.Free(b)
		c.Free(b) // does nothing
		require.Equal(t, start, HostBytes())
	}
}

// TestAllocIsZeroedAfterUse frees a buffer full of ones and allocates its like.
func TestAllocIsZeroedAfterUse(t *testing.T) {
	c := NewCPU(CPUOptions{Threads: 2})
	const n = 50_000
	zeros := make([]float32, n)
	for range 3 {
		x := Tensor{Buf: c.Alloc(F32, n), Rows: 1, Cols: n}
		require.Equal(t, zeros, valuesOf(c, x))
		c.Fill(x, 1)
		c.Free(x.Buf)
		require.PanicsWithValue(t, "kernels: Fill: dst 1×50000 at 0 ends outside its buffer of 0", func() { c.Fill(x, 1) })
	}
}

// BenchmarkHostBuf writes to every page of a buffer: a HostBuf, which may come back from the store
// of closed ones, a new map, and the Go heap.
func BenchmarkHostBuf(b *testing.B) {
	for _, size := range []int{64 << 10, 256 << 10, 1 << 20, 4 << 20} {
		use := func(b *testing.B, buffer []byte) {
			for i := 0; i < len(buffer); i += 4096 {
				buffer[i] = 1
			}
		}
		b.Run(fmt.Sprintf("kind=host/size=%dK", size>>10), func(b *testing.B) {
			b.SetBytes(int64(size))
			for b.Loop() {
				h, err := NewHostBuf(size)
				if err != nil {
					b.Fatal(err)
				}
				use(b, h.Bytes())
				h.Close()
			}
		})
		b.Run(fmt.Sprintf("kind=new/size=%dK", size>>10), func(b *testing.B) {
			if !canMap {
				b.Skip("no memory maps here")
			}
			b.SetBytes(int64(size))
			for b.Loop() {
				whole, err := mapMemory(size)
				if err != nil {
					b.Fatal(err)
				}
				use(b, whole)
				unmapMemory(whole)
			}
		})
		b.Run(fmt.Sprintf("kind=make/size=%dK", size>>10), func(b *testing.B) {
			b.SetBytes(int64(size))
			for b.Loop() {
				use(b, make([]byte, size))
			}
		})
	}
}
