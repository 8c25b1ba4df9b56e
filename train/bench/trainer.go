package bench

import (
	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/optim"
	"github.com/gnnstore/gnnstore/train/sample"
	"github.com/gnnstore/gnnstore/train/tape"
)

// Trainer is a network with its optimizer, and the memory of a step: what is left of training when batches are there.
type Trainer struct {
	Model *model.Model
	be    kernels.Backend
	opt   *optim.Optimizer
	tape  *tape.Tape

	ints   kernels.Buffer // of a batch's blocks and labels
	used   int
	graphs []model.Graph
	losses []float32
}

// NewTrainer makes a network for feature rows of in columns and out classes, with weights drawn from seed: GraphSAGE or an
// MLP, which need nothing of a block but its edges.
func NewTrainer(be kernels.Backend, c model.Config, in, out int, seed uint64) *Trainer {
	if c.Kind.Sampling() != (sample.Options{}) {
		panic("bench: NewTrainer: " + string(c.Kind) + " needs more of a block than its edges")
	}
	t := &Trainer{be: be, tape: tape.New(be), Model: model.New(be, c, model.Shape{In: []int{in}, Out: out}, seed)}
	t.Restart()
	return t
}

// Restart forgets the optimizer's moments.
func (t *Trainer) Restart() {
	if t.opt != nil {
		t.opt.Close()
	}
	var params []optim.Param
	for _, p := range t.Model.Params {
		params = append(params, optim.Param{Name: p.Name, Shape: p.Shape, Value: p.Value, Grad: p.Grad})
	}
	t.opt = optim.New(t.be, params, optim.Options{})
}

// Step is one update from the feature rows of b's inputs and the classes of its seeds: blocks to the backend, forward,
// loss, backward, Adam. It returns the mean loss before the update. key seeds dropout.
func (t *Trainer) Step(b *sample.Batch, rows kernels.Tensor, labels []uint32, rate float64, key uint64) (loss float64) {
	n := len(labels)
	for i := range b.Layers {
		nodes, k := &b.Layers[i].Nodes[0], &b.Layers[i].Blocks[0]
		n += len(nodes.Src) + 2*nodes.Dst + len(k.Nbr) + len(k.RevStart) + len(k.RevDst)
	}
	if t.ints == nil || t.ints.Len() < n {
		if t.ints != nil {
			t.be.Free(t.ints)
		}
		t.ints = t.be.Alloc(kernels.U32, n+n/4)
	}
	t.used, t.graphs = 0, t.graphs[:0]
	for i := range b.Layers {
		nodes, k := &b.Layers[i].Nodes[0], &b.Layers[i].Blocks[0]
		t.graphs = append(t.graphs, model.Graph{
			Nodes: []model.Frontier{{Dst: nodes.Dst, IDs: t.upload(nodes.Src)}},
			Edges: []model.Edges{{Adjacency: kernels.Adjacency{
				Start: t.upload(k.Start), End: t.upload(k.End), Nbr: t.upload(k.Nbr), RevStart: t.upload(k.RevStart), RevDst: t.upload(k.RevDst),
			}}},
		})
	}
	t.tape.Reset(true)
	logits := t.Model.Forward(t.tape, model.Rows{t.tape.Leaf(rows)}, t.graphs, model.Pass{Key: key | 1})[0]
	each := t.tape.CrossEntropy(logits, t.upload(labels), 1/float32(len(labels)))
	if len(t.losses) < each.Rows {
		t.losses = make([]float32, each.Rows)
	}
	t.be.DownloadF32(t.losses[:each.Rows], each)
	for _, l := range t.losses[:each.Rows] {
		loss += float64(l)
	}
	t.tape.Backward()
	t.opt.Step(rate)
	return loss / float64(len(labels))
}

func (t *Trainer) upload(v []uint32) kernels.Tensor {
	x := kernels.Tensor{Buf: t.ints, Type: kernels.U32, Off: t.used, Rows: len(v), Cols: 1}
	t.be.UploadU32(x, v)
	t.used += len(v)
	return x
}

// Close gives the memory back.
func (t *Trainer) Close() {
	t.tape.Close()
	t.opt.Close()
	t.Model.Close()
	if t.ints != nil {
		t.be.Free(t.ints)
	}
}
