//go:build (linux || darwin || freebsd) && !race

package kernels

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	canMap     = true
	maxHostBuf = 1 << 56 // beyond what 64-bit machines address: the system knows better, but sizes are rounded up first
)

// mapMemory maps size bytes, a multiple of the page, at a multiple of hugePage if there are as
// many.
func mapMemory(size int) ([]byte, error) {
	if size < hugePage {
		p, err := mapAnywhere(size)
		if err != nil {
			return nil, err
		}
		return unsafe.Slice((*byte)(p), size), nil
	}
	// More than is wanted, less what lies before and behind the aligned part.
	p, err := mapAnywhere(size + hugePage)
	if err != nil {
		return nil, err
	}
	before := int(-uintptr(p) % hugePage)
	if before > 0 {
		// What cannot be unmapped costs addresses and no memory.
		_ = unix.MunmapPtr(p, uintptr(before))
	}
	_ = unix.MunmapPtr(unsafe.Add(p, before+size), uintptr(hugePage-before))
	whole := unsafe.Slice((*byte)(unsafe.Add(p, before)), size)
	adviseHugePages(whole)
	return whole, nil
}

func mapAnywhere(size int) (unsafe.Pointer, error) {
	return unix.MmapPtr(-1, 0, nil, uintptr(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
}

// unmapMemory gives back what mapMemory returned.
func unmapMemory(whole []byte) {
	if err := unix.MunmapPtr(unsafe.Pointer(unsafe.SliceData(whole)), uintptr(len(whole))); err != nil {
		// The process has as many maps as it may, and this would split one: the memory stays, and
		// stays counted.
		hostBytes.Add(int64(len(whole)))
	}
}
