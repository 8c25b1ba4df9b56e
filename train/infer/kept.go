package infer

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/gnnstore/gnnstore/kernels"
)

// Kept are the rows that a layer makes of some nodes of a type, to be read in any order: in memory,
// or in a file that has no name, so that nothing of it stays, whatever ends the process. One
// goroutine at a time.
type Kept struct {
	cols   int
	at     places
	memory *kernels.HostBuf // nil: in file
	file   *os.File
	buf    []byte // of a piece of file
	filled int
}

// keptPiece is the size of one read or write of the file.
const keptPiece = 1 << 20

// Keep computes rows of a layer for nodes of type t, ascending, as EachOf does, and keeps them in
// memory if they take at most memory bytes, or if Options.Dir is not set, and else in a file beside
// Options.Dir. Layer -1 means the rows of Inputs.
func (e *Evaluator) Keep(ctx context.Context, layer, t int, nodes []uint32, memory int64) (_ *Kept, err error) {
	set := newNodeSet(e.data.Types[t].Nodes)
	for _, v := range nodes {
		set.add(v)
	}
	cols := e.data.Types[t].Dim()
	if layer >= 0 {
		cols = e.step.Model.Width(layer)
	}
	k := &Kept{cols: cols, at: newPlaces(set)}
	defer func() {
		if err != nil {
			k.Close()
		}
	}()
	bytes := int64(len(nodes)) * int64(cols) * 4
	if err := k.open(e.fs(), e.Dir, len(nodes), bytes, memory); err != nil {
		return nil, err
	}
	if k.file != nil {
		e.SpaceBeside += bytes
		defer func() { e.SpaceBeside -= bytes }()
	}
	if len(nodes) == 0 {
		return k, nil
	}
	keep := func(_ []uint32, y kernels.Tensor) error { return k.append(e.step.Feed.Download(y)) }
	if layer < 0 {
		return k, e.Inputs(ctx, t, nodes, keep)
	}
	return k, e.EachOf(ctx, layer, t, nodes, keep)
}

func (k *Kept) open(fsys vfs.FS, dir string, rows int, bytes, memory int64) (err error) {
	if bytes <= memory || dir == "" {
		k.memory, err = kernels.NewHostBuf(int(bytes))
		return err
	}
	dir = filepath.Dir(dir)
	usage, err := fsys.GetDiskUsage(dir)
	if err == nil && uint64(bytes) > usage.AvailBytes {
		return fmt.Errorf("%s: %w: the rows of %d nodes take %s, and it has %s; make room there, or give more {memory_bytes}", dir, syscall.ENOSPC, rows,
			kernels.FormatBytes(bytes), kernels.FormatBytes(int64(usage.AvailBytes)))
	}
	if err != nil && !errors.Is(err, vfs.ErrUnsupported) {
		return fmt.Errorf("space left in %s: %w", dir, err)
	}
	if k.file, err = os.CreateTemp(dir, ".rows-*"); err != nil {
		return fmt.Errorf("a file for the rows of %d nodes: %w", rows, err)
	}
	return os.Remove(k.file.Name())
}

// append keeps the next rows.
func (k *Kept) append(rows []float32) error {
	first := k.filled
	k.filled += len(rows)
	if k.memory != nil {
		copy(k.memory.Float32s()[first:], rows)
		return nil
	}
	for len(rows) > 0 {
		n := min(len(rows), keptPiece/4)
		k.buf = k.buf[:0]
		for _, x := range rows[:n] {
			k.buf = binary.LittleEndian.AppendUint32(k.buf, math.Float32bits(x))
		}
		if _, err := k.file.Write(k.buf); err != nil {
			return fmt.Errorf("write the rows of nodes: %w", err)
		}
		rows = rows[n:]
	}
	return nil
}

// Cols is the number of columns.
func (k *Kept) Cols() int { return k.cols }

// Read copies the rows of nodes, which are kept, to dst. Neighbours in ascending order are read
// together.
func (k *Kept) Read(dst []float32, nodes []uint32) error {
	for len(nodes) > 0 {
		first, n := int(k.at.of(nodes[0])), 1
		for n < len(nodes) && int(k.at.of(nodes[n])) == first+n {
			n++
		}
		if err := k.read(dst[:n*k.cols], first); err != nil {
			return err
		}
		dst, nodes = dst[n*k.cols:], nodes[n:]
	}
	return nil
}

// read copies rows from the first-th on.
func (k *Kept) read(dst []float32, first int) error {
	at := first * k.cols
	if k.memory != nil {
		copy(dst, k.memory.Float32s()[at:])
		return nil
	}
	for len(dst) > 0 {
		n := min(len(dst), keptPiece/4)
		if cap(k.buf) < 4*n {
			k.buf = make([]byte, 4*n)
		}
		b := k.buf[:4*n]
		if _, err := k.file.ReadAt(b, 4*int64(at)); err != nil {
			return fmt.Errorf("read the rows of nodes: %w", err)
		}
		for i := range n {
			dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
		}
		dst, at = dst[n:], at+n
	}
	return nil
}

// Close gives the rows up.
func (k *Kept) Close() {
	if k.memory != nil {
		k.memory.Close()
		k.memory = nil
	}
	if k.file != nil {
		_ = k.file.Close() // nobody reads it again
		k.file = nil
	}
}
