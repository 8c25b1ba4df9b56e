//go:build cuda && linux

package main

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// arena is anonymous memory off the Go heap. The collector neither moves nor frees it, so that the
// driver may read or write it at any time. It starts at a multiple of 2 MiB. One goroutine at a
// time.
type arena struct {
	mapped []byte
	bytes  []byte
	used   int
}

const hugePage = 2 << 20

// newArena maps size bytes, and asks for huge pages.
func newArena(size int) *arena { return mapArena(size, unix.MADV_HUGEPAGE) }

// mapArena maps size bytes, and gives the kernel this advice about their pages: see madvise(2).
func mapArena(size, advice int) *arena {
	mapped, err := unix.Mmap(-1, 0, size+hugePage, unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		panic(fmt.Sprintf("mapping %d bytes: %v", size, err))
	}
	_ = unix.Madvise(mapped, advice) // a kernel without huge pages refuses; small pages will do
	skip := -int(addressOf(mapped)) & (hugePage - 1)
	return &arena{mapped: mapped, bytes: mapped[skip:][:size:size]}
}

func (a *arena) free() {
	if err := unix.Munmap(a.mapped); err != nil {
		panic(fmt.Sprintf("unmapping: %v", err))
	}
	a.mapped, a.bytes = nil, nil
}

// take lends size bytes, zeroed, at a multiple of 64. When the arena is full, take starts again at
// the beginning: what it lent first is used again.
func (a *arena) take(size int) []byte {
	if a.used+size > len(a.bytes) {
		a.used = 0
	}
	b := a.bytes[a.used:][:size:size]
	clear(b)
	a.used += (size + 63) &^ 63
	return b
}

func (a *arena) words(n int) []uint32 { return cast[uint32](a.take(4 * n)) }
func (a *arena) longs(n int) []uint64 { return cast[uint64](a.take(8 * n)) }

// cast returns bytes as numbers, without a copy.
func cast[T any](b []byte) []T {
	if len(b) == 0 {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(*new(T))))
}

// bytesOf is the inverse of cast.
func bytesOf[T any](s []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(*new(T))))
}

func addressOf(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }

// at returns the address of memory from an arena.
func at[T any](s []T) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(s))) }

// sliceOf returns the n bytes at p, which C owns.
func sliceOf(p *byte, n int) []byte { return unsafe.Slice(p, n) }
