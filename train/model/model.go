// Package model holds the networks: layers over tape operations, written once for every backend.
//
// A [Model] is a list of [Param]s and a Layer method; Forward chains the layers over a batch, and evaluation calls them
// one at a time over the whole graph. Parameter names and shapes are those that PyTorch Geometric users expect.
// A Model is used by one goroutine at a time. Start at [New].
package model

import (
	"errors"
	"fmt"
	"math"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/train/sample"
	"github.com/gnnstore/gnnstore/train/tape"
)

// Kind names a network.
type Kind string

const (
	// SAGE is GraphSAGE with the mean aggregator (Hamilton et al. 2017, algorithm 1 with the mean of section 3.3):
	// y = W_r·x_v + W_l·mean(x_u, u → v) + b.
	SAGE Kind = "sage"
	// MLP is SAGE without neighbours: what the features are worth alone.
	MLP Kind = "mlp"
)

// All is the fanout that reads everything this network looks at: every neighbour, or for an MLP none.
func (k Kind) All() int {
	if k == MLP {
		return 0
	}
	return sample.All
}

// Config describes a network.
type Config struct {
	Kind    Kind    `json:"model"`
	Layers  int     `json:"layers"`
	Hidden  int     `json:"hidden"`
	Dropout float64 `json:"dropout"` // of each layer's input but the first's
	// InputDropout is the rate for feature rows.
	InputDropout float64 `json:"input_dropout"`
	Norm         string  `json:"norm"` // between layers: "layer", "none"
}

// Validate reports every problem.
func (c Config) Validate() error {
	var errs []error
	if c.Kind != SAGE && c.Kind != MLP {
		errs = append(errs, fmt.Errorf("--model %s: there are sage and mlp", c.Kind))
	}
	if c.Layers < 1 || c.Layers > 64 {
		errs = append(errs, fmt.Errorf("--layers %d: from 1 to 64", c.Layers))
	}
	if c.Hidden < 1 || c.Hidden > 1<<16 {
		errs = append(errs, fmt.Errorf("--hidden %d: from 1 to %d", c.Hidden, 1<<16))
	}
	if !(c.Dropout >= 0 && float32(c.Dropout) < 1) {
		errs = append(errs, fmt.Errorf("--dropout %v: at least 0 and below 1", c.Dropout))
	}
	if !(c.InputDropout >= 0 && float32(c.InputDropout) < 1) {
		errs = append(errs, fmt.Errorf("--input-dropout %v: at least 0 and below 1", c.InputDropout))
	}
	if c.Norm != "layer" && c.Norm != "none" {
		errs = append(errs, fmt.Errorf("--norm %s: there are layer and none", c.Norm))
	}
	return errors.Join(errs...)
}

// Param is a weight matrix, or a vector of one row, with its gradient, on the backend.
type Param struct {
	Name  string
	Shape []int // as PyTorch has it
	*tape.Var
}

// Graph is one layer of a batch on the backend: kernels.Adjacency plus the ids of the source rows, which dropout needs.
type Graph struct {
	kernels.Adjacency
	Dst int
	IDs kernels.Tensor // U32, S×1
}

// Model is a network on a backend.
type Model struct {
	Config
	In, Out int
	Params  []*Param
	be      kernels.Backend
	convs   []conv
}

// conv holds one layer's parameters; self is the only weight of an MLP.
type conv struct {
	neighbor, self, bias *tape.Var
	gain, shift          *tape.Var // of the normalisation; nil in the last layer
}

// New makes a network for In feature columns and Out classes, with weights drawn from seed: Glorot uniform matrices, zero
// biases.
func New(be kernels.Backend, c Config, in, out int, seed uint64) *Model {
	m := &Model{Config: c, In: in, Out: out, be: be}
	for l := range c.Layers {
		i, o := c.Hidden, c.Hidden
		if l == 0 {
			i = in
		}
		if l == c.Layers-1 {
			o = out
		}
		var v conv
		if c.Kind == SAGE {
			v.neighbor = m.weight(fmt.Sprintf("convs.%d.lin_l.weight", l), o, i, seed)
			v.bias = m.constant(fmt.Sprintf("convs.%d.lin_l.bias", l), o, 0)
			v.self = m.weight(fmt.Sprintf("convs.%d.lin_r.weight", l), o, i, seed)
		} else {
			v.self = m.weight(fmt.Sprintf("lins.%d.weight", l), o, i, seed)
			v.bias = m.constant(fmt.Sprintf("lins.%d.bias", l), o, 0)
		}
		if c.Norm == "layer" && l < c.Layers-1 {
			v.gain = m.constant(fmt.Sprintf("norms.%d.weight", l), o, 1)
			v.shift = m.constant(fmt.Sprintf("norms.%d.bias", l), o, 0)
		}
		m.convs = append(m.convs, v)
	}
	return m
}

func (m *Model) param(name string, rows, cols int, vector bool, fill func(i int) float32) *tape.Var {
	host := make([]float32, rows*cols)
	for i := range host {
		host[i] = fill(i)
	}
	tensor := func() kernels.Tensor {
		return kernels.Tensor{Buf: m.be.Alloc(kernels.F32, len(host)), Type: kernels.F32, Rows: rows, Cols: cols}
	}
	v := tape.NewParam(tensor(), tensor())
	m.be.UploadF32(v.Value, host)
	shape := []int{rows, cols}
	if vector {
		shape = shape[1:]
	}
	m.Params = append(m.Params, &Param{name, shape, v})
	return v
}

func (m *Model) constant(name string, cols int, v float32) *tape.Var {
	return m.param(name, 1, cols, true, func(int) float32 { return v })
}

// weight draws from U(-a, a) with a = sqrt(6/(fan in + fan out)) (Glorot and Bengio 2010), element i of parameter n by a
// hash of (seed, n, i).
func (m *Model) weight(name string, out, in int, seed uint64) *tape.Var {
	a := math.Sqrt(6 / float64(in+out))
	n := uint64(len(m.Params))
	return m.param(name, out, in, false, func(i int) float32 {
		u := float64(sample.Hash(seed, n, uint64(i))>>11) / (1 << 53)
		return float32((2*u - 1) * a)
	})
}

// Layer computes layer l (0 reads features) for the destinations of g from the rows x of its sources: the activation
// before dropout, or the logits in the last layer.
func (m *Model) Layer(t *tape.Tape, l int, x *tape.Var, g Graph) *tape.Var {
	c := m.convs[l]
	terms := []tape.Term{{X: t.Convert(t.Head(x, g.Dst)), W: c.self}}
	if c.neighbor != nil {
		terms = append(terms, tape.Term{X: t.NeighborMean(x, g.Adjacency), W: c.neighbor})
	}
	y := t.Affine(c.bias, terms...)
	if l == m.Layers-1 {
		return y
	}
	if c.gain != nil {
		y = t.LayerNorm(y, c.gain, c.shift)
	}
	return t.ReLU(y)
}

// Forward computes the logits of a batch's seeds from the feature rows x of its inputs. key seeds dropout, a new one each
// step; 0 turns it off, for evaluation.
func (m *Model) Forward(t *tape.Tape, x *tape.Var, graphs []Graph, key uint64) *tape.Var {
	for l, g := range graphs {
		if p := m.dropout(l); key != 0 && p > 0 {
			x = t.Dropout(x, g.IDs, sample.Hash(key, uint64(l)), p)
		}
		x = m.Layer(t, l, x, g)
	}
	return x
}

func (m *Model) dropout(layer int) float32 {
	if layer == 0 {
		return float32(m.InputDropout)
	}
	return float32(m.Dropout)
}

// Width is the number of columns that layer l produces.
func (m *Model) Width(l int) int {
	if l == m.Layers-1 {
		return m.Out
	}
	return m.Hidden
}

// Close frees the parameters.
func (m *Model) Close() {
	for _, p := range m.Params {
		m.be.Free(p.Value.Buf)
		m.be.Free(p.Grad.Buf)
	}
}
