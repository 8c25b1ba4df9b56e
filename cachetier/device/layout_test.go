package device_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gnnstore/gnnstore/cachetier/device"
)

func drawLayout(t *rapid.T) device.Layout {
	return device.Layout{
		SlotBytes: rapid.SampledFrom([]int{0, 1, 5, 8, 16, 24, 64}).Draw(t, "slotBytes"),
		RowBytes:  rapid.SampledFrom([]int{0, 1, 3, 8, 16, 40, 64}).Draw(t, "rowBytes"),
		Bytes:     rapid.Int64Range(0, 400).Draw(t, "bytes"),
		Rows:      rapid.IntRange(0, 40).Draw(t, "rows"),
	}
}

// TestLayoutKeepsSidesApart marks the bytes of slots and of the rows that are left beside them: none has two owners,
// all lie in the region and on their grid, and one more of the rows would not fit.
func TestLayoutKeepsSidesApart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := drawLayout(t)
		require.NoError(t, l.Validate())
		slots := rapid.IntRange(0, l.Slots()).Draw(t, "slots")
		owner := make([]int, l.Bytes)
		mark := func(at int64, size, who int) {
			for n := at; n < at+int64(size); n++ {
				require.Zero(t, owner[n])
				owner[n] = who
			}
		}
		for s := range slots {
			mark(l.SlotOffset(uint32(s)), l.SlotBytes, s+1)
		}
		features := l.Features(slots)
		require.LessOrEqual(t, features, l.Rows)
		last := l.Bytes
		for v := range features {
			at := l.FeatureOffset(uint32(v))
			require.Zero(t, at%int64(l.RowBytes))
			require.Equal(t, at, l.GridRow(uint32(v))*int64(l.RowBytes))
			require.Less(t, at, last, "the hottest are outermost")
			last = at
			mark(at, l.RowBytes, -1-v)
		}
		if l.RowBytes > 0 && features < l.Rows {
			free := last - last%int64(l.RowBytes) - int64(slots*l.SlotBytes)
			require.Less(t, free, int64(l.RowBytes))
		}
	})
}

func TestBufferLendsItsParts(t *testing.T) {
	b, err := device.NewBuffer(device.Layout{Bytes: 50, SlotBytes: 8, RowBytes: 12, Rows: 9})
	require.NoError(t, err)
	copy(b.Slot(1), "embedded")
	copy(b.Feature(0), "the hottest.")
	copy(b.Feature(2), "warm        ")
	want := make([]byte, 50)
	copy(want[8:], "embedded")
	copy(want[36:], "the hottest.")
	copy(want[12:], "warm        ") // rows lie where they lie, whoever else does: plans keep them apart
	require.Equal(t, want, b.Bytes())
	require.Equal(t, 8, cap(b.Slot(1)), "an append copies")
	require.Panics(t, func() { b.Slot(6) })
	require.Panics(t, func() { b.Feature(4) })
	require.Len(t, b.Lend(), 50)
	b.Return()
	b.Close()
	require.Empty(t, b.Bytes())
	b.Close()
}

func TestValidateNamesEveryProblem(t *testing.T) {
	require.EqualError(t, device.Layout{Bytes: -1, SlotBytes: -2, RowBytes: -3}.Validate(), "a region of -1 bytes: use 0 for none\n"+
		"embeddings of -2 bytes: use 0 for none\n0 rows of -3 bytes: use 0 for none")
	_, err := device.NewBuffer(device.Layout{Rows: 1 << 33})
	require.EqualError(t, err, "device: 8589934592 rows: ids are 32 bits")
	_, err = device.NewBuffer(device.Layout{Bytes: 1 << 62})
	require.ErrorContains(t, err, "no memory for a buffer")
}
