package disk

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"strings"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
)

// Open returns a Reader of files, which stay the caller's and must stay open until Close. ctx
// applies to Open alone: its end cuts Options.Probe short, and is an error.
func Open(ctx context.Context, files []store.SectionFile, o Options) (*Reader, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("disk: %w", err)
	}
	op := opening{Options: o, files: files, size: Size(files), meter: newMeter()}
	r := &Reader{files: files, meter: op.meter}
	if err := op.start(); err != nil {
		return nil, fmt.Errorf("disk: %w", err)
	}
	var err error
	if r.costs, err = op.measure(ctx); err != nil {
		op.engine.close()
		return nil, fmt.Errorf("disk: %w", err)
	}
	op.meter.reset()
	r.engine, r.kind, r.why = op.engine, op.kind, strings.Join(op.notes, "; ")
	return r, nil
}

// Size returns the total size of files in bytes.
func Size(files []store.SectionFile) (bytes int64) {
	for _, f := range files {
		bytes += f.Size
	}
	return bytes
}

// Asked is all that Reader.Why returns if the engine that was asked for works and there is nothing
// else to note.
const Asked = "it was asked for"

// opening is a Reader that is being opened.
type opening struct {
	Options
	files []store.SectionFile
	size  int64 // of all files
	meter *meter

	engine engine
	kind   Kind
	notes  []string // the parts of Reader.Why
}

func (op *opening) note(format string, a ...any) {
	op.notes = append(op.notes, fmt.Sprintf(format, a...))
}

// start makes the engine that was asked for, or the next one that works here.
func (op *opening) start() error {
	op.kind = op.Kind
	switch {
	case op.auto() && op.Direct:
		op.kind = Uring
		op.note("the budget has no page cache in it")
	case op.auto():
		available, err := kernels.AvailableMemory()
		var why string
		op.kind, why = choose(op.size, available, err)
		op.note("%s", why)
	default:
		op.note("%s", Asked)
	}
	if op.kind == Mmap {
		op.engine = &mapped{files: op.files, workers: cmp.Or(op.Depth, runtime.GOMAXPROCS(0)), faults: op.Faults, meter: op.meter}
		return nil
	}
	if op.kind != Buffered {
		switch src, err := direct(op.files); {
		case err != nil:
			op.note("the page cache cannot be gone around (%v), so %s", err, Buffered)
			op.kind = Buffered
		case op.kind == Uring:
			e, note, err := openRing(op.with(src), op.depth(defaultRingDepth))
			if err == nil {
				if note != "" {
					op.note("%s", note)
				}
				op.engine = e
				return nil
			}
			op.note("io_uring is not to be had (%v), so %s", err, Pread)
			op.kind = Pread
			fallthrough
		default:
			op.engine = op.pool(src, true)
			return nil
		}
	}
	op.engine = op.pool(cached(op.files), false)
	return nil
}

func (op *opening) auto() bool { return op.Kind == Auto || op.Kind == "" }

// depth returns the number of reads under way at most, each with a buffer.
func (op *opening) depth(usual int) int {
	depth := cmp.Or(op.Depth, usual)
	if op.within > 0 {
		depth = min(depth, op.within)
	}
	return depth
}

// with returns src with the faults and the meter of this Reader.
func (op *opening) with(src source) source {
	src.faults, src.meter = op.Faults, op.meter
	return src
}

func (op *opening) pool(src source, owns bool) *pool {
	return &pool{source: op.with(src), workers: op.depth(defaultDepth), owns: owns}
}

// choose returns the engine that Auto takes for files of size bytes, and the reason, before any is
// tried. err is the error of asking for available memory. Mmap gets at most half of that memory,
// because the caches and the training itself need the other half.
func choose(size, available int64, err error) (Kind, string) {
	switch {
	case err != nil:
		return Mmap, fmt.Sprintf("how much memory is available is not known (%v), and mmap adapts to what there is", err)
	case size <= available/2:
		return Mmap, fmt.Sprintf("files of %s fit in half of the %s of available memory", kernels.FormatBytes(size), kernels.FormatBytes(available))
	default:
		return Uring, fmt.Sprintf("files of %s do not fit in half of the %s of available memory, and page faults would stop the threads that compute",
			kernels.FormatBytes(size), kernels.FormatBytes(available))
	}
}
