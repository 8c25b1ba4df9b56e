package sourcetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"go.uber.org/goleak"

	"github.com/gnnstore/gnnstore/ingest"
)

// How sections end, what they leave behind, and what happens to the memory that they lend.

// checkLent overwrites every chunk, and looks whether it stays as it is during the call of emit.
func (c *conformance) checkLent() error {
	return c.with(func(src ingest.Source, _ *ingest.Schema) error {
		for i, s := range c.sections {
			for range 2 {
				r, err := s.read(context.Background(), src, func(r *rows, lent *chunk) error {
					return s.spoil(r, lent)
				})
				if err != nil {
					return err
				}
				if err := c.compare(i, r, "where emit overwrites what it is lent"); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// meanwhile passes the time for which a chunk is watched. A goroutine that fills buffers ahead
// writes in it if it can. A test writes in it here, where the race detector does not see two
// goroutines.
var meanwhile = func() { time.Sleep(time.Millisecond) }

// spoil watches a chunk that r has a copy of, and overwrites it.
func (s *section) spoil(r *rows, lent *chunk) error {
	meanwhile()
	var now rows
	if len(s.columns) > 0 {
		now.values = make([][]uint64, len(s.columns))
	}
	now.add(s, lent)
	if !r.endsWith(&now) {
		return &Fault{s.name, fmt.Sprintf("chunk %d changed while emit had it", r.chunks-1)}
	}
	for e := range lent.ids {
		fill(lent.ids[e], -0x6b6b6b6b6b)
		fill(lent.texts[e].Bytes, '#')
		fill(lent.texts[e].Ends, 0x6b6b6b6b)
	}
	for _, column := range lent.values {
		fill(column, 0x6b6b6b6b6b6b)
	}
	fill(lent.values, nil)
	fill(lent.floats, -6.6e6)
	fill(lent.classes, -0x6b6b)
	return nil
}

func fill[T any](s []T, x T) {
	for i := range s {
		s[i] = x
	}
}

// endsWith reports whether r ends with the rows of last.
func (r *rows) endsWith(last *rows) bool {
	for e := range r.ids {
		if !suffix(r.ids[e], last.ids[e]) || !suffix(r.texts[e], last.texts[e]) {
			return false
		}
	}
	for k := range r.values {
		if !suffix(r.values[k], last.values[k]) {
			return false
		}
	}
	return suffix(r.floats, last.floats) && suffix(r.classes, last.classes)
}

func suffix[T comparable](all, last []T) bool {
	return slices.EqualFunc(all[len(all)-len(last):], last, func(a, b T) bool { return a == b || a != a && b != b })
}

// checkGoroutine looks where emit is called.
func (c *conformance) checkGoroutine() error {
	return c.with(func(src ingest.Source, _ *ingest.Schema) error {
		reader := goroutine()
		for _, s := range c.sections {
			_, err := s.read(context.Background(), src, func(*rows, *chunk) error {
				if here := goroutine(); here != reader {
					return &Fault{s.name, fmt.Sprintf("emit is called in %s, and it is read in %s", here, reader)}
				}
				return nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// goroutine names the one that calls it, as stack traces do.
func goroutine() string {
	stack := make([]byte, 64)
	name, _, _ := strings.Cut(string(stack[:runtime.Stack(stack, false)]), " [")
	return name
}

// checkStop ends each section by an error at its first, second and last chunk. The error is io.EOF:
// a reader of files that takes it for the end of a file would lose it.
func (c *conformance) checkStop() error {
	return c.with(func(src ingest.Source, _ *ingest.Schema) error {
		for i, s := range c.sections {
			for _, at := range c.turns(i) {
				enough, calls := io.EOF, 0
				_, err := s.read(context.Background(), src, func(r *rows, _ *chunk) error {
					if calls++; r.chunks > at {
						return enough
					}
					return nil
				})
				if err != enough || calls != at+1 {
					return &Fault{s.name, fmt.Sprintf("emit ended it at chunk %d, and was called %d times; it returned %v", at, calls, err)}
				}
			}
			if err := c.reads(src, i, "after emit ended it"); err != nil {
				return err
			}
		}
		return nil
	})
}

// turns are the first, second and last chunk of a section.
func (c *conformance) turns(i int) []int {
	n := c.want[i].chunks
	at := slices.Compact([]int{0, min(1, n-1), n - 1})
	return slices.DeleteFunc(at, func(at int) bool { return at < 0 || n == 0 })
}

// checkCancelled cancels the context before each section, and at its first, second and last chunk.
func (c *conformance) checkCancelled() error {
	return c.with(func(src ingest.Source, _ *ingest.Schema) error {
		for i, s := range c.sections {
			for _, at := range append([]int{-1}, c.turns(i)...) {
				ctx, cancel := context.WithCancel(context.Background())
				if at < 0 {
					cancel()
				}
				r, err := s.read(ctx, src, func(r *rows, _ *chunk) error {
					if r.chunks > at {
						cancel()
					}
					return nil
				})
				cancel()
				if r.chunks > at+1 {
					return &Fault{s.name, fmt.Sprintf("the context was cancelled at chunk %d, and %d chunks came", at, r.chunks)}
				}
				if left := c.want[i].chunks - r.chunks; !(left == 0 && err == nil) && !errors.Is(err, context.Canceled) {
					return &Fault{s.name, fmt.Sprintf("the context was cancelled at chunk %d, and it returned %v; %d chunks were left", at, err, left)}
				}
			}
			if err := c.reads(src, i, "after its context was cancelled"); err != nil {
				return err
			}
		}
		return nil
	})
}

// countdown is a context that is cancelled when it is looked at the nth time.
type countdown struct {
	context.Context
	left   atomic.Int64
	cancel context.CancelFunc
}

func newCountdown(looks int64) *countdown {
	ctx := &countdown{}
	ctx.Context, ctx.cancel = context.WithCancel(context.Background())
	ctx.left.Store(looks)
	return ctx
}

func (ctx *countdown) Err() error {
	if ctx.left.Add(-1) < 0 {
		ctx.cancel()
	}
	return ctx.Context.Err()
}

// checkCancelledAnywhere cancels the context when Schema, or a section, looks at it for the first
// time, the second, the third, the fifth and so on. Either it ends with the context's error and can
// be called again, or it does all its work.
func (c *conformance) checkCancelledAnywhere() error {
	last := int64(0)
	for looks := int64(0); ; looks += 1 + looks/2 {
		cancelled, err := c.cancelSchema(looks, false)
		if err != nil {
			return err
		}
		if !cancelled {
			break
		}
		last = looks
	}
	if _, err := c.cancelSchema(last, true); err != nil {
		return err
	}
	return c.with(func(src ingest.Source, _ *ingest.Schema) error {
		for i, s := range c.sections {
			for looks := int64(0); ; looks += 1 + looks/2 {
				cancelled, err := c.cancelSection(src, i, looks)
				if err != nil {
					return err
				}
				if !cancelled {
					break
				}
			}
			if err := c.reads(src, i, "after its context was cancelled"); err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
		}
		return nil
	})
}

// cancelSchema cancels Schema when it has looked so often, and calls it again. It may read all
// sections after that.
func (c *conformance) cancelSchema(looks int64, all bool) (cancelled bool, err error) {
	src, err := c.open()
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	ctx := newCountdown(looks)
	defer ctx.cancel()
	schema, err := src.Schema(ctx)
	if cancelled = errors.Is(err, context.Canceled); cancelled {
		schema, err = src.Schema(context.Background())
	}
	if err != nil {
		return false, &Fault{"schema", fmt.Sprintf("its context was cancelled, and it (or the next call) returned %v", err)}
	}
	if err := c.sameSchema(schema, "after its context was cancelled"); err != nil {
		return false, err
	}
	for i := 0; all && i < len(c.sections); i++ {
		if err := c.reads(src, i, "after the context of Schema was cancelled"); err != nil {
			return false, err
		}
	}
	return cancelled, nil
}

// cancelSection cancels a section when it has looked so often.
func (c *conformance) cancelSection(src ingest.Source, i int, looks int64) (cancelled bool, err error) {
	s, ctx := c.sections[i], newCountdown(looks)
	defer ctx.cancel()
	r, err := s.read(ctx, src, func(*rows, *chunk) error {
		if ctx.Context.Err() != nil {
			return errLate
		}
		return nil
	})
	switch {
	case err == errLate:
		return false, &Fault{s.name, "a chunk came after the context was cancelled"}
	case err == nil:
		return false, c.compare(i, r, "with a context that was cancelled, and no error")
	case !errors.Is(err, context.Canceled):
		return false, &Fault{s.name, fmt.Sprintf("its context was cancelled, and it returned %v", err)}
	}
	return true, nil
}

var errLate = errors.New("a chunk came late")

// checkLeftovers looks for goroutines and open files after each section, however it ended, and
// after Close.
func (c *conformance) checkLeftovers() error {
	enough := errors.New("enough")
	before := openFiles()
	nothing := goleak.IgnoreCurrent()
	err := c.with(func(src ingest.Source, _ *ingest.Schema) error {
		files := openFiles()
		for i, s := range c.sections {
			for _, ending := range []string{"its end", "an error of emit", "a cancelled context"} {
				ctx, cancel := context.WithCancel(context.Background())
				running := goleak.IgnoreCurrent()
				_, err := s.read(ctx, src, func(*rows, *chunk) error {
					switch ending {
					case "an error of emit":
						return enough
					case "a cancelled context":
						cancel()
					}
					return nil
				})
				cancel()
				if err != nil && err != enough && !errors.Is(err, context.Canceled) {
					return fmt.Errorf("%s, after %s: %w", s.name, ending, err)
				}
				if err := goleak.Find(running); err != nil {
					return &Fault{s.name, fmt.Sprintf("after %s: %v", ending, err)}
				}
				if left := moreFiles(files); len(left) > 0 {
					return &Fault{s.name, fmt.Sprintf("after %s, files are open: %q", ending, left)}
				}
			}
			if err := c.reads(src, i, "after other endings"); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := goleak.Find(nothing); err != nil {
		return &Fault{"Close", err.Error()}
	}
	if left := moreFiles(before); len(left) > 0 {
		return &Fault{"Close", fmt.Sprintf("files are open: %q", left)}
	}
	return nil
}

// openFiles counts the files that this process has open, by path. It finds none where there is no
// /proc.
func openFiles() map[string]int {
	links, _ := filepath.Glob("/proc/self/fd/*")
	files := map[string]int{}
	for _, link := range links {
		if path, err := os.Readlink(link); err == nil && strings.HasPrefix(path, "/") && !strings.HasPrefix(path, "/sys/") {
			files[path]++
		}
	}
	return files
}

// moreFiles are the paths of files that are open more often than before.
func moreFiles(before map[string]int) []string {
	var more []string
	for path, n := range openFiles() {
		if n > before[path] {
			more = append(more, path)
		}
	}
	return more
}

// checkClose closes sources twice: one that nothing was asked of, one after Schema, and one whose
// sections were ended.
func (c *conformance) checkClose() error {
	enough := errors.New("enough")
	for _, use := range []struct {
		when string
		use  func(src ingest.Source) error
	}{
		{"when nothing was read", func(ingest.Source) error { return nil }},
		{"after Schema", func(src ingest.Source) error { _, err := src.Schema(context.Background()); return err }},
		{"after sections", func(src ingest.Source) error {
			if _, err := src.Schema(context.Background()); err != nil {
				return err
			}
			for _, s := range c.sections {
				if _, err := s.read(context.Background(), src, func(*rows, *chunk) error { return enough }); err != nil && err != enough {
					return err
				}
			}
			return nil
		}},
	} {
		src, err := c.open()
		if err != nil {
			return err
		}
		if err := use.use(src); err != nil {
			return err
		}
		for _, time := range []string{"first", "second"} {
			if err := src.Close(); err != nil {
				return &Fault{"Close", fmt.Sprintf("%s, the %s call returned %v", use.when, time, err)}
			}
		}
	}
	return nil
}
