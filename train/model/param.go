package model

import (
	"math"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/train/sample"
	"github.com/gnnstore/gnnstore/train/tape"
)

// Param is a weight matrix, or a vector of one row, with its gradient, on the backend.
type Param struct {
	Name  string
	Shape []int // as PyTorch has it
	*tape.Var
	start func(seed, n, i uint64) float32 // the initial value of element i of parameter number n
}

// declared is the parameters that the layers of a network ask for, in order. Their place in it
// seeds their initial values. A parameter has no memory until the network is complete.
type declared struct {
	params     []*Param
	lists      []*list
	inputGrads []bool // by type: gradients flow to the rows that layer 0 reads
}

func (d *declared) add(p *Param) *tape.Var {
	p.Var = &tape.Var{}
	d.params = append(d.params, p)
	return p.Var
}

// constant declares a vector of cols times v.
func (d *declared) constant(name string, cols int, v float32) *tape.Var {
	return d.filled(name, v, cols)
}

// filled declares a parameter whose elements are v.
func (d *declared) filled(name string, v float32, shape ...int) *tape.Var {
	return d.add(&Param{Name: name, Shape: shape, start: func(_, _, _ uint64) float32 { return v }})
}

// glorot declares weights drawn from U(-a, a) with a = sqrt(6/(fan in + fan out)), the last two
// numbers of their shape (Glorot and Bengio 2010): element i of parameter n by a hash of (seed, n,
// i).
func (d *declared) glorot(name string, shape ...int) *tape.Var {
	return d.glorotOf(name, shape[len(shape)-1]+shape[len(shape)-2], shape...)
}

// glorotOf is glorot for weights of several matrices, which have fans inputs and outputs each.
func (d *declared) glorotOf(name string, fans int, shape ...int) *tape.Var {
	return d.uniform(name, math.Sqrt(6/float64(fans)), shape...)
}

// uniform declares weights drawn from U(-a, a).
func (d *declared) uniform(name string, a float64, shape ...int) *tape.Var {
	return d.add(&Param{Name: name, Shape: shape, start: func(seed, n, i uint64) float32 {
		u := float64(sample.Hash(seed, n, i)>>11) / (1 << 53)
		return float32((2*u - 1) * a)
	}})
}

// normal declares weights of a normal distribution about 0, by Box and Muller's method from two
// hashes of (seed, n, i).
func (d *declared) normal(name string, deviation float64, shape ...int) *tape.Var {
	return d.add(&Param{Name: name, Shape: shape, start: func(seed, n, i uint64) float32 {
		u, v := float64(sample.Hash(seed, n, i, 0)>>11)/(1<<53), float64(sample.Hash(seed, n, i, 1)>>11)/(1<<53)
		return float32(deviation * math.Sqrt(-2*math.Log1p(-u)) * math.Cos(2*math.Pi*v))
	}})
}

// list is numbers on the backend that a layer reads, and that are no parameter.
type list struct {
	values []uint32
	kernels.Tensor
}

// list declares one. It has no memory until the network is complete.
func (d *declared) list(values []uint32) *list {
	l := &list{values: values}
	d.lists = append(d.lists, l)
	return l
}

func (l *list) allocate(be kernels.Backend) {
	l.Tensor = kernels.NewTensor(be, kernels.U32, len(l.values), 1)
	be.UploadU32(l.Tensor, l.values)
}

// size is the number of elements.
func (p *Param) size() int {
	n := 1
	for _, d := range p.Shape {
		n *= d
	}
	return n
}

// tensor is a matrix of the parameter's size on the backend.
func (p *Param) tensor(be kernels.Backend) kernels.Tensor {
	size, cols := p.size(), p.Shape[len(p.Shape)-1]
	return kernels.NewTensor(be, kernels.F32, size/cols, cols)
}

// allocate gives parameter number n its memory and initial values. On the backend it is a matrix of
// as many columns as its last dimension has.
func (p *Param) allocate(be kernels.Backend, seed, n uint64) {
	*p.Var = *tape.NewParam(p.tensor(be), p.tensor(be))
	host := make([]float32, p.size())
	for i := range host {
		host[i] = p.start(seed, n, uint64(i))
	}
	be.UploadF32(p.Value, host)
}
