package task

import (
	"fmt"
	"math"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/train/metric"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/step"
	"github.com/gnnstore/gnnstore/train/tape"
)

// With negatives All a step reads the rows of all nodes. Each positive is one among all nodes of
// the type, and the scores of a side are one product of matrices: see tape.SoftmaxProduct. No list
// of negatives is made.

// amongAll makes all nodes of both types the seeds of x, in their order.
func (k *Links) amongAll(x *examples) {
	most := 0
	for _, t := range k.data.SeedTypes() {
		most = max(most, k.data.Types[t].Nodes)
	}
	for v := len(k.everyone); v < most; v++ {
		k.everyone = append(k.everyone, uint32(v))
	}
	for _, t := range k.data.SeedTypes() {
		x.seeds[t] = k.everyone[:k.data.Types[t].Nodes]
	}
	for _, l := range x.links {
		x.src, x.dst = append(x.src, l[0]), append(x.dst, l[1])
	}
}

// lossAmongAll starts the backward pass from CE of x, the mean over the sides.
func (k *Links) lossAmongAll(t *tape.Tape, f *step.Feed, out model.Rows, x *examples) (tally func() step.Tally) {
	n := len(x.links)
	for i := len(k.tensors.count); i <= n; i++ {
		k.tensors.count = append(k.tensors.count, uint32(i))
	}
	relations := k.bothWays(x)
	ints := f.Ints(append([][]uint32{x.src, x.dst, k.tensors.count[:n+1]}, relations...)...)
	src, dst, of := ints[0], ints[1], ints[3:]
	r, sides := k.relation, corrupted(k.links.Corrupt)
	scale := 1 / (float64(n) * float64(len(sides)))
	var losses [][]float32
	var penalties []float64
	for _, isDst := range sides {
		p := model.Pairs{Nodes: dst, Relations: of[len(of)-1], Reversed: !k.links.Reciprocal, Count: ints[2]}
		from, to, positive := r.Dst, r.Src, src
		if isDst {
			p.Nodes, p.Relations, p.Reversed = src, of[0], false
			from, to, positive = r.Src, r.Dst, dst
		}
		query := k.model.Query(t, out[from], p)
		losses = append(losses, f.FetchLoss(t.SoftmaxProduct(query, out[to], positive, float32(scale))))
	}
	if k.links.N3 > 0 {
		penalties = k.penalty(t, f, out, src, dst, of, float64(n))
	}
	return func() step.Tally {
		return step.Tally{Loss: penalised(sumOf(losses)/float64(len(sides)), penalties), Weight: float64(n)}
	}
}

// penalty returns the penalties of LinkOptions.N3 for the nodes src, for the nodes dst and for each
// list of relations in of, and starts the backward pass from them. If there are several lists of
// relations, their mean counts. It waits for the backend.
func (k *Links) penalty(
	t *tape.Tape, f *step.Feed, out model.Rows, src, dst kernels.Tensor, of []kernels.Tensor, positives float64,
) (penalties []float64) {
	add := func(v *tape.Var, weight float64) {
		values := f.Download(v.Value)
		sum := cubes(values, v.Value.Cols, k.model.Decoder == model.ComplEx, weight/positives)
		penalties = append(penalties, weight*sum)
		t.Backend().Add(t.Gradient(v), f.UploadFloats(values, v.Value.Cols))
	}
	rows := []*tape.Var{t.GatherRows(out[k.relation.Src], src), t.GatherRows(out[k.relation.Dst], dst)}
	for _, relations := range of {
		rows = append(rows, k.model.RelationRows(t, model.Pairs{Nodes: src, Relations: relations}))
	}
	for i, v := range rows {
		if i < 2 {
			add(v, k.links.N3)
		} else {
			add(v, k.links.N3/float64(len(of)))
		}
	}
	return penalties
}

// penalised adds penalties to a loss, in their order.
func penalised(loss float64, penalties []float64) float64 {
	for _, p := range penalties {
		loss += p
	}
	return loss
}

// cubes returns the sum of the cubes of the absolute values in rows, of so many columns. It
// overwrites rows with scale times the gradient of this sum.
func cubes(rows []float32, cols int, isComplex bool, scale float64) (sum float64) {
	if !isComplex {
		for i, x := range rows {
			abs := math.Abs(float64(x))
			sum += abs * abs * abs
			rows[i] = float32(3 * scale * abs * float64(x))
		}
		return sum
	}
	half := cols / 2
	for ; len(rows) > 0; rows = rows[cols:] {
		for c := range half {
			x, y := float64(rows[c]), float64(rows[half+c])
			abs := math.Sqrt(x*x + y*y)
			sum += abs * abs * abs
			rows[c], rows[half+c] = float32(3*scale*abs*x), float32(3*scale*abs*y)
		}
	}
	return sum
}

// pairBytes is the memory of a pair in a list: as an example of the step that computes and of the
// steps that are drawn, in lists and their reverse, in the backend's copy of these, its score and
// the results computed from it. 110 bytes were measured.
const pairBytes = 112

// sharedBytes is the memory of a negative that a chunk shares, where scores are products: its
// places in two steps' lists, the backend's copy of these, and the map of rows. Its row and
// gradient come on top, for one chunk at a time.
const sharedBytes = 64

// denseBytes is the memory of a pair of a positive and a shared negative in denseLists: its entries
// in lists of two sizes, for two steps, and its score.
const denseBytes = 64

// ListsTooLong is the error for lists of negatives that do not fit in memory.
type ListsTooLong struct{ message string }

func (e *ListsTooLong) Error() string { return e.message }

// checkMemory refuses lists of negatives that do not fit in memory, before they are made.
func (k *Links) checkMemory(decoder model.Decoder) error {
	positives, of, sides := min(int64(k.options.Batch), k.edges()), float64(k.negatives.Of), float64(len(corrupted(k.links.Corrupt)))
	chunk := min(int64(k.links.Chunk), positives)
	need := float64(0)
	switch {
	case k.negatives.Way == All:
		return nil
	case k.negatives.Way == Shared && decoder != model.PairMLP:
		chunks := float64((positives + chunk - 1) / chunk)
		need = chunks*sides*of*sharedBytes + 8*of*float64(k.options.Width)
		if decoder.Distance() || k.links.Adversarial > 0 {
			need += float64(chunk) * of * denseBytes
		}
	case k.negatives.Way == InBatch:
		need = float64(positives*(chunk-1)) * sides * pairBytes
	default:
		need = float64(positives) * of * sides * pairBytes
	}
	available := k.available()
	if need <= float64(available) {
		return nil
	}
	return &ListsTooLong{fmt.Sprintf("{negatives} %s: a step of %d positives has lists of %.0f MiB, and %d MiB of memory are available; take fewer, or a smaller {chunk} or {batch}",
		k.links.Negatives, positives, need/(1<<20), available>>20)}
}

// checkAll refuses a decoder that the options do not allow. Where all nodes are scored, scores must
// be products of matrices. Several relations, and Reciprocal, need a vector for each relation. N3
// goes with distmult and complex.
func (k *Links) checkAll(decoder model.Decoder) error {
	all := k.negatives.Way == All
	switch {
	case all && !k.options.NoLayers:
		return fmt.Errorf("{negatives} all: every step would draw the neighbours of all nodes; take {layers} 0, or uniform:N or shared:N")
	case all && decoder.Distance():
		return fmt.Errorf("{negatives} all: {decoder} %s scores by distances, which are no product of matrices, and every "+
			"step would compute them to all nodes; take shared:N or uniform:N", decoder)
	case decoder == model.PairMLP && (all || k.evaluation.of.Way == All):
		return fmt.Errorf("{decoder} mlp scores pair by pair, and all nodes are too many; take dot, distmult or complex, or other negatives by " +
			"{negatives} and {eval_negatives}")
	case len(k.relations) > 1 && !decoder.PerRelation():
		return fmt.Errorf("%s: {decoder} %s knows one relation, and the links of %d are learnt; take distmult, complex, "+
			"transe or rotate, or one relation by {target}", k.data.Set.Path(), decoder, len(k.relations))
	case k.links.Reciprocal && !decoder.PerRelation():
		return fmt.Errorf("{reciprocal}: it goes with {decoder} distmult, complex, transe or rotate, which have a vector for " +
			"each relation")
	case k.links.N3 > 0 && decoder != model.DistMult && decoder != model.ComplEx:
		return fmt.Errorf("{n3} %v: it goes with {decoder} distmult or complex", k.links.N3)
	}
	if k.evaluation.of.Way == All {
		_, err := metric.NewRanks(k.kind)
		return err
	}
	return nil
}
