package trace

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"syscall"

	"github.com/gnnstore/gnnstore/kernels"
)

// requests holds the rows that the batches of a trace ask for, in order, in a file that only this
// process sees. The file's name is removed as soon as it is open, so it never outlives the process.
// Writing comes first, by one goroutine; then any number may read.
type requests struct {
	file  *os.File
	block *kernels.HostBuf
	fill  int     // numbers in block that wait to be written
	ends  []int64 // number of requests up to the end of each batch
}

// blockLen is the number of requests that are written or read at a time: 1 MiB.
const blockLen = 1 << 18

// maxRequests bounds a trace, since never and places are 32 bits.
const maxRequests = never - 1

// newRequests makes a file in dir, or if dir is empty in the system's directory of temporary files.
func newRequests(dir string) (*requests, error) {
	f, err := os.CreateTemp(dir, "gnnstore-trace-*")
	if err != nil {
		return nil, fmt.Errorf("file of the trace: %w; give another directory with {tmp}", err)
	}
	if err := os.Remove(f.Name()); err != nil {
		f.Close()
		return nil, fmt.Errorf("file of the trace: %w", err)
	}
	block, err := kernels.NewHostBuf(4 * blockLen)
	if err != nil {
		f.Close()
		return nil, err
	}
	return &requests{file: f, block: block}, nil
}

func (r *requests) close() {
	r.file.Close()
	r.block.Close()
}

// count returns the number of requests.
func (r *requests) count() int64 { return r.before(len(r.ends)) }

// before returns the number of requests before a batch.
func (r *requests) before(batch int) int64 {
	if batch == 0 {
		return 0
	}
	return r.ends[batch-1]
}

// batches returns the mean, least and largest number of requests of a batch.
func (r *requests) batches() Batches {
	b := Batches{Mean: float64(r.count()) / float64(len(r.ends)), Min: math.MaxInt}
	for i, end := range r.ends {
		n := int(end - r.before(i))
		b.Min, b.Max = min(b.Min, n), max(b.Max, n)
	}
	return b
}

// add appends the rows of a batch.
func (r *requests) add(rows []uint32) error {
	n := r.count() + int64(len(rows))
	if n > maxRequests {
		return fmt.Errorf("batch %d: more than %d rows asked for, which is all that a trace can hold; take fewer {steps}",
			len(r.ends)+1, maxRequests)
	}
	r.ends = append(r.ends, n)
	block := r.block.Uint32s()
	for len(rows) > 0 {
		moved := copy(block[r.fill:], rows)
		rows, r.fill = rows[moved:], r.fill+moved
		if r.fill == blockLen {
			if err := r.write(); err != nil {
				return err
			}
		}
	}
	return nil
}

// finish writes the rest of the block.
func (r *requests) finish() error { return r.write() }

func (r *requests) write() error {
	_, err := r.file.Write(r.block.Bytes()[:4*r.fill])
	r.fill = 0
	return wayOut(err)
}

// wayOut wraps an error of the file. For a full disk it adds what to do.
func wayOut(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("file of the trace, 4 bytes a row asked for: %w; "+
			"make room, take fewer {steps}, or give another directory with {tmp}", err)
	}
	return fmt.Errorf("file of the trace: %w", err)
}

// link replaces each request by the place of the next one for the same row, or never, from the last
// to the first. There are as many rows as nodes.
func (r *requests) link(ctx context.Context, nodes int) error {
	buf, err := kernels.NewHostBuf(4 * nodes)
	if err != nil {
		return err
	}
	defer buf.Close()
	next := buf.Uint32s() // of a row, plus 1; 0 where there is none
	return r.each(ctx, true, func(at int64, block []uint32) {
		for i := len(block) - 1; i >= 0; i-- {
			v := block[i]
			block[i] = next[v] - 1 // 0 wraps around to never
			next[v] = uint32(at) + uint32(i) + 1
		}
	})
}

// each calls visit with all requests in blocks; a block begins at place at. With rewrite it goes
// from the last block to the first, and writes each block back as visit leaves it.
func (r *requests) each(ctx context.Context, rewrite bool, visit func(at int64, block []uint32)) error {
	buf, err := kernels.NewHostBuf(4 * blockLen)
	if err != nil {
		return err
	}
	defer buf.Close()
	blocks := (r.count() + blockLen - 1) / blockLen
	for i := range blocks {
		if err := ctx.Err(); err != nil {
			return err
		}
		at := i * blockLen
		if rewrite {
			at = (blocks - 1 - i) * blockLen
		}
		n := min(r.count()-at, blockLen)
		bytes := buf.Bytes()[:4*n]
		if _, err := r.file.ReadAt(bytes, 4*at); err != nil {
			return fmt.Errorf("file of the trace: %w", err)
		}
		visit(at, buf.Uint32s()[:n])
		if rewrite {
			if _, err := r.file.WriteAt(bytes, 4*at); err != nil {
				return wayOut(err)
			}
		}
	}
	return nil
}

// inBatches calls visit with all requests and the number of their batch. A batch may come in
// several parts.
func (r *requests) inBatches(ctx context.Context, visit func(batch int, part []uint32)) error {
	batch := 0
	return r.each(ctx, false, func(at int64, block []uint32) {
		for len(block) > 0 {
			for r.ends[batch] <= at {
				batch++
			}
			n := min(int64(len(block)), r.ends[batch]-at)
			visit(batch, block[:n])
			block, at = block[n:], at+n
		}
	})
}

// replay asks s for all requests, and returns the misses of each batch: misses[batch*caches+i] are
// the misses of the i-th cache.
func (r *requests) replay(ctx context.Context, s simulator, caches int) (misses []int64, err error) {
	misses = make([]int64, len(r.ends)*caches)
	err = r.inBatches(ctx, func(batch int, part []uint32) {
		s.ask(part, misses[batch*caches:(batch+1)*caches])
	})
	return misses, err
}
