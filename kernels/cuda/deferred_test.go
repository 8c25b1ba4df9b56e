//go:build cuda && linux

package cuda

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/kernels/cuda/driver"
	"github.com/gnnstore/gnnstore/kernels/cuda/drivertest"
)

// scene is a few matrices in one buffer, and what belongs to them.
type scene struct {
	b                       *Backend
	rows, cols              int
	all                     kernels.Tensor
	gain, bias, dgain, both kernels.Tensor // both is the gradient of gain and bias together
	stats, ids, dw          kernels.Tensor
	factor, squares         kernels.Tensor
	list                    kernels.Adjacency // rows sources, rows destinations
}

const matrices = 4

func newScene(b *Backend, rows, cols int) *scene {
	f := func(rows, cols int) kernels.Tensor {
		return kernels.NewTensor(b, kernels.F32, rows, cols)
	}
	u := func(values []uint32) kernels.Tensor {
		x := kernels.NewTensor(b, kernels.U32, len(values), 1)
		b.UploadU32(x, values)
		return x
	}
	offsets, nbr := []uint32{0}, []uint32(nil)
	sources := make([][]uint32, rows)
	for i := range rows {
		for j := range i % 7 {
			of := (i*i + 13*j) % rows
			nbr = append(nbr, uint32(of))
			sources[of] = append(sources[of], uint32(i))
		}
		offsets = append(offsets, uint32(len(nbr)))
	}
	revStart := []uint32{0}
	for _, of := range sources {
		revStart = append(revStart, revStart[len(revStart)-1]+uint32(len(of)))
	}
	start := u(offsets)
	list := kernels.Adjacency{
		Start: start.Slice(0, rows), End: start.Slice(1, rows+1), Nbr: u(append(nbr, 0)).Slice(0, len(nbr)),
		RevStart: u(revStart), RevDst: u(append(slices.Concat(sources...), 0)).Slice(0, len(nbr)),
	}
	return &scene{
		list: list, b: b, rows: rows, cols: cols, all: f(matrices*rows, cols),
		gain: f(1, cols), bias: f(1, cols), dgain: f(1, cols), both: f(1, cols), factor: f(1, 1), squares: f(4, 1),
		stats: f(rows, 2), ids: kernels.NewTensor(b, kernels.U32, rows, 1), dw: f(cols, cols),
	}
}

func (s *scene) tensors() []kernels.Tensor {
	return []kernels.Tensor{s.all, s.gain, s.bias, s.dgain, s.both, s.factor, s.squares, s.stats, s.dw}
}

func (s *scene) free() {
	for _, t := range append(s.tensors(), s.ids, s.list.Start, s.list.Nbr, s.list.RevStart, s.list.RevDst) {
		s.b.Free(t.Buf)
	}
}

// play runs operations that rng draws, with a pause after each if there is one, and returns what is
// in memory then.
func (s *scene) play(rng *rand.Rand, operations int, pause func()) (bits []uint32) {
	for _, t := range s.tensors() {
		values := make([]float32, t.Len())
		for i := range values {
			values[i] = float32(rng.NormFloat64())
		}
		s.b.UploadF32(t, values)
	}
	ids := make([]uint32, s.rows)
	for i := range ids {
		ids[i] = rng.Uint32()
	}
	s.b.UploadU32(s.ids, ids)
	for range operations {
		order := rng.Perm(matrices)
		window := func(i int) kernels.Tensor { return s.all.Slice(order[i]*s.rows, (order[i]+1)*s.rows) }
		x, y, z := window(0), window(1), window(2)
		if rng.IntN(2) == 0 { // what was just written, most often
			x = s.all.Slice(0, s.rows)
			if order[1] == 0 {
				y = window(0)
			} else if order[2] == 0 {
				z = window(0)
			}
		}
		part := rng.IntN(s.rows)
		switch rng.IntN(22) {
		case 0, 1:
			s.b.LayerNorm(x, s.stats, y, s.gain, s.bias, 1e-5)
		case 2, 3:
			s.b.ReLU(x, x)
		case 4:
			s.b.ReLU(x, y)
		case 5, 6:
			s.b.Dropout(x, x, s.ids, 7, 0.3)
		case 7:
			s.b.Dropout(x.Slice(part, s.rows), x.Slice(part, s.rows), s.ids.Slice(part, s.rows), 7, 0.3)
		case 8, 9:
			s.b.ReLUMask(x, y)
		case 10:
			s.b.Fill(x, 0)
		case 11:
			s.b.Fill(x.Slice(part, s.rows), float32(rng.IntN(2)))
		case 12:
			s.b.LayerNormGrad(x, s.dgain, s.both, y, z, s.stats, s.gain, false)
		case 13:
			s.b.ColumnSumGrad([]kernels.Tensor{s.dgain, s.both}[rng.IntN(2)], x)
			s.b.MatMul(s.dw, x, y, true, false, true)
		case 14:
			s.b.Add(s.dgain, s.gain)
			s.b.Add(x.Slice(0, part), y.Slice(0, part))
		case 15:
			s.b.UploadF32(x.Slice(part, part+1), make([]float32, s.cols))
			s.b.DownloadF32(make([]float32, s.cols), y.Slice(part, part+1))
			s.b.Free(s.b.Alloc(kernels.F32, 100))
		case 16, 17:
			s.b.Fill(x, 0)
			if part > 0 {
				s.b.MatMul(x.Slice(0, part), y.Slice(0, part), s.dw, false, false, true)
			}
			s.b.NeighborMeanGrad(x, y, s.list, x.Rows)
		case 18:
			s.b.ClipFactor(s.factor, s.squares, []kernels.Tensor{s.dw, s.dgain, s.both, x}, 1)
			p := kernels.AdamParam{Value: x, Grad: y, M: z, V: window(3)}
			s.b.Adam([]kernels.AdamParam{p}, 1, kernels.AdamStep{LR: 0.1}, kernels.Guard{})
			s.b.NeighborMeanGrad(x, y, s.list, x.Rows)
		case 19, 20, 21:
			s.chain(rng, window(0), window(1), window(2), window(3), pause)
		}
		if pause != nil {
			pause()
		}
	}
	for _, t := range s.tensors() {
		values := make([]float32, t.Len())
		s.b.DownloadF32(values, t)
		for _, v := range values {
			bits = append(bits, math.Float32bits(v))
		}
	}
	return bits
}

// chain takes a gradient through several operations, and leaves out some of them at random.
func (s *scene) chain(rng *rand.Rand, x, y, z, w kernels.Tensor, pause func()) {
	for i, operation := range []func(){
		func() { s.b.Fill(x, 0) },
		func() { s.b.NeighborMeanGrad(x, y, s.list, x.Rows) },
		func() { s.b.Dropout(x, x, s.ids, 7, 0.3) },
		func() { s.b.ReLUMask(x, z) },
		func() { s.b.Fill(w, 0) },
		func() { s.b.LayerNormGrad(w, s.dgain, s.both, x, z, s.stats, s.gain, false) },
		func() { s.b.ColumnSumGrad(s.bias, w) },
		func() { s.b.ColumnSumGrad(s.bias, x) },
	} {
		if i == 1 || rng.IntN(4) != 0 {
			operation()
			if pause != nil {
				pause()
			}
		}
	}
}

// Operations that wait for others to share their launch make the same bits as they do alone.
func TestDeferred(t *testing.T) {
	for _, narrow := range []bool{false, true} {
		b, d := openDevice(t, drivertest.Options{}, Options{Narrow: narrow})
		for seed := range uint64(80) {
			s := newScene(b, 1+int(seed%3)*260, []int{8, 5, 140, 300}[seed%4])
			draw := func() *rand.Rand { return rand.New(rand.NewPCG(seed, 5)) }
			want := s.play(draw(), 14, func() { b.Mark()() })
			got := s.play(draw(), 14, nil)
			require.True(t, slices.Equal(want, got), "seed %d", seed)
			s.free()
		}
		for _, name := range []string{
			"dropout_mask", "neighbor_mean_grad_chain", "layer_norm_grad_chain", "neighbor_mean_norm_grad",
		} {
			require.NotZero(t, d.Launched()[name]+d.Launched()[name+"_wide"], name)
		}
	}
}

// Once the context is lost, Free launches nothing that waits: that would fail as well, and hide the
// first error.
func TestFreeLost(t *testing.T) {
	b, d := openDevice(t, drivertest.Options{}, Options{})
	x, y := kernels.NewTensor(b, kernels.F32, 3, 4), kernels.NewTensor(b, kernels.F32, 3, 4)
	b.Fill(x, 0) // it waits
	d.Fail("LaunchKernel", 1, driver.ErrLaunchFailed)
	require.Panics(t, func() { b.Fill(y, 1) })
	before := d.Launched()
	kernels.FreeTensors(b, x, y)
	require.Equal(t, before, d.Launched())
}
