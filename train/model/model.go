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
	"slices"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/train/sample"
	"github.com/gnnstore/gnnstore/train/tape"
)

// Kind names a network.
type Kind string

const (
	// SAGE is GraphSAGE with the mean aggregator (Hamilton et al. 2017, algorithm 1 with the mean of section 3.3):
	// y = W_r·x_v + W_l·mean(x_u, u → v) + b.
	// Neighbours that were not drawn alike count by their weights, see sample.Block.
	SAGE Kind = "sage"
	// GCN is the graph convolution of Kipf and Welling 2017, equation 2, on the in-degrees of the whole graph:
	// y = W·Σ x_u/√(d̂_u·d̂_v) + b, the sum being over v and u → v. See sample.Options.GCN for d̂ and for sampling.
	GCN Kind = "gcn"
	// GAT is graph attention (Veličković et al. 2018, equations 1 to 5): y = ‖_h Σ α_h·W_h·x_u + b over v and u → v.
	// Hidden layers have Config.Heads heads side by side, the last one a single head, as the paper has it for Cora. A drawn
	// neighbour's exponential is multiplied by its weight, see sample.Block: by how many neighbours it stands for.
	GAT Kind = "gat"
	// MLP is SAGE without neighbours: what the features are worth alone.
	MLP Kind = "mlp"
)

// Kinds lists the networks there are.
var Kinds = []Kind{SAGE, GCN, GAT, MLP}

// All is the fanout that reads everything this network looks at: every neighbour, or for an MLP none.
func (k Kind) All() int {
	if k == MLP {
		return 0
	}
	return sample.All
}

// Sampling is what the network needs of its blocks.
func (k Kind) Sampling() sample.Options {
	looped := k == GCN || k == GAT
	return sample.Options{SelfLoops: looped, GCN: k == GCN, RevEdges: looped, RevInput: k == GAT}
}

// Config describes a network.
type Config struct {
	Kind    Kind    `json:"model"`
	Layers  int     `json:"layers"`
	Hidden  int     `json:"hidden"`  // width of a hidden row; for GAT, of all heads together
	Dropout float64 `json:"dropout"` // of each layer's input but the first's
	// InputDropout is the rate for feature rows.
	InputDropout float64 `json:"input_dropout"`
	Norm         string  `json:"norm"` // between layers: "layer", "none"
	// Heads is the number of heads of GAT's hidden layers, which divides Hidden; other networks have none. AttnDropout
	// is the rate for their attention, and for that of the last layer.
	Heads       int     `json:"heads"`
	AttnDropout float64 `json:"attn_dropout"`
}

// Validate reports every problem.
func (c Config) Validate() error {
	var errs []error
	if !slices.Contains(Kinds, c.Kind) {
		errs = append(errs, fmt.Errorf("--model %s: there are %s", c.Kind, sample.Names(Kinds)))
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
	if c.Kind == GAT && (c.Heads < 1 || c.Heads > c.Hidden || c.Hidden%c.Heads != 0) {
		errs = append(errs, fmt.Errorf("--heads %d: as many as divide --hidden %d, the width of all together", c.Heads, c.Hidden))
	}
	if !(c.AttnDropout >= 0 && float32(c.AttnDropout) < 1) {
		errs = append(errs, fmt.Errorf("--attn-dropout %v: at least 0 and below 1", c.AttnDropout))
	}
	return errors.Join(errs...)
}

// Param is a weight matrix, or a vector of one row, with its gradient, on the backend.
type Param struct {
	Name  string
	Shape []int // as PyTorch has it
	*tape.Var
}

// Graph is one layer of a batch on the backend: kernels.Adjacency plus the ids of the source rows, which dropout needs,
// and the weights of the edges, where they have any.
type Graph struct {
	kernels.Adjacency
	Dst    int
	IDs    kernels.Tensor // U32, S×1
	Weight kernels.Tensor // F32, one a position of Nbr, or no rows: sample.Block.Weight
}

// Model is a network on a backend.
type Model struct {
	Config
	In, Out int
	Params  []*Param
	be      kernels.Backend
	convs   []conv
}

// conv holds one layer's parameters; what its network does not have is nil.
type conv struct {
	neighbor, self *tape.Var // weights for the sum of neighbours, and for the node's own row: an MLP's only one
	attSrc, attDst *tape.Var // H×C
	bias           *tape.Var
	gain, shift    *tape.Var // of the normalisation; nil in the last layer
}

// New makes a network for In feature columns and Out classes, with weights drawn from seed: Glorot uniform matrices,
// zero biases.
func New(be kernels.Backend, c Config, in, out int, seed uint64) *Model {
	m := &Model{Config: c, In: in, Out: out, be: be}
	for l := range c.Layers {
		i, o, heads := c.Hidden, c.Hidden, c.Heads
		if l == 0 {
			i = in
		}
		if l == c.Layers-1 {
			o, heads = out, 1
		}
		name := func(format string) string { return fmt.Sprintf(format, l) }
		var v conv
		switch c.Kind {
		case SAGE:
			v.neighbor = m.weight(name("convs.%d.lin_l.weight"), seed, o, i)
			v.bias = m.constant(name("convs.%d.lin_l.bias"), o, 0)
			v.self = m.weight(name("convs.%d.lin_r.weight"), seed, o, i)
		case GCN:
			v.neighbor = m.weight(name("convs.%d.lin.weight"), seed, o, i)
			v.bias = m.constant(name("convs.%d.bias"), o, 0)
		case GAT:
			v.neighbor = m.weight(name("convs.%d.lin.weight"), seed, o, i)
			v.attSrc = m.weight(name("convs.%d.att_src"), seed, 1, heads, o/heads)
			v.attDst = m.weight(name("convs.%d.att_dst"), seed, 1, heads, o/heads)
			v.bias = m.constant(name("convs.%d.bias"), o, 0)
		default:
			v.self = m.weight(name("lins.%d.weight"), seed, o, i)
			v.bias = m.constant(name("lins.%d.bias"), o, 0)
		}
		if c.Norm == "layer" && l < c.Layers-1 {
			v.gain = m.constant(name("norms.%d.weight"), o, 1)
			v.shift = m.constant(name("norms.%d.bias"), o, 0)
		}
		m.convs = append(m.convs, v)
	}
	return m
}

// Weights is how many numbers the parameters of New have, for in feature columns and out classes: what their memory is
// known by before it is taken.
func (c Config) Weights(in, out int) int64 {
	var n int64
	for l := range c.Layers {
		rows, cols := int64(c.Hidden), int64(c.Hidden) // of a matrix
		if l == 0 {
			cols = int64(in)
		}
		if l == c.Layers-1 {
			rows = int64(out)
		} else if c.Norm == "layer" {
			n += 2 * rows
		}
		n += rows*cols + rows
		switch c.Kind {
		case SAGE:
			n += rows * cols
		case GAT:
			n += 2 * rows
		}
	}
	return n
}

// param makes a parameter of this shape; on the backend it is a matrix of as many columns as the last number says.
func (m *Model) param(name string, shape []int, fill func(i int) float32) *tape.Var {
	n, cols := 1, shape[len(shape)-1]
	for _, d := range shape {
		n *= d
	}
	host := make([]float32, n)
	for i := range host {
		host[i] = fill(i)
	}
	tensor := func() kernels.Tensor {
		return kernels.Tensor{Buf: m.be.Alloc(kernels.F32, n), Type: kernels.F32, Rows: n / cols, Cols: cols}
	}
	v := tape.NewParam(tensor(), tensor())
	m.be.UploadF32(v.Value, host)
	m.Params = append(m.Params, &Param{name, shape, v})
	return v
}

func (m *Model) constant(name string, cols int, v float32) *tape.Var {
	return m.param(name, []int{cols}, func(int) float32 { return v })
}

// weight draws from U(-a, a) with a = sqrt(6/(fan in + fan out)), the last two numbers of its shape (Glorot and Bengio
// 2010), element i of parameter n by a hash of (seed, n, i).
func (m *Model) weight(name string, seed uint64, shape ...int) *tape.Var {
	a := math.Sqrt(6 / float64(shape[len(shape)-1]+shape[len(shape)-2]))
	n := uint64(len(m.Params))
	return m.param(name, shape, func(i int) float32 {
		u := float64(sample.Hash(seed, n, uint64(i))>>11) / (1 << 53)
		return float32((2*u - 1) * a)
	})
}

// Layer computes layer l (0 reads features) for the destinations of g from the rows x of its sources: the activation
// before dropout, or the logits in the last layer. It drops nothing, as evaluation wants it.
func (m *Model) Layer(t *tape.Tape, l int, x *tape.Var, g Graph) *tape.Var {
	return m.layer(t, l, x, g, 0)
}

func (m *Model) layer(t *tape.Tape, l int, x *tape.Var, g Graph, key uint64) *tape.Var {
	c, last := m.convs[l], l == m.Layers-1
	affine := t.Affine
	if !last && c.gain == nil && m.Kind != GAT {
		affine = t.AffineReLU
	}
	y := m.conv(t, l, x, g, key, affine)
	if last {
		return y
	}
	if c.gain != nil {
		y = t.LayerNorm(y, c.gain, c.shift)
	}
	if m.Kind == GAT {
		return t.ELU(y) // as in the paper
	}
	if c.gain == nil {
		return y // affine was AffineReLU
	}
	return t.ReLU(y)
}

// conv is layer l without what comes after affine, its last operation in all networks but GAT. GCN multiplies by its weights
// after the sum and not before: there are fewer destinations than sources, and features are read as they are stored.
func (m *Model) conv(t *tape.Tape, l int, x *tape.Var, g Graph, key uint64,
	affine func(*tape.Var, ...tape.Term) *tape.Var) *tape.Var {
	c := m.convs[l]
	switch m.Kind {
	case SAGE:
		return affine(c.bias, tape.Term{X: t.Convert(t.Head(x, g.Dst)), W: c.self},
			tape.Term{X: mean(t, x, g), W: c.neighbor})
	case GCN:
		return affine(c.bias, tape.Term{X: t.WeightedSum(x, t.Leaf(g.Weight), nil, g.Adjacency), W: c.neighbor})
	case GAT:
		rows := t.Affine(nil, tape.Term{X: t.Convert(x), W: c.neighbor})
		src, dst := t.HeadDot(rows, c.attSrc), t.HeadDot(t.Head(rows, g.Dst), c.attDst)
		alpha := t.EdgeSoftmax(src, dst, g.Weight, g.Adjacency, attentionSlope)
		if key != 0 {
			alpha = t.EdgeDropout(alpha, g.IDs, g.Adjacency, sample.Hash(key, uint64(l), 1), float32(m.AttnDropout))
		}
		return t.WeightedSum(rows, alpha, c.bias, g.Adjacency)
	}
	return affine(c.bias, tape.Term{X: t.Convert(t.Head(x, g.Dst)), W: c.self})
}

// mean is that of the neighbours of every destination: by their weights, which add up to 1, where they have any.
func mean(t *tape.Tape, x *tape.Var, g Graph) *tape.Var {
	if g.Weight.Rows == 0 {
		return t.NeighborMean(x, g.Adjacency)
	}
	return t.WeightedSum(x, t.Leaf(g.Weight), nil, g.Adjacency)
}

// attentionSlope is that of the paper's LeakyReLU.
const attentionSlope = 0.2

// Forward computes the logits of a batch's seeds from the feature rows x of its inputs. key seeds dropout, a new one
// each step; 0 turns it off, for evaluation.
func (m *Model) Forward(t *tape.Tape, x *tape.Var, graphs []Graph, key uint64) *tape.Var {
	for l, g := range graphs {
		if p := m.dropout(l); key != 0 && p > 0 {
			x = t.Dropout(x, g.IDs, sample.Hash(key, uint64(l)), p)
		}
		x = m.layer(t, l, x, g, key)
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
