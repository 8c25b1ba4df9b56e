//go:build cuda && linux

package main

import "slices"

// stopwatch times work on a stream, with events.
type stopwatch struct {
	d          *driver
	s          stream
	begin, end event
}

func newStopwatch(d *driver, s stream) *stopwatch {
	return &stopwatch{d: d, s: s, begin: d.newEvent(true), end: d.newEvent(true)}
}

// once returns the milliseconds between an event before work and one after it.
func (t *stopwatch) once(work func()) float64 {
	t.d.recordOn(t.begin, t.s)
	work()
	t.d.recordOn(t.end, t.s)
	t.d.syncEvent(t.end)
	return t.d.elapsed(t.begin, t.end)
}

// median runs work twice untimed, then n times, and returns the median in milliseconds.
func (t *stopwatch) median(n int, work func()) float64 {
	t.once(work)
	t.once(work)
	times := make([]float64, n)
	for i := range times {
		times[i] = t.once(work)
	}
	return median(times)
}

// elapsed returns the milliseconds between two events.
func (d *driver) elapsed(begin, end event) float64 {
	out := cast[float32](d.memory.take(4))
	d.do("cuEventElapsedTime", at(out), uintptr(begin), uintptr(end))
	return float64(out[0])
}

func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}

// gigabytes returns a rate in GB/s.
func gigabytes(bytes int, milliseconds float64) float64 {
	return float64(bytes) / milliseconds / 1e6
}
