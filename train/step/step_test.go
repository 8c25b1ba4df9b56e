package step

import (
	"errors"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/kernels/kerneltest"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/optim"
	"github.com/gnnstore/gnnstore/train/sample"
	"github.com/gnnstore/gnnstore/train/tape"
)

// first wants class 0 of every seed.
type first struct{}

func (first) Loss(t *tape.Tape, f *Feed, out model.Rows, in Input) (tally func() Tally, err error) {
	labels := make([]uint32, len(in.Seeds[0]))
	losses := f.FetchLoss(t.CrossEntropy(out[0], f.Upload(labels), 1/float32(len(labels))))
	return func() Tally { return Tally{Loss: Sum(losses), Weight: float64(len(labels))} }, nil
}

// compute computes a step and waits for it.
func compute(s *Stepper, in Input) (Tally, error) {
	if err := s.Compute(in); err != nil {
		return Tally{}, err
	}
	return s.Launched().Wait()
}

// stepper has an MLP of one layer, and a batch of two nodes for it.
func stepper(t *testing.T) (*Stepper, Input) {
	be := kerneltest.Remote(kernels.NewCPU(kernels.CPUOptions{Set: kernels.Portable}))
	c := model.Config{Kind: model.MLP, Layers: 1, Hidden: 4, Norm: "none"}
	s := New(be, model.New(be, c, model.Shape{In: []int{3}, Out: 2}, 1), first{}, optim.Options{})
	rows := kernels.Tensor{Buf: be.Alloc(kernels.F32, 6), Type: kernels.F32, Rows: 2, Cols: 3}
	be.UploadF32(rows, []float32{1, 2, 3, -1, 0, 1})
	t.Cleanup(func() {
		be.Free(rows.Buf)
		s.Close()
	})
	in := Input{Seeds: [][]uint32{{7, 9}}, Rows: []kernels.Tensor{rows}, Key: 1, Layers: []sample.Layer{{
		Nodes:  []sample.Frontier{{Src: []uint32{7, 9}, Dst: 2}},
		Blocks: []sample.Block{{Start: []uint32{0, 0}, End: []uint32{0, 0}}},
	}}}
	return s, in
}

// gradients returns the gradients of all parameters.
func gradients(s *Stepper) (all []float32) {
	for _, p := range s.Model.Params {
		all = append(all, s.Feed.Download(p.Grad)...)
	}
	return all
}

// TestUpdate: reduce sees the gradients, in the order of the parameters, before they become
// weights; its error leaves all as it was, and after an update the gradients are zero.
func TestUpdate(t *testing.T) {
	s, in := stepper(t)
	before := s.Model.Download()
	_, err := compute(s, in)
	require.NoError(t, err)
	want := gradients(s)
	require.NotEmpty(t, want)
	broken := errors.New("the other worker is gone")
	err = s.Update(0.1, func(grads []kernels.Tensor) error {
		var got []float32
		for _, g := range grads {
			got = append(got, s.Feed.Download(g)...)
		}
		require.Equal(t, want, got)
		return broken
	})
	require.ErrorIs(t, err, broken)
	require.Equal(t, before, s.Model.Download())
	require.Zero(t, s.Optim.Steps())
	require.NoError(t, s.Update(0.1, nil))
	require.NotEqual(t, before, s.Model.Download())
	require.Equal(t, make([]float32, len(want)), gradients(s))
}

// TestLearns: the loss of one batch falls, and a rehearsal in between changes nothing.
func TestLearns(t *testing.T) {
	s, in := stepper(t)
	last := math.Inf(1)
	for range 20 {
		weights := s.Model.Download()
		require.NoError(t, s.Rehearse(in))
		require.Equal(t, weights, s.Model.Download())
		a, err := compute(s, in)
		require.NoError(t, err)
		require.Less(t, a.Mean(), last)
		last = a.Mean()
		require.NoError(t, s.Update(0.05, nil))
	}
	require.Less(t, last, 0.2)
}

// TestNoNumber: a loss or a norm that is no number changes nothing, nor do the steps that were
// launched before it was known. Later ones do.
func TestNoNumber(t *testing.T) {
	for _, bad := range []float32{float32(math.NaN()), float32(math.Inf(1))} {
		for _, clip := range []float64{0, 1} {
			for _, launched := range []int{0, 1} {
				s, in := stepper(t)
				s.Restart(optim.Options{ClipNorm: clip})
				weights := s.Model.Download()
				take := func() Launched {
					require.NoError(t, s.Compute(in))
					require.NoError(t, s.Update(0.1, nil))
					return s.Launched()
				}
				s.be.UploadF32(in.Rows[0], []float32{1, bad, 3, -1, 0, 1})
				first := take()
				s.be.UploadF32(in.Rows[0], []float32{1, 2, 3, -1, 0, 1})
				for range launched {
					take()
				}
				_, err := first.Wait()
				var loss *LossError
				require.ErrorAs(t, err, &loss)
				require.Equal(t, weights, s.Model.Download())
				require.Zero(t, s.Optim.Steps())
				for _, g := range gradients(s) {
					require.Zero(t, g)
				}
				_, err = take().Wait()
				require.NoError(t, err)
				require.NotEqual(t, weights, s.Model.Download())
				require.Equal(t, 1, s.Optim.Steps())
			}
		}
	}
	s, in := stepper(t)
	s.Restart(optim.Options{ClipNorm: 1})
	weights := s.Model.Download()
	require.NoError(t, s.Compute(in))
	require.NoError(t, s.Update(0.1, func(grads []kernels.Tensor) error {
		s.be.Fill(grads[0], float32(math.NaN()))
		return nil
	}))
	_, err := s.Launched().Wait()
	var norm *NormError
	require.ErrorAs(t, err, &norm)
	require.Equal(t, weights, s.Model.Download())
}
