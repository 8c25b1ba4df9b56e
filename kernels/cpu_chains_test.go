package kernels

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// chained has the tensors of a norm, ReLU and dropout, and of the way back.
type chained struct {
	c                                       *CPU
	x, gain, bias, ids, y, stats, dy        Tensor
	dx, dgain, dbias                        Tensor
	key                                     uint64
	after                                   func(step int) // called after each operation
	relu, dropout, backDropout, mask, fresh bool
}

// newChained returns a chained with the optional operations, and fresh, that bits sets. bits is
// below combinations.
func newChained(c *CPU, rows, cols, bits int) *chained {
	t := &chained{c: c, key: 5, after: func(int) {}}
	t.relu, t.dropout, t.backDropout = bits&1 > 0, bits&2 > 0, bits&4 > 0
	t.mask, t.fresh = bits&8 > 0, bits&16 > 0
	of := func(seed uint64, rows, cols int) Tensor {
		m := Tensor{Buf: c.Alloc(F32, rows*cols), Type: F32, Rows: rows, Cols: cols}
		c.UploadF32(m, floatsFrom(seed, rows*cols))
		return m
	}
	t.x, t.y, t.dy, t.dx = of(1, rows, cols), of(4, rows, cols), of(6, rows, cols), of(7, rows, cols)
	t.gain, t.bias, t.dgain, t.dbias = of(2, 1, cols), of(3, 1, cols), of(8, 1, cols), of(9, 1, cols)
	t.stats = of(5, rows, 2)
	t.ids = Tensor{Buf: c.Alloc(U32, rows), Type: U32, Rows: rows, Cols: 1}
	ids := make([]uint32, rows)
	for i := range ids {
		ids[i] = uint32(7 * i)
	}
	c.UploadU32(t.ids, ids)
	return t
}

const combinations = 32

func (t *chained) all() []Tensor {
	return []Tensor{t.x, t.gain, t.bias, t.y, t.stats, t.dy, t.dx, t.dgain, t.dbias}
}

// run goes forward and back, and returns all that is in memory then.
func (t *chained) run() (all [][]float32) {
	steps := []func(){
		func() { t.c.LayerNorm(t.y, t.stats, t.x, t.gain, t.bias, 1e-5) },
		func() {
			if t.relu {
				t.c.ReLU(t.y, t.y)
			}
		},
		func() {
			if t.dropout {
				t.c.Dropout(t.y, t.y, t.ids, t.key, 0.5)
			}
		},
		func() {
			if t.backDropout {
				t.c.Dropout(t.dy, t.dy, t.ids, t.key, 0.5)
			}
		},
		func() {
			if t.mask {
				t.c.ReLUMask(t.dy, t.y)
			}
		},
		func() { t.c.LayerNormGrad(t.dx, t.dgain, t.dbias, t.dy, t.x, t.stats, t.gain, t.fresh) },
	}
	for i, step := range steps {
		step()
		t.after(i)
	}
	for _, m := range t.all() {
		s := make([]float32, m.Len())
		t.c.DownloadF32(s, m)
		all = append(all, s)
	}
	return all
}

// TestChainsGiveTheSameBits compares operations that wait for each other with the same ones that
// are done at once, in all their combinations.
func TestChainsGiveTheSameBits(t *testing.T) {
	for _, shape := range [][2]int{{1, 1}, {3, 5}, {0, 4}, {70, 256}, {700, 33}, {300, 700}} {
		for bits := range combinations {
			run := func(threads int, at func(c *CPU, step int)) [][]float32 {
				of := newChained(NewCPU(CPUOptions{Threads: threads}), shape[0], shape[1], bits)
				of.after = func(step int) { at(of.c, step) }
				return of.run()
			}
			want := run(1, func(c *CPU, _ int) { c.Mark()() })
			got := run(3, func(*CPU, int) {})
			for i := range want {
				requireSameBits(t, want[i], got[i])
			}
		}
	}
}

// TestTouchingEndsAChain has something else touch a tensor while operations on it wait. A read must
// see their result, and they must not see a write.
func TestTouchingEndsAChain(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for name, touch := range map[string]func(t *chained, m Tensor){
		"upload":   func(t *chained, m Tensor) { t.c.UploadF32(m, floatsFrom(11, m.Len())) },
		"fill":     func(t *chained, m Tensor) { t.c.Fill(m, 3) },
		"download": func(t *chained, m Tensor) { t.c.DownloadF32(make([]float32, m.Len()), m) },
		"ids":      func(t *chained, _ Tensor) { t.c.UploadU32(t.ids, make([]uint32, t.ids.Rows)) },
		"host": func(t *chained, m Tensor) {
			b, ok := t.c.Host(m)
			if ok {
				clear(b)
			}
		},
		"finite": func(t *chained, m Tensor) {
			t.c.CheckFinite(Tensor{Buf: t.c.Alloc(U32, 1), Type: U32, Rows: 1, Cols: 1}, m)
		},
		"other": func(t *chained, m Tensor) { t.c.Add(m, m) },
	} {
		for range 40 {
			at, which, bits := rng.IntN(6), rng.IntN(9), rng.IntN(combinations)
			run := func(at int, settle bool) [][]float32 {
				of := newChained(NewCPU(CPUOptions{Threads: 2}), 40, 300, bits)
				of.after = func(step int) {
					if settle {
						of.c.Mark()()
					}
					if step == at {
						touch(of, of.all()[which])
					}
				}
				return of.run()
			}
			want, got := run(at, true), run(at, false)
			for i := range want {
				if !slices.Equal(want[i], got[i]) {
					require.Failf(t, "other bits", "%s of tensor %d after operation %d of combination %d: tensor %d", name, which, at, bits, i)
				}
			}
		}
	}
}

// TestFreeEndsAChain frees memory that operations that wait read or write.
func TestFreeEndsAChain(t *testing.T) {
	for which := range 5 {
		of := newChained(NewCPU(CPUOptions{Threads: 2}), 500, 300, 0) // x and y are outside the Go heap
		of.c.LayerNorm(of.y, of.stats, of.x, of.gain, of.bias, 1e-5)
		of.c.Free(of.all()[which].Buf)
		of.c.Mark()()
	}
}
