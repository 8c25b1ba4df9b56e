package store

import (
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPageSums compares each routine with hash/crc32, on zeros, ones, every page with a single bit,
// and random pages at any address. A CRC is linear up to a constant, and so is each step of the
// routines: if zeros and single bits agree, all pages do.
func TestPageSums(t *testing.T) {
	require.EqualValues(t, 0xe3069283, crc32.Checksum([]byte("123456789"), castagnoli), "the check value of CRC-32C")
	random := rand.NewChaCha8([32]byte{1})
	for _, way := range sumRoutines() {
		t.Run(way.name, func(t *testing.T) {
			page := make([]byte, PageSize)
			equal := func(page []byte, what ...any) {
				if got, want := way.sum(page), crc32.Checksum(page[:PageSize], castagnoli); got != want {
					t.Fatalf("%08x, want %08x: %s", got, want, fmt.Sprint(what...))
				}
			}
			equal(page, "zeros")
			for bit := range PageSize * 8 {
				page[bit/8] = 1 << (bit % 8)
				equal(page, "bit ", bit)
				page[bit/8] = 0
			}
			for i := range page {
				page[i] = 0xff
			}
			equal(page, "ones")
			pages := make([]byte, 3*PageSize)
			for range 20 {
				_, _ = random.Read(pages)
				for at := range 130 {
					equal(pages[at:], "random page at ", at)
				}
			}
		})
	}
}

// TestSumWriter writes pages in parts: whole pages, parts of one, and parts that span two.
func TestSumWriter(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	pages := make([]byte, 40*PageSize)
	_, _ = rand.NewChaCha8([32]byte{2}).Read(pages)
	var want sumWriter
	for page := pages; len(page) > 0; page = page[PageSize:] {
		_, _ = want.Write(page[:1])
		_, _ = want.Write(page[1:PageSize])
	}
	require.Len(t, want.sums, 40*sumBytes)
	for range 100 {
		var w sumWriter
		for rest := pages; len(rest) > 0; {
			n := min(1+random.IntN(3*PageSize), len(rest))
			_, _ = w.Write(rest[:n])
			rest = rest[n:]
		}
		require.Equal(t, want.sums, w.sums)
	}
}

// BenchmarkPageSum goes through a buffer page by page, as readers of extents do. Buffers of 64 KiB
// and 1 MiB stay in the caches of a core; one of 256 MiB comes from memory.
func BenchmarkPageSum(b *testing.B) {
	for _, bytes := range []int{64 << 10, 1 << 20, 256 << 20} {
		buf := make([]byte, bytes)
		_, _ = rand.NewChaCha8([32]byte{3}).Read(buf)
		for _, way := range sumRoutines() {
			b.Run(fmt.Sprintf("way=%s/KiB=%d", way.name, bytes>>10), func(b *testing.B) {
				b.SetBytes(int64(bytes))
				for b.Loop() {
					for page := buf; len(page) > 0; page = page[PageSize:] {
						way.sum(page)
					}
				}
			})
		}
	}
}
