package step

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/optim"
	"github.com/gnnstore/gnnstore/train/sample"
	"github.com/gnnstore/gnnstore/train/tape"
)

// noLoss is a Task whose loss is 0.
type noLoss struct{}

func (noLoss) Loss(*tape.Tape, *Feed, model.Rows, Input) (func() Tally, error) {
	return func() Tally { return Tally{} }, nil
}

// TestExchangeFails: an exchange of hidden rows that fails, or brings too few bytes or too many,
// ends the step with an error, and no other exchange follows.
func TestExchangeFails(t *testing.T) {
	s := sample.NewSampler(sample.AtHand(around(40)), sample.Config{Fanouts: []int{3, 3}}, 1)
	p := &sample.Parts{Workers: 1, Owner: func(int, uint32) int { return 0 }, Reads: []bool{true}}
	p.Exchange = func(_ context.Context, send [][]byte) ([][]byte, error) { return send, nil }
	b := new(sample.Batch)
	err := s.SampleCooperative(t.Context(), p, nil, []*sample.Batch{b}, make([]sample.BatchSeed, 1), [][][]uint32{{{1, 5}}})
	require.NoError(t, err)
	be := kernels.NewCPU(kernels.CPUOptions{})
	c, shape := model.Config{Kind: model.SAGE, Layers: 2, Hidden: 4, Norm: "none"}, model.Shape{In: []int{3}, Out: 2}
	stepper := New(be, model.New(be, c, shape, 1), noLoss{}, optim.Options{})
	defer stepper.Close()
	failure := errors.New("the wire is cut")
	for bad := range 4 { // two exchanges forwards, and two backwards
		for want, spoil := range map[string]func() ([][]byte, error){
			failure.Error():                   func() ([][]byte, error) { return nil, failure },
			"1 bytes of hidden rows too many": func() ([][]byte, error) { return [][]byte{{1}}, nil },
		} {
			n := 0
			in := InputOf(b, kernels.NewTensor(be, kernels.F32, len(b.Inputs()[0]), 3))
			in.Swap = func(send [][]byte) ([][]byte, error) {
				if n++; n == bad+1 {
					return spoil()
				}
				require.LessOrEqual(t, n, bad+1, "an exchange after one that failed")
				return send, nil
			}
			require.ErrorContains(t, stepper.Compute(in), want)
			be.Free(in.Rows[0].Buf)
		}
	}
}

// TestExchangeHalves: a hidden row that float16 cannot hold ends the step with an error that names
// the option, and nothing is sent.
func TestExchangeHalves(t *testing.T) {
	be := kernels.NewCPU(kernels.CPUOptions{})
	x := kernels.NewTensor(be, kernels.F32, 1, 2)
	be.UploadF32(x, []float32{1, 70000})
	c := &cooperating{feed: newFeed(be), Cooperation: &Cooperation{Swap: func([][]byte) ([][]byte, error) {
		require.Fail(t, "an exchange of numbers that are infinite")
		return nil, nil
	}}}
	row := [][][]uint32{{{0}}}
	c.swap([]kernels.Tensor{x}, row, []kernels.Tensor{x}, row, true)
	require.EqualError(t, c.err, "{halo_dtype} f16: 1 numbers of hidden rows are beyond its range; take f32")
}
