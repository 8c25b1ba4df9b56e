//go:build cuda && linux

package cuda

import (
	"errors"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/kernels/cuda/driver"
	"github.com/gnnstore/gnnstore/kernels/cuda/drivertest"
)

// rounds has a buffer that is uploaded, used and uploaded again, as a pipeline does with a step's,
// and returns what was computed: 10 + 2i, for each i below 6. The first upload goes to memory that
// an operation is still to read.
func rounds(b *Backend) []float32 {
	const n = 1000
	x := kernels.Tensor{Buf: b.Alloc(kernels.F32, n), Rows: n, Cols: 1}
	sum := kernels.Tensor{Buf: b.Alloc(kernels.F32, n), Rows: n, Cols: 1}
	values, got := make([]float32, n), make([]float32, 6)
	for i := range got {
		for k := range values {
			values[k] = float32(i)
		}
		b.UploadF32(x, values)
		b.Fill(sum, 10)
		b.Add(sum, x)
		b.Add(sum, x)
		b.FetchF32(got[i:i+1], sum.Slice(0, 1))
		if i%3 == 2 {
			b.Mark()()
		}
	}
	b.Free(x.Buf)
	b.Free(sum.Buf)
	return got
}

// Each planted fault of ordering changes what is computed, on a device that runs work late or out
// of turn.
func TestPlantedFaults(t *testing.T) {
	right := []float32{10, 12, 14, 16, 18, 20}
	for _, mode := range []drivertest.Mode{drivertest.Lazy, drivertest.Ahead, drivertest.Eager} {
		b, _ := openDevice(t, drivertest.Options{Mode: mode}, Options{})
		require.Equal(t, right, rounds(b))
	}
	// waits leaves out the waits of the n-th stream that is made.
	waits := func(n int) func(c *driver.Calls) {
		return func(c *driver.Calls) {
			create, wait, of := c.StreamCreate, c.StreamWaitEvent, map[driver.Stream]int{}
			c.StreamCreate = func(flags uint32) (driver.Stream, error) {
				s, err := create(flags)
				of[s] = len(of)
				return s, err
			}
			c.StreamWaitEvent = func(s driver.Stream, e driver.Event) error {
				if of[s] == n {
					return nil
				}
				return wait(s, e)
			}
		}
	}
	for name, plant := range map[string]func(c *driver.Calls){
		"an operation does not wait for the upload": waits(0),
		"an upload does not wait for the operation": waits(1),
		"a slot is filled before it was copied": func(c *driver.Calls) {
			c.EventQuery = func(driver.Event) (bool, error) { return true, nil }
		},
		"a fetch is read before it came": func(c *driver.Calls) {
			c.EventSynchronize = func(driver.Event) error { return nil }
		},
		"an event is recorded on the wrong stream": func(c *driver.Calls) {
			create, record := c.StreamCreate, c.EventRecord
			var first driver.Stream
			c.StreamCreate = func(flags uint32) (s driver.Stream, err error) {
				if s, err = create(flags); first == 0 {
					first = s
				}
				return s, err
			}
			c.EventRecord = func(e driver.Event, _ driver.Stream) error { return record(e, first) }
		},
		"an address is one row too far": func(c *driver.Calls) {
			upload := c.MemcpyHtoDAsync
			c.MemcpyHtoDAsync = func(dst driver.Ptr, src unsafe.Pointer, n uint64, s driver.Stream) error {
				if n == 4000 {
					dst, n = dst+4, n-4
				}
				return upload(dst, src, n, s)
			}
		},
	} {
		found := false
		for _, mode := range []drivertest.Mode{drivertest.Lazy, drivertest.Ahead} {
			d := newDevice(t, drivertest.Options{Mode: mode})
			calls := *d.Calls()
			plant(&calls)
			b, err := Open(Options{Calls: &calls})
			require.NoError(t, err)
			got := rounds(b)
			for i := range got {
				found = found || got[i] != right[i]
			}
			require.NoError(t, b.Close())
		}
		require.True(t, found, name)
	}
}

// A backend that cannot open gives back what it has, whichever call is refused.
func TestOpenRefused(t *testing.T) {
	d := newDevice(t, drivertest.Options{})
	b, err := Open(Options{Calls: d.Calls()})
	require.NoError(t, err)
	require.NoError(t, b.Close())
	requireNothingHeld(t, d)
	for call, n := range d.Counts() {
		switch call {
		case "CtxSetCurrent", "DevicePrimaryCtxRelease", "ModuleUnload", "MemFree", "StreamDestroy", "StreamSynchronize",
			"MemHostUnregister", "MemHostRegister", "EventDestroy":
			continue // not of Open, or not refused by it
		}
		for i := range n {
			d := newDevice(t, drivertest.Options{})
			d.Fail(call, i+1, driver.ErrUnknown)
			b, err := Open(Options{Calls: d.Calls()})
			if err == nil {
				require.NoError(t, b.Close())
				continue
			}
			require.ErrorIs(t, err, driver.ErrUnknown, "%s, call %d", call, i+1)
			requireNothingHeld(t, d)
		}
	}
}

// recovered returns what f panics with as RecoverMemory returns it.
func recovered(f func()) (err error) {
	defer kernels.RecoverMemory(&err)
	f()
	return nil
}

// Device memory that does not suffice is a MemoryError. Memory of freed buffers is given back
// first.
func TestOutOfMemory(t *testing.T) {
	b, _ := openDevice(t, drivertest.Options{Memory: 1 << 20}, Options{})
	before := b.Bytes().Device
	var all []kernels.Buffer
	err := recovered(func() {
		for {
			all = append(all, b.Alloc(kernels.F32, 50_000))
		}
	})
	var memory *kernels.MemoryError
	require.ErrorAs(t, err, &memory)
	require.Equal(t, 200_000, memory.Bytes)
	require.ErrorIs(t, err, driver.ErrOutOfMemory)
	require.Len(t, all, 5)
	require.Equal(t, before+5*200_192, b.Bytes().Device)
	for _, of := range all {
		b.Free(of)
	}
	require.Equal(t, before, b.Bytes().Device)
	b.Free(b.Alloc(kernels.F32, 200_000)) // none of the spare ones has so much
}

// A call that is refused panics with a DeviceError that names the operation.
func TestCallRefused(t *testing.T) {
	b, d := openDevice(t, drivertest.Options{}, Options{})
	x := kernels.Tensor{Buf: b.Alloc(kernels.F32, 10), Rows: 10, Cols: 1}
	for call, op := range map[string]func(){
		"LaunchKernel":     func() { b.Fill(x, 1) },
		"MemcpyHtoDAsync":  func() { b.UploadF32(x, make([]float32, 10)) },
		"MemcpyDtoHAsync":  func() { b.DownloadF32(make([]float32, 10), x) },
		"EventSynchronize": func() { b.Mark()() },
		"MemsetD8Async":    func() { b.Alloc(kernels.F32, 3) },
	} {
		d.Fail(call, 1, driver.ErrLaunchFailed)
		err := recovered(op)
		var device *kernels.DeviceError
		require.ErrorAs(t, err, &device, call)
		require.Equal(t, "a device of Go", device.Device)
		require.ErrorIs(t, err, driver.ErrLaunchFailed)
		require.ErrorContains(t, err, "cu"+call)
	}
	b.Fill(x, 3)
	got := make([]float32, 10)
	b.DownloadF32(got, x)
	require.Equal(t, float32(3), got[9])
}

// broken is a runner whose kernels all fail.
type broken struct{}

func (broken) Launch(kernel string, _, _ driver.Dim, _ uint32, _ []byte) error {
	return errors.New(kernel + " reads at 0x8")
}

// A kernel that faults loses the context. The error comes with the next wait.
func TestLostContext(t *testing.T) {
	d := drivertest.New(drivertest.Options{Runner: broken{}})
	b, err := Open(Options{Calls: d.Calls()})
	require.NoError(t, err)
	x := kernels.Tensor{Buf: b.Alloc(kernels.F32, 10), Rows: 10, Cols: 1}
	b.Fill(x, 1)
	err = recovered(func() { b.Mark()() })
	require.ErrorIs(t, err, driver.ErrIllegalAddress)
	require.ErrorContains(t, err, "fill_wide reads at 0x8")
	require.ErrorContains(t, err, "start the process again")
	var refused *driver.Error
	require.ErrorAs(t, err, &refused)
	require.True(t, refused.Sticky())
	require.ErrorIs(t, recovered(func() { b.Fill(x, 1) }), driver.ErrIllegalAddress)
	require.Error(t, b.Close())
}

// An id out of range is found by the kernel. Mark's wait names the operation, and what comes after
// works.
func TestOutOfRange(t *testing.T) {
	b, _ := openDevice(t, drivertest.Options{}, Options{})
	column := func(typ kernels.DType, n int) kernels.Tensor {
		return kernels.Tensor{Buf: b.Alloc(typ, n), Type: typ, Rows: n, Cols: 1}
	}
	dst, src, ids := column(kernels.F32, 3), column(kernels.F32, 5), column(kernels.U32, 3)
	b.UploadU32(ids, []uint32{4, 5, 0})
	b.GatherRows(dst, src, ids)
	wait := b.Mark()
	require.PanicsWithValue(t, "kernels: GatherRows: an id or a position is out of range, at 1", wait)
	logits, labels := kernels.Tensor{Buf: src.Buf, Rows: 1, Cols: 5}, ids.Slice(1, 2)
	b.SoftmaxCrossEntropy(dst.Slice(0, 1), logits, logits, labels, 1)
	require.PanicsWithValue(t, "kernels: SoftmaxCrossEntropy: a label is out of range, at 0",
		func() { b.DownloadF32(make([]float32, 3), dst) })
	b.UploadU32(ids, []uint32{4, 3, 0})
	b.GatherRows(dst, src, ids)
	b.Mark()()
}

// What a step allocates and locks comes from earlier steps: the driver is not asked again.
func TestSteadyMemory(t *testing.T) {
	b, d := openDevice(t, drivertest.Options{}, Options{})
	var first map[string]int
	for i := range 20 {
		rounds(b)
		if i == 3 {
			first = d.Counts()
		}
	}
	last := d.Counts()
	for _, call := range []string{"MemAlloc", "MemFree", "MemHostRegister", "ModuleGetFunction"} {
		require.Equal(t, first[call], last[call], call)
	}
}
