package kernels

import (
	"fmt"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// guarded is memory between two pages that nothing may touch: a load or store of assembly beyond it
// ends the test.
type guarded []float32

func newGuarded(t *testing.T, n int) guarded {
	page := unix.Getpagesize()
	size := (4*n + page - 1) / page * page
	all, err := unix.Mmap(-1, 0, size+2*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, unix.Munmap(all)) })
	require.NoError(t, unix.Mprotect(all[:page], unix.PROT_NONE))
	require.NoError(t, unix.Mprotect(all[page+size:], unix.PROT_NONE))
	return unsafe.Slice((*float32)(unsafe.Pointer(&all[page])), size/4)
}

// first and last are the n elements behind the page before, and in front of the page after.
func (f guarded) first(n int) []float32 { return f[:n:n] }
func (f guarded) last(n int) []float32  { return f[len(f)-n:] }

// TestMatMulStaysInside multiplies in every shape up to a tile and three more, at both ends of
// memory. The numbers are small and whole, so that every order of additions is exact.
func TestMatMulStaysInside(t *testing.T) {
	const maxM, maxN, maxK = 17, 35, 17
	dsts, as, bs := newGuarded(t, maxM*maxN), newGuarded(t, maxM*maxK), newGuarded(t, maxN*maxK)
	packed, want := newGuarded(t, 64*maxK), make([]float32, maxM*maxN)
	for _, set := range Sets() {
		s := routinesOf(set).strips
		if s == nil {
			continue
		}
		rows, cols := s.tile+3, 2*s.lanes+3
		for m := 1; m <= rows; m++ {
			for n := 1; n <= cols; n++ {
				for i, k := range []int{1, 3, 8, 17} {
					kind := (m + n + i) % 8
					transA, transB, accumulate := kind&1 != 0, kind&2 != 0, kind&4 != 0
					place := guarded.first
					if (m+n/8+i)%2 == 0 {
						place = guarded.last
					}
					dst, a, b := place(dsts, m*n), place(as, m*k), place(bs, k*n)
					fillWhole(dst, 3)
					fillWhole(a, 5)
					fillWhole(b, 7)
					copy(want, dst)
					matMulRef(want, a, b, m, n, k, transA, transB, accumulate)
					wide := 2 * s.lanes
					scratch := place(packed, (n+wide-1)/wide*wide*k)
					s.matMul(dst, a, b, m, n, k, transA, transB, accumulate, scratch, 1)
					if fmt.Sprint(dst) != fmt.Sprint(want[:m*n]) {
						require.Equal(t, want[:m*n], dst, "%s m=%d n=%d k=%d transA=%v transB=%v accumulate=%v", set, m, n, k, transA, transB, accumulate)
					}
				}
			}
		}
	}
}
