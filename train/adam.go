package train

import (
	"math"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/train/model"
)

// adam is Adam with PyTorch's defaults for the two rates and the epsilon.
type adam struct {
	be         kernels.Backend
	lr, decay  float64
	steps      int
	first, sec []kernels.Tensor // moments, one a parameter
}

func newAdam(be kernels.Backend, m *model.Model, lr, decay float64) *adam {
	a := &adam{be: be, lr: lr, decay: decay}
	moment := func(p *model.Param) kernels.Tensor {
		t := p.Value
		t.Buf, t.Off = be.Alloc(kernels.F32, t.Len()), 0
		return t
	}
	for _, p := range m.Params {
		a.first, a.sec = append(a.first, moment(p)), append(a.sec, moment(p))
	}
	return a
}

// step updates the parameters from their gradients and zeroes those. Biases and normalisation decay like the rest, as in
// PyTorch.
func (a *adam) step(m *model.Model) {
	const beta1, beta2, eps = 0.9, 0.999, 1e-8
	a.steps++
	s := kernels.AdamStep{
		LR: float32(a.lr), Beta1: beta1, Beta2: beta2, Eps: eps, WeightDecay: float32(a.decay),
		Correct1: float32(1 - math.Pow(beta1, float64(a.steps))), Correct2: float32(1 - math.Pow(beta2, float64(a.steps))),
	}
	for i, p := range m.Params {
		a.be.Adam(p.Value, p.Grad, a.first[i], a.sec[i], s)
		a.be.Fill(p.Grad, 0)
	}
}

func (a *adam) close() {
	for i := range a.first {
		a.be.Free(a.first[i].Buf)
		a.be.Free(a.sec[i].Buf)
	}
}
