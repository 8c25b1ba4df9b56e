//go:build unix

package kernels

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// hugePages is n elements of memory outside the heap, in huge pages where the system has them.
func hugePages[T any](b *testing.B, n int) []T {
	var element T
	m, err := unix.Mmap(-1, 0, n*int(unsafe.Sizeof(element)), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = unix.Munmap(m) })
	adviseHuge(m)
	return unsafe.Slice((*T)(unsafe.Pointer(&m[0])), n)
}

// randomLists are dsts lists of equal length that name rows of a table.
func randomLists(dsts, degree, rows int) (start, end, nbr []uint32) {
	rng := rand.New(rand.NewPCG(1, 2))
	start, end, nbr = make([]uint32, dsts), make([]uint32, dsts), make([]uint32, dsts*degree)
	for i := range start {
		start[i], end[i] = uint32(i*degree), uint32(i*degree+degree)
	}
	for i := range nbr {
		nbr[i] = rng.Uint32N(uint32(rows))
	}
	return start, end, nbr
}

// tables are sizes of a table of rows in bytes: one that fits in a second-level cache, one for a
// large third-level cache, and one that fits in none.
var tables = []struct {
	name  string
	bytes int
}{{"warm", 512 << 10}, {"shared", 64 << 20}, {"cold", 1 << 30}}

// BenchmarkLists counts the bytes of the rows that are read, on one core: of float16 and float32
// rows for means, of float32 rows for the gradient of the mean and for one weight per edge.
func BenchmarkLists(b *testing.B) {
	const dsts, degree = 8192, 10
	for _, table := range tables {
		halves, floats := hugePages[uint16](b, table.bytes/2), hugePages[float32](b, table.bytes/4)
		for i := range halves {
			halves[i] = 0x3c00 + uint16(i%512)
		}
		for i := range floats {
			floats[i] = float32(i % 512)
		}
		for _, cols := range []int{100, 128, 256} {
			start, end, nbrHalf := randomLists(dsts, degree, len(halves)/cols)
			_, _, nbr := randomLists(dsts, degree, len(floats)/cols)
			dst, weights := make([]float32, dsts*cols), floatsFrom(3, max(dsts*degree, len(floats)/cols))
			for _, set := range Sets() {
				c := NewCPU(CPUOptions{Threads: 1, Set: set})
				for _, op := range []struct {
					name  string
					bytes int
					run   func()
				}{
					{"mean/dtype=F16", 2, func() { c.neighborMeanHalf(dst, halves, cols, start, end, nbrHalf) }},
					{"mean/dtype=F32", 4, func() { c.neighborMean(dst, floats, cols, start, end, nbr) }},
					{"weighted/dtype=F16", 2, func() { c.weightedSumHalf(dst, cols, cols, halves, cols, start, end, nbrHalf, weights, 1) }},
					{"weighted/dtype=F32", 4, func() { c.weightedSum(dst, cols, cols, floats, cols, start, end, nbr, weights, 1) }},
					{"meanGrad/dtype=F32", 4, func() {
						c.rowWeightedSum(dst, floats, cols, start, end, nbr, weights, true)
					}},
				} {
					b.Run(fmt.Sprintf("op=%s/cols=%d/degree=%d/table=%s/set=%s", op.name, cols, degree, table.name, set), func(b *testing.B) {
						clear(dst)
						b.SetBytes(int64(op.bytes * dsts * degree * cols))
						for b.Loop() {
							op.run()
						}
						b.ReportMetric(float64(dsts*degree)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
					})
				}
			}
		}
	}
}

// BenchmarkMemory is the ceiling of what is measured here, on arrays in cache and in none: bytes
// copied, each read and written once; and bytes read one after the other, by the sum of columns,
// which keeps nothing else.
func BenchmarkMemory(b *testing.B) {
	for _, table := range tables {
		src, dst := hugePages[byte](b, table.bytes/2), hugePages[byte](b, table.bytes/2)
		b.Run(fmt.Sprintf("op=copy/table=%s", table.name), func(b *testing.B) {
			copy(dst, src)
			b.SetBytes(int64(table.bytes / 2))
			for b.Loop() {
				copy(dst, src)
			}
		})
		floats, sum := unsafe.Slice((*float32)(unsafe.Pointer(&src[0])), len(src)/4), make([]float32, 256)
		b.Run(fmt.Sprintf("op=read/table=%s", table.name), func(b *testing.B) {
			b.SetBytes(int64(len(src)))
			for b.Loop() {
				fastest.columnSumGrad(sum, floats)
			}
		})
	}
}
