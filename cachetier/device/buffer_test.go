package device_test

import (
	"encoding/binary"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gnnstore/gnnstore/cachetier/device"
	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/kernels/kerneltest"
)

func cpu() kernels.Backend { return kernels.NewCPU(kernels.CPUOptions{Threads: 1}) }

// TestPartsNeverOverlap takes slots and rows in any order until the region is full, and a little
// further. Slots lie in order from its start, rows from its end, and each part holds only what its
// tenant has put there.
func TestPartsNeverOverlap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		be := rapid.SampledFrom([]kernels.Backend{cpu(), kernels.NewReference()}).Draw(t, "backend")
		before := kernels.HostBytes()
		slots := rapid.Int64Range(0, 3000).Draw(t, "bytes of slots")
		rows := rapid.SampledFrom([]int64{0, 1, 700, 100_000}).Draw(t, "bytes of rows")
		region, err := device.New(be, slots, rows)
		require.NoError(t, err)
		left, next := device.Size(slots+rows), 0
		var parts []*device.Part
		var tenants [][]byte // bytes of each part, all set to the number of its tenant
		for n := range rapid.IntRange(0, 12).Draw(t, "parts") {
			var p *device.Part
			var bytes []byte
			var size int64
			if rapid.Bool().Draw(t, "is of slots") {
				count, cols := rapid.IntRange(0, 40).Draw(t, "count"), rapid.IntRange(1, 33).Draw(t, "columns")
				size = device.SlotsSize(count, cols)
				if p, err = region.Slots(count, cols); err == nil {
					s := p.Tensor()
					require.Equal(t, [3]int{next, count, cols}, [3]int{s.Off, s.Rows, s.Cols})
					next += int(size / 2)
					bytes, _ = be.Host(s)
				}
			} else {
				size = rapid.Int64Range(0, 1500).Draw(t, "size")
				if p, err = region.Rows(1, 0, int(size)); err == nil {
					bytes = p.Bytes()
					require.Len(t, bytes, int(size))
					require.Equal(t, len(bytes), cap(bytes), "an append copies")
				}
				size = device.Size(size)
			}
			if size > left {
				require.ErrorContains(t, err, "the region has")
				continue
			}
			require.NoError(t, err)
			left -= size
			for i := range bytes {
				require.Zero(t, bytes[i])
				bytes[i] = byte(n + 1)
			}
			parts, tenants = append(parts, p), append(tenants, bytes)
		}
		for _, bytes := range tenants {
			for _, b := range bytes {
				require.Equal(t, bytes[0], b)
			}
		}
		for _, p := range parts {
			require.Panics(t, region.Close)
			p.Close()
			p.Close()
		}
		region.Close()
		region.Close()
		require.Equal(t, before, kernels.HostBytes())
	})
}

// TestCloseWantsBorrowersGone checks that Close panics: on a part that is lent, and on a region
// with open parts.
func TestCloseWantsBorrowersGone(t *testing.T) {
	region, err := device.New(cpu(), device.SlotsSize(3, 8), 100)
	require.NoError(t, err)
	slots, err := region.Slots(3, 8)
	require.NoError(t, err)
	rows, err := region.Rows(10, 0, 10)
	require.NoError(t, err)
	require.Len(t, rows.Lend(), 100)
	require.PanicsWithValue(t, "device: a part is closed while 1 borrowers have it", rows.Close)
	rows.Return()
	require.PanicsWithValue(t, "device: the region is closed and 2 parts of it are not", region.Close)
	rows.Close()
	slots.Close()
	require.Empty(t, rows.Bytes())
	require.Nil(t, slots.Tensor().Buf)
	region.Close()
	_, err = region.Slots(1, 1)
	require.EqualError(t, err, "device: 1 slots of 1 columns: the region has 0 bytes left")
}

// TestRowsApart: rows of any number and size lie in a region that the host cannot address, the
// first of them outermost, beside slots. Rows are in host memory if their size is odd, which halves
// cannot hold, or without a region.
func TestRowsApart(t *testing.T) {
	before := kernels.HostBytes()
	memory := cpu()
	for _, s := range []struct{ rows, size, piece int }{
		{1000, 64, 1000}, {1000, 64, 7}, {3, 4, 2}, {1, 2, 1}, {0, 4, 1}, {70, 6, 1},
	} {
		bytes := device.Size(int64(s.rows*s.size)) + device.Size(60)
		far, err := device.New(kerneltest.Remote(memory), device.SlotsSize(30, 64), bytes)
		require.NoError(t, err)
		require.True(t, far.Apart())
		slots, err := far.Slots(30, 64)
		require.NoError(t, err)
		first, err := far.Rows(3, 0, 20)
		require.NoError(t, err)
		rows, err := far.Rows(s.rows, 0, s.size)
		require.NoError(t, err)
		_, err = far.Rows(1, 0, 64)
		require.EqualError(t, err, "device: rows of 64 bytes: the region has 0 bytes left")
		require.Empty(t, rows.Bytes())
		require.True(t, rows.Apart())
		want := make([]uint16, s.rows*s.size/2)
		for i := range want {
			want[i] = uint16(i * 7)
		}
		n := s.size / 2
		for lo := 0; lo < s.rows; lo += s.piece {
			rows.Put(lo, slices.Clone(want[lo*n:min(lo+s.piece, s.rows)*n]))
		}
		first.Put(0, make([]uint16, 30))
		table := rows.Table()
		got, ok := memory.Host(table)
		require.True(t, ok)
		for v := range s.rows {
			for c := range n {
				at := 2 * (int(rows.At(v))*n + c)
				require.Equal(t, want[v*n+c], binary.LittleEndian.Uint16(got[at:]), "row %d", v)
			}
		}
		require.LessOrEqual(t, slots.Tensor().Off+slots.Tensor().Len(), table.Off)
		require.LessOrEqual(t, table.Off+table.Len(), first.Table().Off)
		for _, p := range []*device.Part{rows, first, slots} {
			p.Close()
		}
		far.Close()
	}
	far, err := device.New(kerneltest.Remote(memory), 0, 1<<20)
	require.NoError(t, err)
	for _, b := range []*device.Buffer{far, nil} {
		rows, err := b.Rows(1<<10, 0, 7)
		require.NoError(t, err)
		require.False(t, rows.Apart())
		require.Len(t, rows.Lend(), 7<<10)
		rows.Return()
		rows.Close()
	}
	far.Close()
	(*device.Buffer)(nil).Close()
	require.False(t, (*device.Buffer)(nil).Apart())
	require.True(t, device.Apart(kerneltest.Remote(memory)))
	require.False(t, device.Apart(memory))
	require.Equal(t, before, kernels.HostBytes())
}

func TestRegionsThatCannotBe(t *testing.T) {
	_, err := device.New(cpu(), -1, 5)
	require.EqualError(t, err, "device: a region for -1 bytes of slots and 5 of rows")
	_, err = device.New(cpu(), math.MaxInt64, 5)
	require.ErrorContains(t, err, "device: a region for ")
	_, err = device.New(cpu(), 1<<60, 1<<60)
	require.ErrorContains(t, err, "the device region of 2 EiB: no memory for a buffer")
	var refused *kernels.MemoryError
	require.ErrorAs(t, err, &refused)
}
