//go:build cuda && linux

package main

import (
	"fmt"
	"time"
)

// tryOrder checks that events order two streams as the backend needs: an upload waits for the
// kernel that reads the old data, a kernel waits for its upload, and the host waits until its slot
// has been copied.
func tryOrder(o *options) error {
	var w wrong
	d, kernels, err := openKernels(o)
	if err != nil {
		return err
	}
	r := newRing(d, kernels["count_other"], o.size(1<<19, 1<<16))
	r.delay = kernels["spin"]
	rounds := o.size(1000, 50)
	old, took := r.run(rounds, true)
	fmt.Printf("%d rounds of %d KiB with events: %d rounds saw old data, %.1f µs a round\n", rounds,
		r.size>>10, old, took)
	if old != 0 {
		w.add("%d of %d rounds saw old data", old, rounds)
	}
	old, took = r.run(rounds, false)
	fmt.Printf("the same without waits between streams: %d rounds saw other data, %.1f µs a round\n",
		old, took)
	timeOverlap(d, kernels["spin"], o)
	return w.err()
}

// ring has two host slots and one buffer on the device, which is filled anew each round.
type ring struct {
	d            *driver
	count        *kernel
	delay        *kernel // slows the work down, so that without events uploads would overtake it
	size         int
	copies, work stream
	slots        [2][]uint32
	copied       [2]event // the upload from slot i is done
	uploaded     event
	computed     event
	buffer       address
}

func newRing(d *driver, count *kernel, size int) *ring {
	memory := newArena(2 * size)
	touch(memory.bytes)
	d.do("cuMemHostRegister_v2", addressOf(memory.bytes), uintptr(2*size), 0)
	r := &ring{d: d, count: count, size: size, copies: d.newStream(), work: d.newStream()}
	for i := range r.slots {
		r.slots[i] = cast[uint32](memory.take(size))
		r.copied[i] = d.newEvent(false)
	}
	r.uploaded, r.computed = d.newEvent(false), d.newEvent(false)
	r.buffer = d.alloc(size)
	return r
}

// run returns the number of rounds whose kernel saw data of another round, and the microseconds a
// round took. If waits is false, no stream waits for the other.
func (r *ring) run(rounds int, waits bool) (old int, took float64) {
	d := r.d
	counters := d.alloc(4 * rounds)
	defer d.freeMemory(counters)
	d.fill(counters, 0, rounds, r.work)
	d.sync()
	begin := time.Now()
	for i := range rounds {
		slot := r.slots[i%2]
		if i >= 2 {
			d.syncEvent(r.copied[i%2])
		}
		for j := range slot {
			slot[j] = uint32(i + 1)
		}
		if waits && i > 0 {
			d.waitOn(r.copies, r.computed)
		}
		d.upload(r.buffer, at(slot), r.size, r.copies)
		d.recordOn(r.copied[i%2], r.copies)
		d.recordOn(r.uploaded, r.copies)
		if waits {
			d.waitOn(r.work, r.uploaded)
		}
		r.delay.launch(1, 1, 1, r.work, uint64(200_000), address(0))
		r.count.launch(64, 1, 256, r.work, counters+address(4*i), r.buffer, uint64(r.size/4),
			uint32(i+1))
		d.recordOn(r.computed, r.work)
	}
	d.sync()
	took = float64(time.Since(begin).Microseconds()) / float64(rounds)
	host := newArena(4 * rounds)
	defer host.free()
	d.download(addressOf(host.bytes), counters, 4*rounds, r.work)
	d.syncStream(r.work)
	for _, n := range cast[uint32](host.bytes) {
		if n != 0 {
			old++
		}
	}
	return old, took
}

// timeOverlap times copies and a kernel alone, and at the same time.
func timeOverlap(d *driver, spin *kernel, o *options) {
	size := o.size(256<<20, 1<<20)
	memory := newArena(size)
	touch(memory.bytes)
	d.do("cuMemHostRegister_v2", addressOf(memory.bytes), uintptr(size), 0)
	up, down := d.alloc(size), d.alloc(size)
	other := newArena(size)
	touch(other.bytes)
	d.do("cuMemHostRegister_v2", addressOf(other.bytes), uintptr(size), 0)
	copies, back, work := d.newStream(), d.newStream(), d.newStream()
	cycles := uint64(o.size(10_000_000, 10_000)) // some 6 ms at 1.7 GHz
	compute := func() { spin.launch(o.size(132, 2), 1, 32, work, cycles, address(0)) }
	upload := func() { d.upload(up, addressOf(memory.bytes), size, copies) }
	download := func() { d.download(addressOf(other.bytes), down, size, back) }
	timed := func(work ...func()) float64 {
		var times []float64
		for range 6 {
			d.sync()
			begin := time.Now()
			for _, f := range work {
				f()
			}
			d.sync()
			times = append(times, ms(time.Since(begin)))
		}
		return median(times)
	}
	fmt.Printf("compute %.2f ms, upload %.2f ms, download %.2f ms", timed(compute), timed(upload),
		timed(download))
	fmt.Printf("; compute+upload %.2f ms, upload+download %.2f ms, all three %.2f ms\n",
		timed(compute, upload), timed(upload, download), timed(compute, upload, download))
}
