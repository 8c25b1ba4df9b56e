//go:build cuda && linux

package cuda

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/kernels/cuda/driver"
	"github.com/gnnstore/gnnstore/kernels/cuda/drivertest"
)

// lockable returns memory of n bytes that is not locked yet.
func lockable(t testing.TB, n int) *kernels.HostBuf {
	h, err := kernels.NewHostBuf(n)
	require.NoError(t, err)
	t.Cleanup(h.Close)
	return h
}

// registered returns how often memory was registered and given up.
func registered(d *drivertest.Device) (locked, unlocked int) {
	n := d.Counts()
	return n["MemHostRegister"], n["MemHostUnregister"]
}

// TestLocks: memory is registered and given up in pairs, whether it is closed before the backend or
// after.
func TestLocks(t *testing.T) {
	d := newDevice(t, drivertest.Options{})
	b, err := Open(Options{Calls: d.Calls()})
	require.NoError(t, err)
	before, after := lockable(t, 100_000), lockable(t, 3<<20)
	require.NoError(t, before.Lock(b))
	require.NoError(t, after.Lock(b))
	require.Equal(t, []float32{10, 12, 14, 16, 18, 20}, rounds(b)) // has slots
	before.Close()
	locked, unlocked := registered(d)
	require.Equal(t, 1, unlocked)
	require.NoError(t, b.Close())
	_, unlocked = registered(d)
	require.Equal(t, locked, unlocked)
	after.Close()
	require.Equal(t, locked, unlocked)
	requireNothingHeld(t, d)
}

// hostRounds has rows of locked memory brought to the same tensor, one after the other, and returns
// what was computed: what rounds returns. read counts the rows that the device read.
func hostRounds(t testing.TB, b *Backend) (got []float32, read int) {
	const rows, cols = 6, 1000
	table := lockable(t, 4*rows*cols)
	_ = table.Lock(b)
	values := table.Float32s()
	for i := range values {
		values[i] = float32(i / cols)
	}
	x, sum := kernels.NewTensor(b, kernels.F32, 1, cols), kernels.NewTensor(b, kernels.F32, 1, cols)
	first := kernels.Tensor{Buf: sum.Buf, Rows: 1, Cols: 1}
	got = make([]float32, rows)
	ids := make([]uint32, 1)
	for i := range got {
		ids[0] = uint32(i)
		if b.GatherHost(x, table.Bytes(), ids) {
			read++
		} else {
			b.UploadF32(x, values[i*cols:][:cols])
		}
		ids[0] = 1 << 31
		b.Fill(sum, 10)
		b.Add(sum, x)
		b.Add(sum, x)
		b.FetchF32(got[i:i+1], first)
		if i%3 == 2 {
			b.Mark()()
		}
	}
	b.Free(x.Buf)
	b.Free(sum.Buf)
	table.Close()
	return got, read
}

// Rows that the device reads come in their turn, and planted faults of ordering change what is
// computed.
func TestPlantedFaultsOfGatherHost(t *testing.T) {
	right := []float32{10, 12, 14, 16, 18, 20}
	for _, mode := range []drivertest.Mode{drivertest.Lazy, drivertest.Ahead, drivertest.Eager} {
		b, _ := openDevice(t, drivertest.Options{Mode: mode}, Options{})
		got, read := hostRounds(t, b)
		require.Equal(t, right, got)
		require.Equal(t, len(right), read)
	}
	for name, plant := range map[string]func(c *driver.Calls){
		"nothing waits for another stream": func(c *driver.Calls) {
			c.StreamWaitEvent = func(driver.Stream, driver.Event) error { return nil }
		},
		"a slot is filled before it was read": func(c *driver.Calls) {
			c.EventQuery = func(driver.Event) (bool, error) { return true, nil }
		},
	} {
		found := false
		for _, mode := range []drivertest.Mode{drivertest.Lazy, drivertest.Ahead} {
			d := newDevice(t, drivertest.Options{Mode: mode})
			calls := *d.Calls()
			plant(&calls)
			b, err := Open(Options{Calls: &calls})
			require.NoError(t, err)
			got, _ := hostRounds(t, b)
			for i := range got {
				found = found || got[i] != right[i]
			}
			require.NoError(t, b.Close())
		}
		require.True(t, found, name)
	}
}

// TestLockRefused: the driver refuses to lock memory, or to give its address on the device. The
// bits stay the same, Close gives everything back, and the note has the remedy.
func TestLockRefused(t *testing.T) {
	right := []float32{10, 12, 14, 16, 18, 20}
	d := newDevice(t, drivertest.Options{})
	b, err := Open(Options{Calls: d.Calls()})
	require.NoError(t, err)
	hostRounds(t, b)
	all := b.LockedSlots()
	require.Equal(t, all.Of, all.Bytes)
	require.Positive(t, all.Of)
	require.Empty(t, all.Why)
	require.NoError(t, b.Close())
	locks, _ := registered(d)
	require.GreaterOrEqual(t, locks, 3) // the table, and slots
	for _, call := range []string{"MemHostRegister", "MemHostGetDevicePointer"} {
		for n := range locks {
			d := newDevice(t, drivertest.Options{})
			d.Fail(call, n+1, driver.ErrOutOfMemory)
			b, err := Open(Options{Calls: d.Calls()})
			require.NoError(t, err)
			got, _ := hostRounds(t, b)
			require.Equal(t, right, got)
			require.Equal(t, int64(1<<20), kernels.LockAll(b, lockable(t, 1<<20)).Of)
			if slots := b.LockedSlots(); slots.Bytes < slots.Of {
				require.Contains(t, slots.Why, "ulimit -l")
			} else {
				require.Empty(t, slots.Why)
			}
			require.NoError(t, b.Close())
			requireNothingHeld(t, d)
		}
	}

	d = newDevice(t, drivertest.Options{Locked: 1 << 20})
	b, err = Open(Options{Calls: d.Calls()})
	require.NoError(t, err)
	fits, large := lockable(t, 1<<19), lockable(t, 1<<20)
	got := kernels.LockAll(b, large, fits, lockable(t, 1<<21))
	require.Equal(t, int64(1<<20), got.Bytes) // a lock of exactly as much fits
	require.Equal(t, int64(1<<19+1<<20+1<<21), got.Of)
	require.Contains(t, got.Why, "ulimit -l")
	values, read := hostRounds(t, b) // no slot and no table is locked
	require.Equal(t, right, values)
	require.Zero(t, read)
	require.Zero(t, b.LockedSlots().Bytes)
	require.NoError(t, b.Close())
	requireNothingHeld(t, d)
}

// TestUnlockRefused: memory whose registration stays is not used again, and Close says so.
func TestUnlockRefused(t *testing.T) {
	d := newDevice(t, drivertest.Options{})
	b, err := Open(Options{Calls: d.Calls()})
	require.NoError(t, err)
	h := lockable(t, 100_000)
	require.NoError(t, h.Lock(b))
	at := &h.Bytes()[0]
	d.Fail("MemHostUnregister", 1, driver.ErrUnknown)
	h.Close()
	for range 20 {
		again := lockable(t, 100_000)
		require.NotSame(t, at, &again.Bytes()[0])
		require.NoError(t, again.Lock(b))
	}
	require.ErrorIs(t, b.Close(), driver.ErrUnknown)
}

// TestGatherRates: both ways are measured once, and leave no slot behind. A test has either taken.
func TestGatherRates(t *testing.T) {
	b, d := openDevice(t, drivertest.Options{}, Options{})
	rounds(b)
	slots, held := b.LockedSlots(), b.Bytes()
	r := b.GatherRates()
	require.Positive(t, r.Staged)
	require.Positive(t, r.Read)
	require.Equal(t, r.Read > r.Staged, r.Reads)
	require.NotEmpty(t, r.Why)
	require.Equal(t, slots, b.LockedSlots())
	require.Equal(t, held, b.Bytes())
	calls := d.Counts()
	require.Equal(t, r, b.GatherRates())
	require.Equal(t, calls, d.Counts())

	for way, reads := range map[GatherWay]bool{Staged: false, Reads: true} {
		b, _ := openDevice(t, drivertest.Options{}, Options{Gather: way})
		r := b.GatherRates()
		require.Equal(t, reads, r.Reads)
		require.Zero(t, r.Staged+r.Read)
	}
	for _, c := range []struct {
		device drivertest.Options
		call   string
		why    string
	}{
		{drivertest.Options{Locked: 64 << 10}, "", "ulimit -l"},
		{drivertest.Options{Memory: 1 << 20}, "", "no memory for"},
		{drivertest.Options{}, "MemHostGetDevicePointer", "the device cannot read memory of the host"},
		{drivertest.Options{}, "LaunchKernel", "CUDA_ERROR_OUT_OF_MEMORY"},
	} {
		b, d := openDevice(t, c.device, Options{})
		if c.call != "" {
			d.Fail(c.call, 1, driver.ErrOutOfMemory)
		}
		r := b.GatherRates()
		require.False(t, r.Reads)
		require.Contains(t, r.Why, c.why)
		require.Equal(t, []float32{10, 12, 14, 16, 18, 20}, rounds(b))
	}
}
