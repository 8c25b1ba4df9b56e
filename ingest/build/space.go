package build

import (
	"context"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/gnnstore/gnnstore/kernels"
)

// sectionOverhead bounds the bytes of a section beyond its payload: a header page, and padding to
// the end of a page.
const sectionOverhead = 2 * 4096

// manifestBytes is ample for the manifest of a dataset without many shards.
const manifestBytes = 1 << 20

// checkSpace refuses a build whose passes that are left lack room, as far as it is known. Before
// anything is read, undeclared numbers count nothing; once nodes and edges are counted it is called
// again.
func (b *builder) checkSpace(context.Context) error { return b.checkFree(b.forecast()) }

// rowBytes is a row on disk: its stride is a power of two or packed to 16 bytes, at most 5 % more.
func (b *builder) rowBytes(dim int) int64 {
	size := int64(dim * b.elem().Size())
	return size + max(size/20, 15)
}

// SpaceError is the error of a disk with too little room.
type SpaceError struct {
	Path string // of the dataset
	What string // needs it
	Need int64  // bytes
	Free uint64
	Tmp  bool // Options.Tmp is set already
}

func (e *SpaceError) Error() string {
	remedy := "make room, or write it elsewhere"
	if !e.Tmp {
		remedy += ", or spill elsewhere with {tmp}"
	}
	return fmt.Sprintf("%s: the %s about %s and %s are free; %s", e.Path, e.What, kernels.FormatBytes(e.Need), kernels.FormatBytes(int64(e.Free)), remedy)
}

// checkFree compares the plan with the space left for the dataset and for spilled data.
func (b *builder) checkFree(p *Plan) error {
	parent := b.FS.PathDir(b.out)
	if b.Tmp == "" {
		return b.free(parent, "dataset and what is spilled on the way need", p.left.disk, p.Files)
	}
	if err := b.free(b.Tmp, "data that do not fit in memory need", p.left.spill, p.Files); err != nil {
		return err
	}
	return b.free(parent, "dataset needs", p.left.written, 0)
}

// free refuses a directory without space for bytes and files. A file system that does not tell is
// believed to have it.
func (b *builder) free(dir, what string, bytes, files int64) error {
	usage, err := b.FS.GetDiskUsage(dir)
	if errors.Is(err, vfs.ErrUnsupported) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("space left in %s: %w", dir, err)
	}
	if bytes > 0 && uint64(bytes) > usage.AvailBytes {
		return &SpaceError{Path: b.out, What: what, Need: bytes, Free: usage.AvailBytes, Tmp: b.Tmp != ""}
	}
	if vfs.Root(b.FS) != vfs.Default {
		return nil
	}
	if left, ok := freeFiles(dir); ok && files > left {
		return fmt.Errorf("%s: up to %d files are needed on the way and the file system has room for %d; remove some, or spill elsewhere with {tmp}", b.out, files, left)
	}
	return nil
}
