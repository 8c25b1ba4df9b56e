//go:build cuda && linux

package main

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// tryContexts launches from many goroutines, on the threads that they happen to run on, and counts
// errors.
func tryContexts(o *options) error {
	var w wrong
	begin := time.Now()
	d, err := open(o)
	if err != nil {
		return err
	}
	fmt.Printf("primary context: %.0f ms\n", ms(time.Since(begin)))
	kernels, err := d.kernelsOf()
	if err != nil {
		return err
	}
	empty := kernels["empty"]
	s := d.newStream()
	launchFromMany(d, empty, s, o.size(20_000, 2_000), &w)
	if err := endThreads(d, empty, s, o.size(1000, 100)); err != nil {
		w.add("threads that end: %w", err)
	}
	showFreshThread(d)
	timeCalls(d, empty, s)
	return w.err()
}

// launchFromMany calls as the backend will: lock the thread, set the context, call, unlock.
func launchFromMany(d *driver, k *kernel, s stream, each int, w *wrong) {
	const goroutines = 8
	var failed atomic.Int64
	var first atomic.Uint32
	var group sync.WaitGroup
	begin := time.Now()
	for range goroutines {
		mine := k.own()
		mine.layout.pack(mine.buffer, []any{address(0), uint32(0)})
		group.Go(func() {
			for i := range each {
				runtime.LockOSThread()
				c := d.setCurrent.call(d.context)
				if c == success {
					c = mine.try(1, 1, 32, s)
				}
				runtime.UnlockOSThread()
				if c != success {
					failed.Add(1)
					first.CompareAndSwap(0, uint32(c))
				}
				if i%64 == 0 {
					runtime.Gosched()
					_ = make([]byte, 10_000) // so that the collector runs
				}
			}
		})
	}
	group.Wait()
	d.syncStream(s)
	took := time.Since(begin)
	fmt.Printf("%d goroutines, %d launches each: %d errors, %.0f ns a launch over all\n",
		goroutines, each, failed.Load(), float64(took.Nanoseconds())/float64(goroutines*each))
	if failed.Load() != 0 {
		w.add("%d launches failed, the first with %s", failed.Load(), d.errorName(code(first.Load())))
	}
}

// endThreads launches from n threads that end with their goroutine.
func endThreads(d *driver, k *kernel, s stream, n int) error {
	k.layout.pack(k.buffer, []any{address(0), uint32(0)})
	var bad atomic.Int64
	begin := time.Now()
	for range n {
		done := make(chan struct{})
		go func() {
			defer close(done)
			runtime.LockOSThread() // never unlocked: the thread ends
			if d.setCurrent.call(d.context) != success || k.try(1, 1, 32, s) != success {
				bad.Add(1)
			}
		}()
		<-done
	}
	d.syncStream(s)
	fmt.Printf("%d threads that end: %d errors, %.0f µs each\n", n, bad.Load(),
		float64(time.Since(begin).Microseconds())/float64(n))
	if bad.Load() != 0 {
		return fmt.Errorf("%d failed", bad.Load())
	}
	return nil
}

// showFreshThread prints the results of two calls on a thread without a context.
func showFreshThread(d *driver) {
	a := newArena(4096)
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		current, p := a.longs(1), a.longs(1)
		c := d.try("cuCtxGetCurrent", at(current))
		fmt.Printf("fresh thread: cuCtxGetCurrent %d, context %#x; ", c, current[0])
		fmt.Printf("cuMemAlloc %s\n", d.errorName(d.try("cuMemAlloc_v2", at(p), 64)))
	}()
	<-done
}

// timeCalls times calls of one goroutine on one thread.
func timeCalls(d *driver, k *kernel, s stream) {
	k.layout.pack(k.buffer, []any{address(0), uint32(0)})
	const burst = 400 // fewer launches than a stream queues before it blocks
	bursts := func(call func() code) float64 {
		best := time.Duration(1 << 62)
		for range 30 {
			d.syncStream(s)
			begin := time.Now()
			for range burst {
				call()
			}
			best = min(best, time.Since(begin))
		}
		return float64(best.Nanoseconds()) / burst
	}
	e := d.newEvent(false)
	launch := func() code { return k.try(1, 1, 32, s) }
	fmt.Printf("ns a call, best of 30 bursts of %d: launch %.0f", burst, bursts(launch))
	fmt.Printf(", cuCtxSetCurrent %.0f", bursts(func() code { return d.setCurrent.call(d.context) }))
	fmt.Printf(", cuEventRecord %.0f",
		bursts(func() code { return d.record.call(uintptr(e), uintptr(s)) }))
	fmt.Printf(", cuStreamWaitEvent %.0f\n",
		bursts(func() code { return d.wait.call(uintptr(s), uintptr(e), 0) }))

	const many = 20_000
	begin := time.Now()
	for range many {
		launch()
	}
	d.syncStream(s)
	fmt.Printf("ns a launch with the queue full: %.0f\n", float64(time.Since(begin).Nanoseconds())/many)

	begin = time.Now()
	for range 1000 {
		launch()
		d.syncStream(s)
	}
	fmt.Printf("µs a launch and a wait for it: %.1f\n", float64(time.Since(begin).Microseconds())/1000)

	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 1000 {
		launch()
	}
	runtime.ReadMemStats(&after)
	fmt.Printf("Go allocations a launch: %.2f, %.0f bytes\n", float64(after.Mallocs-before.Mallocs)/1000,
		float64(after.TotalAlloc-before.TotalAlloc)/1000)
	d.syncStream(s)
}

func ms(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e6 }
