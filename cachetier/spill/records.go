package spill

import (
	"context"
	"sync"
	"time"
)

// Records stores records of any size: they are appended, and then read once, each whole. Records
// smaller than a segment gather in a buffer. When Records hold all buffers of the File, one of the
// buffers is written as it is. So any number of Records may be appended to in turns.
//
// Concurrency is as for a Run.
type Records struct {
	f   *File
	run *Run

	mu    sync.Mutex
	open  *Buffer
	large []*Run // records larger than a segment, a run each, in numbered pieces
}

// NewRecords returns empty Records.
func (f *File) NewRecords() *Records { return &Records{f: f, run: f.NewRun()} }

// Append copies a record, whole or not at all. The error is a *FullError, or context.Canceled if
// the File is being closed.
func (r *Records) Append(record []byte) error {
	if len(record) > r.f.o.Segment {
		return r.appendLarge(record)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.open != nil && r.open.Used+len(record) > len(r.open.Bytes) {
		if err := r.flushLocked(); err != nil {
			return err
		}
	}
	if r.open == nil {
		b, err := r.f.scarce()
		if err != nil {
			return err
		}
		r.open = b
		r.f.opened(r)
	}
	r.open.Used += copy(r.open.Bytes[r.open.Used:], record)
	return nil
}

// appendLarge appends a record as its own run.
func (r *Records) appendLarge(record []byte) error {
	run := r.f.NewRun()
	for n := 0; len(record) > 0; n++ {
		b, err := r.f.scarce()
		if err == nil {
			b.Used, b.Count = copy(b.Bytes, record), n
			record = record[b.Used:]
			err = run.Append(b)
		}
		if err != nil {
			run.Drop()
			return err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.large = append(r.large, run)
	return nil
}

// flushLocked appends the open buffer to the run. The caller holds r.mu.
func (r *Records) flushLocked() error {
	b := r.open
	r.open = nil
	r.f.forget(r)
	return r.run.Append(b)
}

// Each lends all records, in any order, in slices that hold whole records one after another.
// Several goroutines call do at once. It ends as Run.Each does.
func (r *Records) Each(ctx context.Context, do func(records []byte) error) error {
	r.mu.Lock()
	var err error
	if r.open != nil {
		err = r.flushLocked()
	}
	large := r.large
	r.large = nil
	r.mu.Unlock()
	if err == nil {
		err = r.run.Each(ctx, func(b []byte, _ int) error { return do(b) })
	}
	for i, run := range large {
		if err != nil {
			run.Drop()
			continue
		}
		var record []byte
		if record, err = run.Whole(ctx, nil); err == nil {
			err = do(record)
		}
		large[i] = nil
	}
	if err != nil {
		r.Drop()
	}
	return err
}

// Drop frees all records without reading them.
func (r *Records) Drop() {
	r.mu.Lock()
	b, large := r.open, r.large
	if r.open, r.large = nil, nil; b != nil {
		r.f.forget(r)
		r.f.Return(b)
	}
	r.mu.Unlock()
	r.run.Drop()
	for _, run := range large {
		run.Drop()
	}
}

// scarce returns a buffer. While none is free and Records have some open, it writes one of these.
func (f *File) scarce() (*Buffer, error) {
	for {
		select {
		case b := <-f.free:
			b.Used, b.Count = 0, 0
			return b, nil
		case <-f.ctx.Done():
			return nil, f.ctx.Err()
		default:
		}
		if err := f.evict(); err != nil {
			return nil, err
		}
		select {
		case b := <-f.free:
			b.Used, b.Count = 0, 0
			return b, nil
		case <-f.ctx.Done():
			return nil, f.ctx.Err()
		case <-time.After(time.Millisecond): // all open ones were in use
		}
	}
}

// evict writes the buffer that has been open the longest, among Records that nobody is using.
func (f *File) evict() error {
	f.records.Lock()
	defer f.records.Unlock()
	for n, r := range f.records.open {
		if !r.mu.TryLock() { // its user may itself wait for a buffer
			continue
		}
		defer r.mu.Unlock()
		f.records.open = append(f.records.open[:n:n], f.records.open[n+1:]...)
		b := r.open
		r.open = nil
		return r.run.Append(b)
	}
	return nil
}

// opened and forget keep the list of Records that have a buffer, the oldest first.
func (f *File) opened(r *Records) {
	f.records.Lock()
	defer f.records.Unlock()
	f.records.open = append(f.records.open, r)
}

func (f *File) forget(r *Records) {
	f.records.Lock()
	defer f.records.Unlock()
	for i, o := range f.records.open {
		if o == r {
			f.records.open = append(f.records.open[:i:i], f.records.open[i+1:]...)
			return
		}
	}
}
