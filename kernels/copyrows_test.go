package kernels

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCopyRows: sets copy what the plain function does, and touch nothing beyond: rows of all
// sizes, lists shorter and longer than what is prefetched, and operands that end where memory does.
func TestCopyRows(t *testing.T) {
	const rows = 40
	rng := rand.New(rand.NewPCG(1, 2))
	var f fence
	for _, size := range []int{1, 2, 63, 64, 65, 96, 127, 128, 129, 200, 768, 1500} {
		src := make([]byte, rows*size)
		for i := range src {
			src[i] = byte(rng.Uint32())
		}
		for _, n := range []int{0, 1, 2, 7, 8, 9, 17, rows} {
			to, moves, want := rng.Perm(rows), make([]Move, n), make([]byte, rows*size)
			for i := range moves {
				from := rng.IntN(rows)
				moves[i] = Move{uint32(from), uint32(to[i])}
				copy(want[to[i]*size:][:size], src[from*size:])
			}
			for _, set := range Sets() {
				for kind := range fenceKinds {
					f.reset(kind)
					r, dst := routinesOf(set), lay(&f, make([]byte, rows*size))
					r.copyRows(dst, lay(&f, src), size, moves)
					note := fmt.Sprintf("%d rows of %d bytes, %s, %s", n, size, set, kind)
					require.True(t, bytes.Equal(want, dst), note)
					for _, check := range f.cells {
						check(t, note)
					}
				}
			}
		}
	}
}

func TestCopyRowsThatAreNotThere(t *testing.T) {
	dst, src := make([]byte, 300), make([]byte, 200)
	CopyRows(dst, src, 100, []Move{{1, 2}})
	CopyRows(nil, nil, 0, nil)
	for _, m := range []Move{{2, 0}, {0, 3}, {1 << 31, 1 << 31}} {
		require.Panics(t, func() { CopyRows(dst, src, 100, []Move{{0, 0}, m}) }, "%v", m)
	}
	require.Panics(t, func() { CopyRows(dst, src, 0, []Move{{0, 0}}) })
}

// BenchmarkCopyRows copies rows from anywhere in memory that is far larger than a cache to where a
// step has them, on one core.
func BenchmarkCopyRows(b *testing.B) {
	const table, batch = 1 << 30, 48 << 20
	src, err := NewHostBuf(table)
	require.NoError(b, err)
	defer src.Close()
	dst, err := NewHostBuf(batch)
	require.NoError(b, err)
	defer dst.Close()
	for i := range src.Uint64s() {
		src.Uint64s()[i] = uint64(i) // or all of it would be one page of zeros
	}
	for _, size := range []int{128, 256, 768, 1536} {
		rng := rand.New(rand.NewPCG(1, 2))
		moves := make([]Move, batch/size)
		for i := range moves {
			moves[i] = Move{rng.Uint32N(uint32(table / size)), uint32(i)}
		}
		for _, set := range Sets() {
			r := routinesOf(set)
			b.Run(fmt.Sprintf("bytes=%d/set=%s", size, set), func(b *testing.B) {
				b.SetBytes(batch)
				for b.Loop() {
					r.copyRows(dst.Bytes(), src.Bytes(), size, moves)
				}
			})
		}
	}
}
