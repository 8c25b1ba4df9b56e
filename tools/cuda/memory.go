//go:build cuda && linux

package main

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// timeMemory times copies between the device and three kinds of host memory, copies on the device,
// and allocations.
func timeMemory(o *options) error {
	d, err := open(o)
	if err != nil {
		return err
	}
	size := o.size(1<<30, 1<<22)
	s := d.newStream()
	onDevice := d.alloc(size)

	pageable := newArena(size)
	touch(pageable.bytes)
	timeCopies(d, s, onDevice, "pageable", pageable.bytes)
	pageable.free()

	registered := newArena(size)
	begin := time.Now()
	touch(registered.bytes)
	touched := time.Since(begin)
	begin = time.Now()
	// Flags 0: for this context alone, and not mapped into the device's address space.
	d.do("cuMemHostRegister_v2", addressOf(registered.bytes), uintptr(size), 0)
	fmt.Printf("register %d MiB of huge pages: %.1f ms (touching it before: %.1f ms)\n", size>>20,
		ms(time.Since(begin)), ms(touched))
	timeCopies(d, s, onDevice, "registered", registered.bytes)
	timeSmallCopies(d, s, onDevice, "registered", registered.bytes)
	begin = time.Now()
	d.do("cuMemHostUnregister", addressOf(registered.bytes))
	fmt.Printf("unregister: %.1f ms\n", ms(time.Since(begin)))
	registered.free()
	timeRegister(d, size)

	pointer := d.memory.longs(1)
	begin = time.Now()
	d.do("cuMemHostAlloc", at(pointer), uintptr(size), 0)
	fmt.Printf("cuMemHostAlloc %d MiB: %.1f ms\n", size>>20, ms(time.Since(begin)))
	base := uintptr(pointer[0])
	locked := fromAddress(base, size)
	touch(locked)
	timeCopies(d, s, onDevice, "cuMemHostAlloc", locked)
	timeSmallCopies(d, s, onDevice, "cuMemHostAlloc", locked)
	d.do("cuMemFreeHost", base)
	d.freeMemory(onDevice)

	timeDeviceCopy(d, s, o)
	timeAllocations(d, s)
	return nil
}

// fromAddress returns memory that the driver allocated as a slice.
func fromAddress(base uintptr, size int) []byte {
	return sliceOf((*byte)(fromC(base)), size)
}

// touch writes to every page, so that the system allocates it.
func touch(b []byte) {
	for i := 0; i < len(b); i += 4096 {
		b[i] = byte(i >> 12)
	}
}

// timeRegister times the registration of other memory: small pages, and pages not touched before.
func timeRegister(d *driver, size int) {
	for _, kind := range []struct {
		name    string
		advice  int
		touched bool
	}{
		{"small pages", unix.MADV_NOHUGEPAGE, true},
		{"small pages, untouched", unix.MADV_NOHUGEPAGE, false},
		{"huge pages, untouched", unix.MADV_HUGEPAGE, false},
	} {
		a := mapArena(size, kind.advice)
		if kind.touched {
			touch(a.bytes)
		}
		begin := time.Now()
		c := d.try("cuMemHostRegister_v2", addressOf(a.bytes), uintptr(size), 0)
		fmt.Printf("register %d MiB of %s: %.1f ms, %s\n", size>>20, kind.name, ms(time.Since(begin)),
			d.errorName(c))
		if c == success {
			d.do("cuMemHostUnregister", addressOf(a.bytes))
		}
		a.free()
	}
}

// timeCopies times copies of all of host both ways. It uses the host's clock, since copies of
// pageable memory block the caller.
func timeCopies(d *driver, s stream, onDevice address, kind string, host []byte) {
	measure := func(work func()) float64 {
		var times []float64
		for i := range 6 {
			d.syncStream(s)
			begin := time.Now()
			work()
			d.syncStream(s)
			if i > 0 {
				times = append(times, ms(time.Since(begin)))
			}
		}
		return gigabytes(len(host), median(times))
	}
	up := measure(func() { d.upload(onDevice, addressOf(host), len(host), s) })
	down := measure(func() { d.download(addressOf(host), onDevice, len(host), s) })
	fmt.Printf("copy %d MiB, %s: up %.2f GB/s, down %.2f GB/s\n", len(host)>>20, kind, up, down)
}

// timeSmallCopies times small copies: each with a wait for it, and many queued without.
func timeSmallCopies(d *driver, s stream, onDevice address, kind string, host []byte) {
	const rounds = 200
	for _, size := range []int{4 << 10, 64 << 10, 1 << 20} {
		up := func() { d.upload(onDevice, addressOf(host), size, s) }
		down := func() { d.download(addressOf(host), onDevice, size, s) }
		each := func(work func(), wait bool) float64 {
			begin := time.Now()
			for range rounds {
				work()
				if wait {
					d.syncStream(s)
				}
			}
			d.syncStream(s)
			return float64(time.Since(begin).Nanoseconds()) / 1e3 / rounds
		}
		each(up, true)
		fmt.Printf("copy %d KiB, %s: with wait up %.1f µs, down %.1f µs; queued up %.1f µs, down %.1f µs\n",
			size>>10, kind, each(up, true), each(down, true), each(up, false), each(down, false))
	}
}

// deviceCopyRate returns the rate of a copy on the device in GB/s. It counts bytes read and bytes
// written.
func deviceCopyRate(d *driver, s stream, size int) float64 {
	a, b := d.alloc(size), d.alloc(size)
	d.fill(a, 0x3f9d_70a4, size/4, s)
	took := newStopwatch(d, s).median(9, func() { d.copyDevice(b, a, size, s) })
	d.freeMemory(a)
	d.freeMemory(b)
	return gigabytes(2*size, took)
}

func timeDeviceCopy(d *driver, s stream, o *options) {
	for _, mib := range []int{16, 128, 1024, 4096} {
		size := o.size(mib<<20, mib<<10)
		fmt.Printf("copy on the device, %d MiB: %.0f GB/s read and written\n", size>>20,
			deviceCopyRate(d, s, size))
	}
	size := o.size(1<<30, 1<<20)
	a := d.alloc(size)
	took := newStopwatch(d, s).median(9, func() { d.fill(a, 1, size/4, s) })
	fmt.Printf("fill on the device, %d MiB: %.0f GB/s\n", size>>20, gigabytes(size, took))
	d.freeMemory(a)
}

// timeAllocations compares cuMemAlloc with a stream-ordered pool, which keeps freed memory.
func timeAllocations(d *driver, s stream) {
	pool := d.memory.longs(2)
	d.do("cuDeviceGetDefaultMemPool", at(pool), uintptr(d.device))
	pool[1] = 1 << 62
	// CU_MEMPOOL_ATTR_RELEASE_THRESHOLD is 4.
	d.do("cuMemPoolSetAttribute", uintptr(pool[0]), 4, at(pool[1:]))
	const rounds = 100
	for _, size := range []uintptr{4 << 10, 1 << 20, 64 << 20} {
		out := d.memory.longs(1)
		var alloc, free, allocAsync, freeAsync time.Duration
		for i := range rounds + 5 {
			if i == 5 {
				alloc, free, allocAsync, freeAsync = 0, 0, 0, 0
			}
			t := time.Now()
			d.do("cuMemAlloc_v2", at(out), size)
			alloc += time.Since(t)
			t = time.Now()
			d.do("cuMemFree_v2", uintptr(out[0]))
			free += time.Since(t)
			t = time.Now()
			d.do("cuMemAllocAsync", at(out), size, uintptr(s))
			allocAsync += time.Since(t)
			t = time.Now()
			d.do("cuMemFreeAsync", uintptr(out[0]), uintptr(s))
			freeAsync += time.Since(t)
		}
		d.syncStream(s)
		us := func(t time.Duration) float64 { return float64(t.Nanoseconds()) / 1e3 / rounds }
		fmt.Printf("%d KiB: cuMemAlloc %.1f µs, cuMemFree %.1f µs, cuMemAllocAsync %.1f µs, "+
			"cuMemFreeAsync %.1f µs\n", size>>10, us(alloc), us(free), us(allocAsync), us(freeAsync))
	}
}
