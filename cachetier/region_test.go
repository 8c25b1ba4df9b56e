package cachetier_test

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/cachetier/device"
	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/kernels/kerneltest"
)

// slots is another part of the device region that a Stack uses.
type slots struct {
	region *device.Buffer
	part   *device.Part
	bytes  []byte
}

// shareRegion draws whether o has a region that it shares with slots.
func shareRegion(t *rapid.T, o *cachetier.Options) (x slots) {
	if !rapid.Bool().Draw(t, "region") {
		return x
	}
	var be kernels.Backend = kernels.NewCPU(kernels.CPUOptions{Threads: 1})
	memory := be
	if rapid.Bool().Draw(t, "region apart") {
		be = kerneltest.Remote(be)
	}
	var err error
	x.region, err = device.New(be, device.SlotsSize(9, 16), device.Size(o.DeviceBytes))
	require.NoError(t, err)
	x.part, err = x.region.Slots(9, 16)
	require.NoError(t, err)
	x.bytes, _ = memory.Host(x.part.Tensor())
	for i := range x.bytes {
		x.bytes[i] = 0x5a
	}
	o.Region = x.region
	return x
}

// close checks that the other parts of the region left the slots alone, and closes the region. The
// other parts must be closed.
func (x slots) close(t *rapid.T) {
	if x.region == nil {
		return
	}
	require.Equal(t, bytes.Repeat([]byte{0x5a}, len(x.bytes)), x.bytes)
	x.part.Close()
	x.region.Close()
}

// gatherAll gathers the rows of a step. Rows that the host cannot address are put together with the
// others on the backend.
func gatherAll(t require.TestingT, s *cachetier.Stack, w *cachetier.Window, i int, ids []uint32) []byte {
	size := s.RowBytes()
	got := make([]byte, len(ids)*size)
	if _, apart := s.Apart(); !apart {
		require.NoError(t, w.Gather(bg, i, got))
		return got
	}
	at := make([]uint32, len(ids))
	came := got[:w.Places(i, at)*size]
	require.NoError(t, w.Gather(bg, i, came))
	all := together(t, s, came, at)
	if from, to := w.Keeps(i, at); len(from) > 0 {
		hot, _ := s.Apart()
		be, table := kernels.NewCPU(kernels.CPUOptions{Threads: 1}), tableOf(came, size/2)
		lists := kernels.NewTensor(be, kernels.U32, 2*len(from), 1)
		defer kernels.FreeTensors(be, lists, table)
		be.UploadU32(lists.Slice(0, len(from)), from)
		be.UploadU32(lists.Slice(len(from), lists.Rows), to)
		be.KeepRows(hot, table, lists.Slice(0, len(from)), lists.Slice(len(from), lists.Rows))
	}
	return all
}

// tableOf is rows of so many columns in a tensor of the CPU's.
func tableOf(rows []byte, cols int) kernels.Tensor {
	bits := make([]uint16, len(rows)/2)
	for i := range bits {
		bits[i] = binary.LittleEndian.Uint16(rows[2*i:])
	}
	be := kernels.NewCPU(kernels.CPUOptions{Threads: 1})
	table := kernels.NewTensor(be, kernels.F16, len(bits)/cols, cols)
	be.UploadHalf(table, bits)
	return table
}

// together puts rows that came together with the device's.
func together(t require.TestingT, s *cachetier.Stack, came []byte, at []uint32) []byte {
	be, cols := kernels.NewCPU(kernels.CPUOptions{Threads: 1}), s.RowBytes()/2
	hot, ok := s.Apart()
	require.True(t, ok)
	table, places := tableOf(came, cols), kernels.NewTensor(be, kernels.U32, len(at), 1)
	all := kernels.NewTensor(be, kernels.F16, len(at), cols)
	defer kernels.FreeTensors(be, table, places, all)
	be.UploadU32(places, at)
	be.RowsOf(all, hot, table, places)
	bits, ok := be.Host(all)
	require.True(t, ok)
	return bytes.Clone(bits)
}

// TestSlotsDisplaceRows: with any sizes and policy, steps get their rows while others store in the
// region where rows lay. The static region begins where the rows end at last.
func TestSlotsDisplaceRows(t *testing.T) {
	f := table(t, tableRows, 100)
	rapid.Check(t, func(t *rapid.T) {
		o := drawOptions(t, f)
		memory := kernels.NewCPU(kernels.CPUOptions{Threads: 1})
		counts := rapid.SliceOfN(rapid.IntRange(1, 300), 1, 3).Draw(t, "slots")
		o.SharedBytes = device.RingsSize(10, counts...)
		region, err := device.New(kerneltest.Remote(memory), o.SharedBytes, device.Size(o.DeviceBytes))
		require.NoError(t, err)
		o.Region = region
		policies := []cachetier.Policy{"", cachetier.None, cachetier.LRU, cachetier.Belady}
		o.DevicePolicy = rapid.SampledFrom(policies).Draw(t, "device policy")
		o.DynamicBytes = rapid.Int64Range(0, o.DeviceBytes+100).Draw(t, "dynamic")
		s, err := cachetier.Open(bg, f, o)
		require.NoError(t, err)
		rings, err := region.Rings(10, counts...)
		require.NoError(t, err)
		slots, ok := memory.Host(rings.Table())
		require.True(t, ok)
		kept, hot, _, _ := s.Layout()
		first, step, groups := s.Stats(), 0, drawGroups(t, tableRows)
		groups = append(groups, [][]uint32{{0, 1, 2}})
		for _, g := range groups {
			var taken []int64
			type store struct {
				ring  int
				slots []uint32
			}
			var stores []store // of each step
			for range g {
				taken = append(taken, rings.Taken(step))
				st := store{ring: rapid.IntRange(0, len(counts)-1).Draw(t, "ring")}
				to := rapid.IntRange(0, counts[st.ring]-1).Draw(t, "highest slot")
				for slot := 0; slot <= to; slot += 1 + to/7 {
					st.slots = append(st.slots, uint32(slot))
				}
				rings.Take(st.ring, step, st.slots)
				stores, step = append(stores, st), step+1
			}
			s.ExpectBeside(g, taken)
			for len(g) > 0 {
				w := next(t, s)
				require.NoError(t, w.Load(bg))
				for i, ids := range g[:w.Steps()] {
					require.True(t, bytes.Equal(direct(f, ids), gatherAll(t, s, w, i, ids)), "wrong rows")
					for _, slot := range stores[i].slots {
						place, ok := rings.Place(stores[i].ring, slot)
						require.True(t, ok)
						for b := range slots[int(place)*20:][:20] {
							slots[int(place)*20+b] = 0xee
						}
					}
				}
				w.Release()
				g, stores = g[w.Steps():], stores[w.Steps():]
			}
		}
		st := s.Stats().Sub(first)
		require.Equal(t, st.InputRows, st.Tiers.Device.RowsHit+st.Tiers.Host.RowsHit+st.Disk.Rows)
		if hot == tableRows {
			require.Zero(t, st.Disk.Rows, "displaced rows are on the host")
		}
		ids := []uint32{0, uint32(kept), tableRows - 1} // planned without steps that store
		if kept < tableRows-1 && kept > 0 {
			s.Expect([][]uint32{ids})
			w := next(t, s)
			require.NoError(t, w.Load(bg))
			require.True(t, bytes.Equal(direct(f, ids), gatherAll(t, s, w, 0, ids)), "wrong rows")
			w.Release()
		}
		s.Close()
		rings.Close()
		region.Close()
	})
}
