package cachetier_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/cachetier/device"
	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/kernels/kerneltest"
)

// hostReader is a backend that reads rows of the host, and keeps what it read.
type hostReader struct {
	kernels.HostGatherer
	size   int
	got    []byte
	locked int
	refuse error
	cannot bool
}

func (h *hostReader) LockMemory([]byte) (func() error, error) {
	if h.refuse != nil {
		return nil, h.refuse
	}
	h.locked++
	return func() error { h.locked--; return nil }, nil
}

func (h *hostReader) GatherHost(_ kernels.Tensor, table []byte, ids []uint32) bool {
	if h.cannot {
		return false
	}
	h.got = h.got[:0]
	for _, v := range ids {
		h.got = append(h.got, table[int(v)*h.size:][:h.size]...)
	}
	return true
}

// gather is gatherAll, but the backend reads the rows if it can.
func (h *hostReader) gather(t require.TestingT, s *cachetier.Stack, w *cachetier.Window, i int, ids []uint32) (rows []byte, read bool) {
	if !w.GatherTo(bg, i, kernels.Tensor{}) {
		return gatherAll(t, s, w, i, ids), false
	}
	if _, apart := s.Apart(); !apart {
		return bytes.Clone(h.got), true
	}
	at := make([]uint32, len(ids))
	require.Equal(t, w.Places(i, at)*h.size, len(h.got))
	return together(t, s, h.got, at), true
}

// TestGatherTo: a backend that reads the static region brings the rows that Gather copies, and the
// same is counted. It does so if the region has all rows that are not on a device, and else
// nothing. Close unlocks all that was locked.
func TestGatherTo(t *testing.T) {
	f := table(t, tableRows, 100)
	reads := 0
	rapid.Check(t, func(t *rapid.T) {
		o := drawOptions(t, f)
		if rapid.Bool().Draw(t, "all on the host") {
			o.HostBytes, o.Policy = int64(tableRows*f.RowBytes()), cachetier.Belady
		}
		groups := drawGroups(t, tableRows)
		h := &hostReader{size: f.RowBytes(), cannot: rapid.IntRange(0, 4).Draw(t, "cannot") == 0}
		if rapid.IntRange(0, 4).Draw(t, "refuse") == 0 {
			h.refuse = errors.New("too little locked memory")
		}
		var counts [2]cachetier.Stats
		for k := range counts {
			o := o
			if o.DeviceBytes > 0 { // else Remote's rows lie in a region that the host cannot address
				region, err := device.New(kerneltest.Remote(kernels.NewCPU(kernels.CPUOptions{Threads: 1})), 0, device.Size(o.DeviceBytes))
				require.NoError(t, err)
				defer region.Close()
				o.Region = region
			}
			s, err := cachetier.Open(bg, f, o)
			require.NoError(t, err)
			may := false
			if k == 1 {
				l := s.Lock(h)
				if h.refuse != nil {
					require.Zero(t, l.Bytes)
				} else {
					require.Equal(t, l.Of, l.Bytes)
				}
				s.ReadBy(h)
				may = s.StaticAlone() && l.Bytes > 0 && !h.cannot
			}
			first := s.Stats()
			for _, g := range groups {
				s.Expect(g)
				for len(g) > 0 {
					w := next(t, s)
					require.NoError(t, w.Load(bg))
					for i, ids := range g[:w.Steps()] {
						rows, read := h.gather(t, s, w, i, ids)
						require.True(t, bytes.Equal(direct(f, ids), rows), "wrong rows")
						require.Equal(t, may, read)
						if read {
							reads++
						}
					}
					w.Release()
					g = g[w.Steps():]
				}
			}
			counts[k] = s.Stats().Sub(first)
			counts[k].Disk.Seconds = 0
			require.NoError(t, s.Close())
			require.Zero(t, h.locked)
		}
		require.Equal(t, counts[0], counts[1])
	})
	require.Positive(t, reads)
}
