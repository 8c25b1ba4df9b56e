package model

import (
	"math"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/train/tape"
)

// Distance reports whether a score is a margin minus the distance between two rows.
func (k Decoder) Distance() bool { return k == TransE || k == RotatE }

// Distance describes how the distance between a query and a partner's row gives the score of a
// pair. It returns nil if scores do not depend on distances.
func (m *Model) Distance() *tape.Distance {
	if !m.Decoder.Distance() {
		return nil
	}
	return &tape.Distance{Complex: m.Decoder.Complex(), Margin: float32(m.Margin)}
}

// turns has the constants of RotatE. With them TimeEncode computes cos θ, sin θ and -sin θ for all
// phases θ: the cosines of θ, θ - π/2 and θ + π/2.
type turns struct {
	times kernels.Tensor
	ones  *tape.Var // a 1 for each phase; nothing reads its gradient
}

func (x *turns) allocate(be kernels.Backend, phases int) {
	x.times = kernels.NewTensor(be, kernels.F32, 3, 2)
	var times []float32
	for _, shift := range []float64{0, -math.Pi / 2, math.Pi / 2} {
		high, low := kernels.SplitTime(shift)
		times = append(times, high, low)
	}
	be.UploadF32(x.times, times)
	value, grad := kernels.NewTensor(be, kernels.F32, 1, phases), kernels.NewTensor(be, kernels.F32, 1, phases)
	be.Fill(value, 1)
	x.ones = tape.NewParam(value, grad)
}

func (x *turns) free(be kernels.Backend) {
	if x.ones != nil {
		kernels.FreeTensors(be, x.times, x.ones.Value, x.ones.Grad)
	}
}

// turned rotates the complex rows q by the phases of p's relations. If p is reversed, the links go
// from the partners to the nodes, and turned rotates q by the negative phases. The distance is the
// same as if it rotated the partners by the phases, since a rotation keeps distances.
func (m *Model) turned(t *tape.Tape, q *tape.Var, p Pairs) *tape.Var {
	table := m.decode.scale
	relations, half := table.Value.Rows, table.Value.Cols
	all := t.TimeEncode(m.decode.turns.times, m.decode.turns.ones, t.Reshape(table, 1, relations*half))
	part := func(i int) *tape.Var { return p.ofRelations(t, t.Reshape(t.Window(all, i, i+1), relations, half)) }
	cos, sin, minus := part(0), part(1), part(2)
	if p.Reversed {
		sin, minus = minus, sin
	}
	real, imaginary := t.Columns(q, 0, half), t.Columns(q, half, half)
	re := t.Sum(p.product(t, real, cos), p.product(t, imaginary, minus))
	return t.Beside(re, t.Sum(p.product(t, real, sin), p.product(t, imaginary, cos)))
}
