//go:build cuda && linux

package drivertest

import (
	"bytes"
	"encoding/binary"
	"slices"
	"time"
	"unsafe"

	"github.com/gnnstore/gnnstore/kernels/cuda/driver"
)

// stream has the work that was queued and has not run.
type stream struct{ queue []task }

// task is one piece of work.
type task struct {
	run   func() // nil for a wait or a record
	after *record
	done  *record
}

// record is one time that an event was recorded.
type record struct {
	on  *stream
	ran bool
	at  time.Time
}

// event has its last record, nil before the first.
type event struct {
	last  *record
	timed bool
}

// step runs the next task of a stream.
func (d *Device) step(s *stream) {
	t := s.queue[0]
	s.queue = s.queue[1:]
	if t.after != nil {
		d.reach(t.after)
	}
	if t.run != nil && d.lost == nil {
		t.run()
	}
	if t.done != nil {
		t.done.ran, t.done.at = true, time.Now()
	}
}

// reach runs the stream of a record until it has been.
func (d *Device) reach(r *record) {
	for !r.ran {
		d.step(r.on)
	}
}

// ahead runs all streams but one, as far as they need no other.
func (d *Device) ahead(but *stream) {
	if d.options.Mode != Ahead {
		return
	}
	for _, at := range slices.Sorted(keys(d.streams)) {
		s := d.streams[at]
		for s != but && len(s.queue) > 0 && (s.queue[0].after == nil || s.queue[0].after.ran) {
			d.step(s)
		}
	}
}

func keys[K comparable, V any](m map[K]V) func(func(K) bool) {
	return func(yield func(K) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// finish runs a stream to its end.
func (d *Device) finish(s *stream) driver.Code {
	d.ahead(s)
	for len(s.queue) > 0 {
		d.step(s)
	}
	return d.state()
}

func (d *Device) runAll() driver.Code {
	for _, at := range slices.Sorted(keys(d.streams)) {
		if code := d.finish(d.streams[at]); code != 0 {
			return code
		}
	}
	return d.state()
}

// state returns the error of a lost context.
func (d *Device) state() driver.Code { return refuseIf(d.lost != nil, driver.ErrIllegalAddress) }

// queue adds a task to a stream.
func (d *Device) queue(on driver.Stream, t task) driver.Code {
	s, ok := d.streams[on]
	if !ok {
		return driver.ErrInvalidValue // the default stream too: nothing here uses it
	}
	s.queue = append(s.queue, t)
	if d.options.Mode == Eager {
		return d.finish(s)
	}
	return 0
}

// order has the calls about streams, events and copies.
func (d *Device) order() {
	c := d.calls
	c.CtxSynchronize = func() error { return d.do("CtxSynchronize", d.runAll) }
	c.StreamCreate = func(uint32) (at driver.Stream, err error) {
		err = d.do("StreamCreate", func() driver.Code {
			at = driver.Stream(d.handle())
			d.streams[at] = &stream{}
			return 0
		})
		return at, err
	}
	c.StreamDestroy = func(at driver.Stream) error {
		return d.onStream("StreamDestroy", at, func(s *stream) driver.Code {
			delete(d.streams, at)
			return d.finish(s)
		})
	}
	c.StreamSynchronize = func(at driver.Stream) error { return d.onStream("StreamSynchronize", at, d.finish) }
	c.StreamQuery = func(at driver.Stream) (done bool, err error) {
		err = d.onStream("StreamQuery", at, func(s *stream) driver.Code { done = len(s.queue) == 0; return d.state() })
		return done, err
	}
	c.StreamWaitEvent = func(on driver.Stream, of driver.Event) error {
		return d.onEvent("StreamWaitEvent", of, func(e *event) driver.Code {
			if e.last == nil {
				return 0
			}
			return d.queue(on, task{after: e.last})
		})
	}
	c.EventCreate = func(flags uint32) (at driver.Event, err error) {
		err = d.do("EventCreate", func() driver.Code {
			at = driver.Event(d.handle())
			d.events[at] = &event{timed: flags&driver.EventDisableTiming == 0}
			return 0
		})
		return at, err
	}
	c.EventDestroy = func(of driver.Event) error {
		return d.onEvent("EventDestroy", of, func(*event) driver.Code { delete(d.events, of); return 0 })
	}
	c.EventRecord = func(of driver.Event, on driver.Stream) error {
		return d.onEvent("EventRecord", of, func(e *event) driver.Code {
			if d.streams[on] == nil {
				return driver.ErrInvalidValue
			}
			e.last = &record{on: d.streams[on]}
			return d.queue(on, task{done: e.last})
		})
	}
	c.EventSynchronize = func(of driver.Event) error {
		return d.onEvent("EventSynchronize", of, func(e *event) driver.Code {
			if e.last != nil {
				d.ahead(e.last.on)
				d.reach(e.last)
			}
			return d.state()
		})
	}
	c.EventQuery = func(of driver.Event) (done bool, err error) {
		err = d.onEvent("EventQuery", of, func(e *event) driver.Code {
			done = e.last == nil || e.last.ran
			return d.state()
		})
		return done, err
	}
	c.EventElapsedTime = func(start, end driver.Event) (ms float32, err error) {
		err = d.do("EventElapsedTime", func() driver.Code {
			a, b := d.events[start], d.events[end]
			switch {
			case a == nil || b == nil || !a.timed || !b.timed || a.last == nil || b.last == nil:
				return driver.ErrInvalidValue
			case !a.last.ran || !b.last.ran:
				return driver.ErrNotReady
			}
			ms = float32(b.last.at.Sub(a.last.at).Seconds() * 1000)
			return d.state()
		})
		return ms, err
	}
	c.MemcpyHtoDAsync = func(dst driver.Ptr, src unsafe.Pointer, n uint64, on driver.Stream) error {
		return d.do("MemcpyHtoDAsync", func() driver.Code {
			to, ok := d.window(dst, n)
			if !ok {
				return driver.ErrInvalidValue
			}
			from := unsafe.Slice((*byte)(src), n)
			if !d.isLocked(src, n) {
				from = bytes.Clone(from) // the driver stages it before the call returns
			}
			return d.queue(on, task{run: func() { copy(to, from) }})
		})
	}
	c.MemcpyDtoHAsync = func(dst unsafe.Pointer, src driver.Ptr, n uint64, on driver.Stream) error {
		return d.do("MemcpyDtoHAsync", func() driver.Code {
			from, ok := d.window(src, n)
			if !ok {
				return driver.ErrInvalidValue
			}
			to := unsafe.Slice((*byte)(dst), n)
			code := d.queue(on, task{run: func() { copy(to, from) }})
			if code == 0 && !d.isLocked(dst, n) {
				return d.finish(d.streams[on])
			}
			return code
		})
	}
	c.MemcpyDtoDAsync = func(dst, src driver.Ptr, n uint64, on driver.Stream) error {
		return d.do("MemcpyDtoDAsync", func() driver.Code {
			to, ok := d.window(dst, n)
			from, also := d.window(src, n)
			if !ok || !also {
				return driver.ErrInvalidValue
			}
			return d.queue(on, task{run: func() { copy(to, from) }})
		})
	}
	c.MemsetD8Async = func(dst driver.Ptr, value uint8, n uint64, on driver.Stream) error {
		return d.set("MemsetD8Async", dst, []byte{value}, n, on)
	}
	c.MemsetD32Async = func(dst driver.Ptr, value uint32, n uint64, on driver.Stream) error {
		return d.set("MemsetD32Async", dst, binary.LittleEndian.AppendUint32(nil, value), n, on)
	}
}

// set queues a fill of n times value.
func (d *Device) set(call string, dst driver.Ptr, value []byte, n uint64, on driver.Stream) error {
	return d.do(call, func() driver.Code {
		to, ok := d.window(dst, n*uint64(len(value)))
		if !ok {
			return driver.ErrInvalidValue
		}
		return d.queue(on, task{run: func() {
			for i := range to {
				to[i] = value[i%len(value)]
			}
		}})
	})
}

func (d *Device) onStream(call string, at driver.Stream, f func(*stream) driver.Code) error {
	return d.do(call, func() driver.Code {
		s, ok := d.streams[at]
		if !ok {
			return driver.ErrInvalidValue
		}
		return f(s)
	})
}

func (d *Device) onEvent(call string, of driver.Event, f func(*event) driver.Code) error {
	return d.do(call, func() driver.Code {
		e, ok := d.events[of]
		if !ok {
			return driver.ErrInvalidValue
		}
		return f(e)
	})
}

// kernels has the calls about modules and launches.
func (d *Device) kernels() {
	c := d.calls
	c.ModuleLoadDataEx = func(ptx string) (at driver.Module, log string, err error) {
		lists, failed := driver.ParamLists(ptx)
		if failed != nil {
			log = failed.Error()
		}
		err = d.do("ModuleLoadDataEx", func() driver.Code {
			if failed != nil {
				return driver.ErrInvalidPTX
			}
			at = driver.Module(d.handle())
			d.modules[at] = lists
			return 0
		})
		return at, log, err
	}
	c.ModuleUnload = func(of driver.Module) error {
		return d.do("ModuleUnload", func() driver.Code {
			if d.modules[of] == nil {
				return driver.ErrInvalidValue
			}
			delete(d.modules, of)
			return 0
		})
	}
	c.ModuleGetFunction = func(of driver.Module, name string) (at driver.Function, err error) {
		err = d.do("ModuleGetFunction", func() driver.Code {
			if d.modules[of][name] == nil {
				return driver.ErrNotFound
			}
			at = driver.Function(d.handle())
			d.functions[at] = name
			return 0
		})
		return at, err
	}
	c.FuncGetAttribute = func(a driver.FuncAttribute, _ driver.Function) (value int, err error) {
		err = d.do("FuncGetAttribute", func() driver.Code {
			value = map[driver.FuncAttribute]int{driver.MaxThreadsPerBlock: 1024, driver.Registers: 32}[a]
			return 0
		})
		return value, err
	}
	c.FuncSetAttribute = func(driver.Function, driver.FuncAttribute, int) error {
		return d.do("FuncSetAttribute", func() driver.Code { return 0 })
	}
	c.OccupancyMaxActiveBlocksPerMultiprocessor = func(_ driver.Function, threads int, _ uint64) (n int, err error) {
		err = d.do("OccupancyMaxActiveBlocksPerMultiprocessor", func() driver.Code {
			n = 2048 / max(threads, 1)
			return 0
		})
		return n, err
	}
	c.LaunchKernel = func(
		f driver.Function, grid, block driver.Dim, shared uint32, on driver.Stream, p *driver.Params,
	) error {
		params := bytes.Clone(p.Bytes())
		return d.do("LaunchKernel", func() driver.Code {
			name, ok := d.functions[f]
			if !ok {
				return driver.ErrInvalidValue
			}
			d.launched[name]++
			return d.queue(on, task{run: func() {
				d.lost = d.options.Runner.Launch(name, grid, block, shared, params)
			}})
		})
	}
}
