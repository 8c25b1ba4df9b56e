package tape

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/kernels/kerneltest"
)

// swapper exchanges rows between two workers, a matrix of each type.
type swapper struct{ out, in chan [][]float32 }

func (s swapper) swap(be kernels.Backend) Swap {
	return func(send, come []kernels.Tensor) {
		out := make([][]float32, len(send))
		for n, x := range send {
			out[n] = make([]float32, x.Len())
			if x.Len() > 0 {
				be.DownloadF32(out[n], x)
			}
		}
		s.out <- out
		for n, rows := range <-s.in {
			if come[n].Len() > 0 {
				be.UploadF32(come[n], rows)
			}
		}
	}
}

// TestExchange: two workers each read rows of both, of two types. Worker 1 has no row of type 1.
// Each owner adds up the gradients of its rows.
func TestExchange(t *testing.T) {
	ab, ba := make(chan [][]float32, 1), make(chan [][]float32, 1)
	// Worker 0 computes rows a, b, c of type 0 and p of type 1; worker 1 computes x, y of type 0.
	rows := [2][2][]float32{{{1, 2, 3, 4, 5, 6}, {7, 8}}, {{10, 20, 30, 40}, nil}}
	halos := [2][2][4][]uint32{ // own, send, take, at
		{
			{{0, 2}, {1, 2}, {1, 3}, {0, kernels.InSlot, 1, kernels.InSlot | 1}}, // reads a, y, b, x
			{{0}, {0}, nil, {0}},
		},
		{
			{{1}, {1, 0}, {0, 2}, {kernels.InSlot, 0, kernels.InSlot | 1}}, // reads b, x, c
			{nil, nil, {0}, {kernels.InSlot}},                              // reads p
		},
	}
	want := [2][2][]float32{{{1, 2, 30, 40, 3, 4, 10, 20}, {7, 8}}, {{3, 4, 10, 20, 5, 6}, {7, 8}}}
	for _, remote := range []bool{false, true} {
		for _, frugal := range []bool{false, true} {
			var group errgroup.Group
			grads := [2][2][]float32{}
			for w := range 2 {
				group.Go(func() error {
					var be kernels.Backend = kernels.NewCPU(kernels.CPUOptions{})
					if remote {
						be = kerneltest.Remote(be)
					}
					tape, s := New(be), swapper{ab, ba}
					if tape.Frugal = frugal; w == 1 {
						s = swapper{ba, ab}
					}
					defer tape.Close()
					tape.Reset(true)
					var x []*Var
					var params []kernels.Tensor
					var lists []Halo
					for n, values := range rows[w] {
						list := func(i int) kernels.Tensor {
							v := halos[w][n][i]
							u := kernels.NewTensor(be, kernels.U32, len(v), 1)
							be.UploadU32(u, v)
							return u
						}
						lists = append(lists, Halo{list(0), list(1), list(2), list(3)})
						if values == nil {
							x, params = append(x, nil), append(params, kernels.Tensor{})
							continue
						}
						value := kernels.NewTensor(be, kernels.F32, len(values)/2, 2)
						grad := kernels.NewTensor(be, kernels.F32, len(values)/2, 2)
						be.UploadF32(value, values)
						be.Fill(grad, 0)
						params = append(params, grad)
						x = append(x, NewParam(value, grad))
					}
					y := tape.Exchange(x, lists, []int{2, 2}, s.swap(be))
					for n, v := range y {
						got := make([]float32, v.Value.Len())
						be.DownloadF32(got, v.Value)
						if !slices.Equal(got, want[w][n]) {
							return fmt.Errorf("worker %d, type %d: rows %v, want %v", w, n, got, want[w][n])
						}
						g := tape.grad(v)
						be.Fill(g, float32(1+w)) // a use adds 1 at worker 0, and 2 at worker 1
					}
					tape.Backward()
					for n, g := range params {
						grads[w][n] = make([]float32, g.Len())
						if g.Len() > 0 {
							be.DownloadF32(grads[w][n], g)
						}
					}
					return nil
				})
			}
			require.NoError(t, group.Wait())
			require.Equal(t, []float32{1, 1, 3, 3, 2, 2}, grads[0][0], "a, b, c")
			require.Equal(t, []float32{3, 3}, grads[0][1], "p")
			require.Equal(t, []float32{3, 3, 1, 1}, grads[1][0], "x, y")
		}
	}
}
