package temporal

import (
	"fmt"
	"math"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/train/optim"
	"github.com/gnnstore/gnnstore/train/sample"
	"github.com/gnnstore/gnnstore/train/tape"
)

// Probe tells classes of nodes from embeddings that stay as they are: ReLU between two layers, and
// cross-entropy (TGL, arXiv 2203.14883, section 4). It owns memory of the backend that grows to the
// largest batch, until Close. One goroutine uses it.
type Probe struct {
	in, classes  int
	be           kernels.Backend
	tape         *tape.Tape
	params       []*tape.Var // W 100×in, its bias, W classes×100, its bias
	optim        *optim.Optimizer
	rows, labels room
	logits, loss []float32
}

// probeHidden is the columns between the layers, as in TGL.
const probeHidden = 100

// ProbeWeights returns the number of weights of a Probe.
func ProbeWeights(in, classes int) int64 {
	return probeHidden*(int64(in)+1) + (probeHidden+1)*int64(classes)
}

// NewProbe makes one for embeddings of so many columns, with weights drawn from seed as PyTorch's
// Linear begins them.
func NewProbe(be kernels.Backend, in, classes int, seed uint64) *Probe {
	p := &Probe{in: in, classes: classes, be: be, tape: tape.New(be)}
	var all []optim.Param
	for i, x := range []struct {
		name             string
		rows, cols, fans int
	}{{"lins.0.weight", probeHidden, in, in}, {"lins.0.bias", 1, probeHidden, in}, {"lins.1.weight", classes, probeHidden, probeHidden}, {"lins.1.bias", 1, classes, probeHidden}} {
		matrix := func() kernels.Tensor { return kernels.NewTensor(be, kernels.F32, x.rows, x.cols) }
		v := tape.NewParam(matrix(), matrix())
		start := make([]float32, x.rows*x.cols)
		for k := range start {
			u := float64(sample.Hash(seed, uint64(i), uint64(k))>>11) / (1 << 53)
			start[k] = float32((2*u - 1) / math.Sqrt(float64(x.fans)))
		}
		be.UploadF32(v.Value, start)
		p.params = append(p.params, v)
		all = append(all, optim.Param{Name: x.name, Shape: []int{x.rows, x.cols}, Value: v.Value, Grad: v.Grad})
	}
	p.optim = optim.New(be, all, optim.Options{})
	return p
}

// forward is the logits of embeddings, which lie one behind the other.
func (p *Probe) forward(z []float32) *tape.Var {
	x := p.rows.tensor(p.be, kernels.F32, len(z)/p.in, p.in)
	p.be.UploadF32(x, z)
	hidden := p.tape.AffineReLU(p.params[1], tape.Term{X: p.tape.Leaf(x), W: p.params[0]})
	return p.tape.Affine(p.params[3], tape.Term{X: hidden, W: p.params[2]})
}

// Step takes a step of Adam on the mean loss of embeddings with a class each, and returns that.
func (p *Probe) Step(z []float32, classes []uint32, rate float64) float64 {
	if len(classes) == 0 || len(z) != len(classes)*p.in {
		panic(fmt.Sprintf("temporal: %d classes of %d numbers in rows of %d", len(classes), len(z), p.in))
	}
	p.tape.Reset(true)
	labels := p.labels.tensor(p.be, kernels.U32, len(classes), 1)
	p.be.UploadU32(labels, classes)
	losses := p.tape.CrossEntropy(p.forward(z), labels, 1/float32(len(classes)))
	p.loss = append(p.loss[:0], make([]float32, losses.Rows)...)
	p.be.DownloadF32(p.loss, losses)
	p.tape.Backward()
	p.optim.Step(rate, kernels.Tensor{})
	sum := 0.0
	for _, x := range p.loss {
		sum += float64(x)
	}
	return sum / float64(len(classes))
}

// Logits is a number a class for each of some embeddings, lent until the next call.
func (p *Probe) Logits(z []float32) []float32 {
	p.tape.Reset(false)
	y := p.forward(z).Value
	p.logits = append(p.logits[:0], make([]float32, y.Len())...)
	p.be.DownloadF32(p.logits, y)
	return p.logits
}

// Weights copies the weights to the host.
func (p *Probe) Weights() (all [][]float32) {
	for _, v := range p.params {
		w := make([]float32, v.Value.Len())
		p.be.DownloadF32(w, v.Value)
		all = append(all, w)
	}
	return all
}

// SetWeights puts weights in place that Weights gave.
func (p *Probe) SetWeights(all [][]float32) {
	for i, v := range p.params {
		p.be.UploadF32(v.Value, all[i])
	}
}

// Close gives up the memory.
func (p *Probe) Close() {
	p.optim.Close()
	p.tape.Close()
	for _, v := range p.params {
		kernels.FreeTensors(p.be, v.Value, v.Grad)
	}
	p.rows.free(p.be)
	p.labels.free(p.be)
}
