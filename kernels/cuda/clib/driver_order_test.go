//go:build cuda && linux

package clib_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/kernels/cuda/driver"
)

var orders = []string{"lazy", "fifo", "copies-first", "reverse"}

var orderScenarios = func() []scenario {
	var all []scenario
	for _, order := range orders {
		env := []string{"GNN_CUDA_ORDER=" + order}
		add := func(name string, run func(t *testing.T, d *device)) {
			all = append(all, scenario{name: order + "-" + name, env: env, run: run})
		}
		// An operation that does not wait for the upload that it reads is seen where the upload
		// comes late.
		add("upload-first", func(t *testing.T, d *device) {
			d.begin()
			d.load("elementwise")
			require.Equal(t, []float32{6, 6}, scaleUpload(d, true))
			if got := scaleUpload(d, false); order == "lazy" {
				require.NotEqual(t, []float32{6, 6}, got)
			} else {
				require.Equal(t, []float32{6, 6}, got)
			}
		})
		// An upload that does not wait for the operation that reads its place is seen where it
		// comes early.
		add("upload-behind", func(t *testing.T, d *device) {
			d.begin()
			d.load("elementwise")
			require.Equal(t, []float32{2, 2}, uploadOver(d, true))
			want := []float32{2, 2}
			if order == "copies-first" || order == "reverse" {
				want = []float32{8, 8}
			}
			require.Equal(t, want, uploadOver(d, false))
		})
		add("slot", slotUsedEarly)
		add("default-stream", defaultStream)
		add("events", eventsOfTheirTime)
		add("wait-for-all", func(t *testing.T, d *device) {
			d.begin()
			d.load("elementwise")
			p := d.alloc(4 * 8)
			var streams []driver.Stream
			for i := range 8 {
				streams = append(streams, d.stream())
				d.fill(p+driver.Ptr(4*i), 1, float32(i), streams[i])
			}
			require.NoError(t, d.CtxSynchronize())
			for _, s := range streams {
				done, err := d.StreamQuery(s)
				require.NoError(t, err)
				require.True(t, done)
			}
			require.Equal(t, []float32{0, 1, 2, 3, 4, 5, 6, 7}, download[float32](d, p, 8, 0))
		})
	}
	return all
}()

// scaleUpload uploads two numbers on one stream and doubles them on another.
func scaleUpload(d *device, waits bool) []float32 {
	d.t.Helper()
	copies, compute, e := d.stream(), d.stream(), d.event()
	p, h := d.alloc(8), locked[float32](d, 2)
	h[0], h[1] = 3, 3
	require.NoError(d.t, d.MemcpyHtoDAsync(p, at(h), 8, copies))
	require.NoError(d.t, d.EventRecord(e, copies))
	if waits {
		require.NoError(d.t, d.StreamWaitEvent(compute, e))
		require.NoError(d.t, d.EventDestroy(e)) // what waits for it goes on waiting
	}
	d.launch("scale", driver.Dim{}, compute, d.params("scale").Ptr(p).U64(2).F32(2))
	return download[float32](d, p, 2, compute)
}

// uploadOver adds numbers on one stream, and uploads others over them on another.
func uploadOver(d *device, waits bool) []float32 {
	d.t.Helper()
	copies, compute, e := d.stream(), d.stream(), d.event()
	p, q := upload[float32](d, 1, 1), upload[float32](d, 1, 1)
	h := locked[float32](d, 2)
	h[0], h[1] = 7, 7
	d.launch("add", driver.Dim{}, compute, d.params("add").Ptr(q).Ptr(p).U64(2))
	require.NoError(d.t, d.EventRecord(e, compute))
	if waits {
		require.NoError(d.t, d.StreamWaitEvent(copies, e))
	}
	require.NoError(d.t, d.MemcpyHtoDAsync(p, at(h), 8, copies))
	return download[float32](d, q, 2, compute)
}

// slotUsedEarly writes to memory whose copy is queued. Page-locked memory is read when the copy
// runs, other memory when it is queued. Down, the first is written when the copy runs.
func slotUsedEarly(t *testing.T, d *device) {
	d.begin()
	s := d.stream()
	p, q := d.alloc(8), d.alloc(8)
	slot, plain := locked[uint64](d, 1), host[uint64](t, 1)
	slot[0], plain[0] = 1, 1
	require.NoError(t, d.MemcpyHtoDAsync(p, at(slot), 8, s))
	require.NoError(t, d.MemcpyHtoDAsync(q, at(plain), 8, s))
	slot[0], plain[0] = 2, 2
	require.NoError(t, d.StreamSynchronize(s))
	require.Equal(t, []uint64{2}, download[uint64](d, p, 1, s))
	require.Equal(t, []uint64{1}, download[uint64](d, q, 1, s))

	require.NoError(t, d.MemcpyDtoHAsync(at(slot), q, 8, s))
	require.Equal(t, uint64(2), slot[0])
	require.NoError(t, d.StreamSynchronize(s))
	require.Equal(t, uint64(1), slot[0])
}

// defaultStream: the default stream and those that do not say that they do not wait for it wait for
// each other.
func defaultStream(t *testing.T, d *device) {
	d.begin()
	d.load("elementwise")
	blocking, err := d.StreamCreate(0)
	require.NoError(t, err)
	p := d.alloc(4)
	d.fill(p, 1, 1, blocking)
	d.launch("scale", driver.Dim{}, 0, d.params("scale").Ptr(p).U64(1).F32(3))
	require.NoError(t, d.StreamSynchronize(0))
	d.fill(p, 1, 10, 0)
	d.launch("scale", driver.Dim{}, blocking, d.params("scale").Ptr(p).U64(1).F32(3))
	require.NoError(t, d.StreamSynchronize(blocking))
	require.Equal(t, []float32{30}, download[float32](d, p, 1, blocking))
}

// eventsOfTheirTime: a wait is for what an event had recorded when the wait was queued.
func eventsOfTheirTime(t *testing.T, d *device) {
	d.begin()
	d.load("elementwise")
	a, b, c, e := d.stream(), d.stream(), d.stream(), d.event()
	p, q := d.alloc(4), d.alloc(4)
	require.NoError(t, d.StreamWaitEvent(b, e)) // never recorded: no wait
	d.fill(p, 1, 1, a)
	require.NoError(t, d.EventRecord(e, a))
	require.NoError(t, d.StreamWaitEvent(b, e))
	// What follows on a waits for b, so that a wait of b for it would never end.
	d.launch("copy", driver.Dim{}, b, d.params("copy").Ptr(q).Ptr(p).U64(1))
	f := d.event()
	require.NoError(t, d.EventRecord(f, b))
	require.NoError(t, d.StreamWaitEvent(a, f))
	d.fill(p, 1, 2, a)
	require.NoError(t, d.EventRecord(e, a))
	// Along a chain of streams.
	require.NoError(t, d.StreamWaitEvent(c, e))
	d.launch("add", driver.Dim{}, c, d.params("add").Ptr(p).Ptr(q).U64(1))
	require.Equal(t, []float32{3}, download[float32](d, p, 1, c))
	require.Equal(t, []float32{1}, download[float32](d, q, 1, b))
}
