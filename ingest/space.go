package ingest

import (
	"context"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// sectionOverhead bounds what a section takes beyond its payload: a header page, and padding to the end of a page.
const sectionOverhead = 2 * 4096

// manifestBytes is ample for the manifest of a dataset without many shards.
const manifestBytes = 1 << 20

// checkDeclaredSpace refuses early, from what the source declares, so that nobody waits for hours of reading. What is not
// declared counts nothing, and waits for checkSpace.
func (b *builder) checkDeclaredSpace() error { return b.checkFree(b.forecast(), 0) }

// checkSpace refuses before the first write of the dataset, when nodes and edges are counted.
func (b *builder) checkSpace(context.Context) error { return b.checkFree(b.forecast(), b.area.Held()) }

// rowBytes is a row on disk: its stride is a power of two or packed to 16 bytes, at most 5 % more.
func (b *builder) rowBytes(dim int) int64 {
	size := int64(dim * b.elem().Size())
	return size + max(size/20, 15)
}

// SpaceError says that a disk has too little room.
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
		remedy += ", or spill elsewhere with --tmp"
	}
	return fmt.Sprintf("%s: the %s about %d bytes and %d are free; %s", e.Path, e.What, e.Need, e.Free, remedy)
}

// checkFree compares with the space left where the dataset and what is spilled go, of which there is something already.
func (b *builder) checkFree(p *Plan, there int64) error {
	parent := b.FS.PathDir(b.out)
	if b.Tmp == "" {
		return b.free(parent, "dataset and what is spilled on the way need", p.DiskBytes-there, p.Files)
	}
	if err := b.free(b.Tmp, "data that do not fit in memory need", p.SpillBytes-there, p.Files); err != nil {
		return err
	}
	return b.free(parent, "dataset needs", p.Bytes, 0)
}

// free refuses a directory without space for bytes and files. A file system that does not tell is believed to have it.
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
		return fmt.Errorf("%s: up to %d files are needed on the way and the file system has room for %d; remove some, or spill elsewhere with --tmp", b.out, files, left)
	}
	return nil
}
