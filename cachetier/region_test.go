package cachetier_test

import (
	"bytes"
	"encoding/binary"

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
	hot, apart := s.Apart()
	if !apart {
		require.NoError(t, w.Gather(bg, i, got))
		return got
	}
	be, at := kernels.NewCPU(kernels.CPUOptions{Threads: 1}), make([]uint32, len(ids))
	n := w.Places(i, at)
	require.NoError(t, w.Gather(bg, i, got[:n*size]))
	came := make([]uint16, n*size/2)
	for i := range came {
		came[i] = binary.LittleEndian.Uint16(got[2*i:])
	}
	table := kernels.NewTensor(be, kernels.F16, n, size/2)
	places := kernels.NewTensor(be, kernels.U32, len(ids), 1)
	all := kernels.NewTensor(be, kernels.F16, len(ids), size/2)
	defer kernels.FreeTensors(be, table, places, all)
	be.UploadHalf(table, came)
	be.UploadU32(places, at)
	be.RowsOf(all, hot, table, places)
	bits, ok := be.Host(all)
	require.True(t, ok)
	return append(got[:0], bits...)
}
