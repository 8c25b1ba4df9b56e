package task

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/train/data"
	"github.com/gnnstore/gnnstore/train/metric"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/sample"
	"github.com/gnnstore/gnnstore/train/step"
	"github.com/gnnstore/gnnstore/train/tape"
)

// Losses of links.
const (
	// BCE is the mean of -log σ(score) over positives plus the mean of -log(1-σ(score)) over
	// negatives.
	BCE = "bce"
	// CE is the mean over positives of -log softmax of a positive's score, among its own and its
	// negatives' scores.
	CE = "ce"
)

// LinkOptions configures how links are learnt, with the keys of package run. Zero values are the
// defaults.
type LinkOptions struct {
	// Loss is BCE or CE. The default is BCE, but CE with negatives All, which take no other.
	Loss string `json:"loss,omitempty"`
	// Negatives of training: "uniform:N", "filtered:N", "shared:N", "in-batch" or, without layers,
	// "all". The default is uniform:1.
	Negatives string `json:"negatives,omitempty"`
	// EvalNegatives are the negatives of evaluation, the same ones each time: "pairs:N",
	// "uniform:N", "given", or "all", which ranks each link among all nodes that do not make
	// another link. By default given ones where there are some, else pairs:1 for ROC-AUC and AP,
	// and uniform:1000 for MRR and Hits@K, or all without layers, unless the rows of all nodes take
	// more than a GiB: then uniform:1000 of 500 EvalEdges. Where the metric is the default, too,
	// 10,000 EvalEdges at most are measured, and a graph of n nodes, if that is less than 1,000,
	// takes uniform:n-1. Links of several relations take All or Uniform.
	EvalNegatives string `json:"eval_negatives,omitempty"`
	// Corrupt is the end of a positive that its negatives replace: CorruptDst, CorruptSrc or
	// CorruptBoth. The default is CorruptDst, but CorruptBoth with Reciprocal.
	Corrupt string `json:"corrupt,omitempty"`
	// Chunk is the number of positives that share negatives. Default 100.
	Chunk int `json:"chunk,omitempty"`
	// EvalEdges bounds the links of a part that are measured, the same ones each time. Default 0:
	// all.
	EvalEdges int `json:"eval_edges,omitempty"`
	// KeepTargets leaves the links that a step scores in the graph that it draws from.
	KeepTargets bool `json:"keep_targets,omitempty"`
	// N3 weighs a penalty of the loss (Lacroix et al. 2018): the mean over positives of the sum of
	// |x|³ over the elements x of their rows and their relation's. Default 0: none. It goes with
	// distmult, and with complex, whose elements are complex.
	N3 float64 `json:"n3,omitempty"`
	// Adversarial is a temperature that weighs the negatives of BCE. The weight of a negative is
	// the softmax of Adversarial times its score, among the negatives of the same positive (Sun et
	// al. 2019). Default 0: all negatives have the same weight.
	Adversarial float64 `json:"adversarial,omitempty"`
	// Reciprocal gives each relation a second vector, for reversed links. The first vector predicts
	// destinations, and the second predicts sources (Lacroix et al. 2018).
	Reciprocal bool `json:"reciprocal,omitempty"`
}

// Filled returns o with its defaults, but for EvalNegatives, which depend on the data.
func (o LinkOptions) Filled() LinkOptions {
	if o.Loss == "" {
		o.Loss = BCE
		if o.Negatives == All {
			o.Loss = CE
		}
	}
	if o.Negatives == "" {
		o.Negatives = "uniform:1"
	}
	if o.Corrupt == "" {
		o.Corrupt = CorruptDst
		if o.Reciprocal {
			o.Corrupt = CorruptBoth
		}
	}
	if o.Chunk == 0 {
		o.Chunk = DefaultChunk
	}
	return o
}

// DefaultChunk is the default number of positives that share negatives.
const DefaultChunk = 100

// Validate reports every problem.
func (o LinkOptions) Validate() error {
	o = o.Filled()
	var errs sample.Problems
	fail := errs.If
	fail(o.Loss != BCE && o.Loss != CE, "{loss} %s: there are bce and ce", o.Loss)
	_, err := ParseNegatives(o.Negatives, Uniform, Filtered, Shared, InBatch, All)
	fail(err != nil, "{negatives} %w", err)
	if o.EvalNegatives != "" {
		_, err := ParseNegatives(o.EvalNegatives, InPairs, Uniform, All, Given)
		fail(err != nil, "{eval_negatives} %w", err)
	}
	fail(!slices.Contains([]string{CorruptDst, CorruptSrc, CorruptBoth}, o.Corrupt), "{corrupt} %s: there are dst, src and both", o.Corrupt)
	fail(o.Negatives == All && o.Loss != CE, "{negatives} all: each positive is one among all nodes; take {loss} ce")
	fail(!(o.N3 >= 0 && o.N3 < 1e6), "{n3} %v: at least 0", o.N3)
	fail(!(o.Adversarial >= 0 && o.Adversarial < 1e6), "{adversarial} %v: at least 0", o.Adversarial)
	fail(o.Adversarial > 0 && o.Loss != BCE,
		"{adversarial} %v: it weighs negatives of {loss} bce, and {loss} ce weighs them by itself", o.Adversarial)
	fail(o.Reciprocal && o.Corrupt == CorruptDst,
		"{reciprocal}: the second vectors of relations predict sources, and {corrupt} dst asks for none; take {corrupt} both")
	fail(o.EvalEdges < 0, "{eval_edges} %d: at least 0, which is all", o.EvalEdges)
	fail(o.Chunk < 1, "{chunk} %d: at least 1", o.Chunk)
	return errors.Join(errs...)
}

// Links is the task of link prediction: the edges of a relation are positives, and drawn pairs are
// negatives. An epoch has each edge once, in an order that takes no memory; (seed, epoch, step)
// determines the examples of a step.
//
// One goroutine at a time calls Seeds and Without, and another one all other methods. Both read the
// dataset inside store.Guard.
type Links struct {
	links     LinkOptions
	options   Options
	data      *data.Data
	owned     owned
	relation  data.Relation   // the first of relations
	relations []data.Relation // the learnt ones; several are within one type
	begins    []int64         // number of each relation's first edge, and then of all edges
	kind      metric.Kind
	trained   metric.Links // of a batch
	negatives Negatives
	epoch     int
	order     permutation

	ahead     examples // of the goroutine that draws
	aheadOf   [2]int   // their epoch and step
	now       examples // of the goroutine that computes
	lists     []lists
	before    []lists // of the step before, which the backend may still be computing
	tensors   pairTensors
	positives []float32
	first     []uint32 // see lossShared
	joined    []*denseLists
	everyone  []uint32 // 0, 1, 2 and so on: the seeds of a step with all negatives
	answers   sameness // of the measurement under way
	constant  string   // see Constant
	evaluation
	ranked
}

// NewLinks makes the task of d's links, which decoder scores. It fills in the defaults of l.
// o.Metric is a metric of links. The default is MRR, but ROC-AUC where all links share their
// negatives of evaluation.
func NewLinks(d *data.Data, o Options, l LinkOptions, decoder model.Decoder) (_ *Links, err error) {
	k := &Links{links: l.Filled(), options: o, data: d, relation: d.Relations[d.Links.Relation], kind: o.Metric}
	k.decoder, k.begins = decoder, []int64{0}
	for i, l := range d.Links.All {
		k.relations = append(k.relations, d.Relations[l.Relation])
		k.begins = append(k.begins, k.begins[i]+d.AllEdges(l.Relation))
	}
	k.owned.relations, k.owned.begins = k.relations, k.begins
	if k.kind == "" {
		k.kind = metric.MRR
		if k.sharesNegatives() {
			k.kind = metric.ROCAUC
		}
		k.evaluation.bounded = true
	}
	if k.trained, err = k.newMetric(); err != nil {
		return nil, d.Set.About(err)
	}
	if k.negatives, err = ParseNegatives(k.links.Negatives, Uniform, Filtered, Shared, InBatch, All); err != nil {
		return nil, fmt.Errorf("{negatives} %w", err)
	}
	if o.Unmeasured {
		return k, nil
	}
	if !o.Fixed {
		if err := k.checkMemory(decoder); err != nil {
			return nil, err
		}
	}
	valid, test := d.Links.Held()
	for _, isDst := range corrupted(k.links.Corrupt) {
		t := k.relation.Src
		if isDst {
			t = k.relation.Dst
		}
		if n := d.Types[t].Nodes; n < 2 && (!o.Fixed || valid+test > 0) { // else no negative is drawn
			return nil, fmt.Errorf("%s: {corrupt} %s: type %s has %d node, so there is no other to take the place of an end; negatives need two",
				d.Set.Path(), k.links.Corrupt, d.Types[t].Name, n)
		}
	}
	if err := k.evaluation.open(k); err != nil {
		return nil, err
	}
	return k, k.checkAll(decoder)
}

// newMetric makes the accumulator of the metric.
func (k *Links) newMetric() (metric.Links, error) {
	if k.byRank() {
		return metric.NewLists(k.kind)
	}
	return metric.NewLinks(k.kind)
}

// byRank reports whether the metric is computed from ranks. MRR always is, and Hits@K is if each
// link has its own negatives.
func (k *Links) byRank() bool {
	_, isHits := k.kind.Best()
	return k.kind == metric.MRR || isHits && !k.sharesNegatives()
}

// sharesNegatives reports whether evaluation has a pool of negatives for all links, so that there
// are no ranks.
func (k *Links) sharesNegatives() bool {
	pool := k.data.Links.Valid.Part.PoolSrc != nil || k.data.Links.Test.Part.PoolSrc != nil
	switch of := k.links.EvalNegatives; of {
	case "", Given:
		return pool && len(k.relations) == 1
	default:
		return strings.HasPrefix(of, InPairs)
	}
}

// Options returns the task's options, with their defaults filled in.
func (k *Links) Options() LinkOptions { return k.links }

// Kind returns the metric of the task.
func (k *Links) Kind() metric.Kind { return k.kind }

// edges returns the number of edges to train on.
func (k *Links) edges() int64 { return k.begins[len(k.begins)-1] }

// Steps returns the number of steps of an epoch.
func (k *Links) Steps() int { return k.options.steps(k.edges()) }

// Begin puts the edges in the order in which an epoch has them; the first epoch is 1.
func (k *Links) Begin(epoch int) {
	k.epoch, k.aheadOf = epoch, [2]int{}
	k.owned.forget()
	k.order = newPermutation(uint64(k.edges()), sample.Hash(k.options.Seed, phaseOrder, uint64(epoch)))
}

// of sets x to the examples of a step.
func (k *Links) of(x *examples, step int) {
	lo, hi := k.options.batch(step, k.edges())
	first, last := k.options.share(int(hi-lo), k.together())
	x.edges = x.edges[:0]
	for i := first; i < last; i++ {
		x.edges = append(x.edges, int64(k.order.at(uint64(lo)+uint64(i))))
	}
	r := k.relation
	x.begin(len(k.data.Types))
	x.first = first
	var tries [][]uint8
	if k.options.Workers == nil {
		x.read(k.relations, k.begins, x.edges)
	} else if s := k.owned.of(step); first < last {
		x.of, x.links = relationsOf(x.of[:0], k.begins, x.edges), append(x.links, s.links[first:last]...)
		tries = s.tries
	}
	if k.negatives.Way == All {
		k.amongAll(x)
		return
	}
	for _, l := range x.links {
		x.src, x.dst = append(x.src, x.row(r.Src, l[0])), append(x.dst, x.row(r.Dst, l[1]))
	}
	key := sample.Hash(k.options.Seed, phaseTrain, uint64(k.epoch), uint64(step))
	linked := func(i int, u, v uint32) bool {
		return r.Src == r.Dst && u == v || k.relations[x.relation(i)].Linked(u, v)
	}
	x.draw(k.negatives, k.links.Corrupt, k.links.Chunk, key, r.Src, r.Dst,
		k.data.Types[r.Src].Nodes, k.data.Types[r.Dst].Nodes, linked, tries)
}

// all returns the edges of a step, of all workers.
func (k *Links) all(step int) []int64 { return k.options.edges(&k.order, step, k.edges()) }

// Prepare reads the edges of n steps from the workers that own them, before Seeds. All workers call
// it for the same steps, and may call it for a step again. A worker that has all edges has nothing
// to prepare.
func (k *Links) Prepare(ctx context.Context, from, n int) error {
	w := k.options.Workers
	if w == nil {
		return nil
	}
	steps, err := k.owned.prepare(ctx, w.Ahead, from, n, k.all)
	if err == nil && k.negatives.Way == Filtered {
		err = k.filter(ctx, w.Ahead, from, steps)
	}
	if err == nil {
		k.owned.keep(from, steps, func(edges int) bool { return k.options.hasShare(edges, k.together()) })
	}
	return err
}

// KeptBytes returns the bytes that Prepare keeps for a step until the step is computed.
func (k *Links) KeptBytes() int64 {
	if k.options.Workers == nil {
		return 0
	}
	each := 8
	if k.negatives.Way == Filtered {
		each += k.negatives.Of * len(corrupted(k.links.Corrupt))
	}
	return int64(k.options.Batch) * int64(each)
}

// filter finds how often the filtered negatives of steps are drawn anew.
func (k *Links) filter(ctx context.Context, gather Gather, from int, steps []*stepEdges) error {
	type negative struct {
		step, side, at int
		relation, own  uint32 // the end that stays
		key            uint64
	}
	var open []negative
	r, of := k.relation, k.negatives.Of
	sides := corrupted(k.links.Corrupt)
	nodes := map[bool]int{true: k.data.Types[r.Dst].Nodes, false: k.data.Types[r.Src].Nodes}
	for n, s := range steps {
		key := sample.Hash(k.options.Seed, phaseTrain, uint64(k.epoch), uint64(from+n))
		relations := relationsOf(nil, k.begins, k.all(from+n))
		for number, isDst := range sides {
			s.tries = append(s.tries, make([]uint8, len(s.links)*of))
			for at := range s.tries[number] {
				i := at / of
				x := negative{n, number, at, 0, s.links[i][1], sample.Hash(key, uint64(number))}
				if isDst {
					x.own = s.links[i][0]
				}
				if len(relations) > 0 {
					x.relation = relations[i]
				}
				open = append(open, x)
			}
		}
	}
	for len(open) > 0 {
		pairs := make([]candidatePair, len(open))
		for i, x := range open {
			isDst := sides[x.side]
			v := redrawn(x.key, x.at, nodes[isDst], int(steps[x.step].tries[x.side][x.at]))
			if pairs[i] = (candidatePair{x.relation, v, x.own}); isDst {
				pairs[i] = candidatePair{x.relation, x.own, v}
			}
		}
		linked, err := k.owned.linked(ctx, gather, pairs)
		if err != nil {
			return err
		}
		left := open[:0]
		for i, x := range open {
			if !linked[i] && (r.Src != r.Dst || pairs[i].src != pairs[i].dst) {
				continue
			}
			t := &steps[x.step].tries[x.side][x.at]
			if *t++; *t < mostRedraws {
				left = append(left, x)
			}
		}
		open = left
	}
	return nil
}

// together returns the number of positives that share negatives. They stay on one worker.
func (k *Links) together() int {
	if k.negatives.Way == Shared || k.negatives.Way == InBatch {
		return k.links.Chunk
	}
	return 1
}

// sizes returns the number of positives and negatives of a step, of all workers.
func (k *Links) sizes(step, sides int) (positives, negatives int) {
	lo, hi := k.options.batch(step, k.edges())
	positives = int(hi - lo)
	if k.negatives.Way != InBatch {
		return positives, positives * k.negatives.Of * sides
	}
	for n := positives; n > 0; n -= k.links.Chunk {
		chunk := min(n, k.links.Chunk)
		negatives += chunk * (chunk - 1) * sides
	}
	return positives, negatives
}

// Seeds returns the seeds of a step of the epoch that began: the ends of its positives and
// negatives, by type.
func (k *Links) Seeds(step int) [][]uint32 {
	k.of(&k.ahead, step)
	k.aheadOf = [2]int{k.epoch, step}
	return k.ahead.seeds
}

// Without returns every edge between the two ends of a positive of a step, since a message along
// any of them would give the answer away: its parallel copies, its mirror image in the reverse
// relation, and within a type the edges in the opposite direction in both relations, since not
// every dataset is declared symmetric.
func (k *Links) Without(step int) []sample.Without {
	if k.links.KeepTargets || k.options.NoMessages {
		return nil
	}
	if k.aheadOf != [2]int{k.epoch, step} {
		k.Seeds(step)
	}
	return k.ahead.without(k.data)
}

// lists are pairs to score: node n of own, a row of type from's, with each of the rows
// nodes[start[n]:start[n+1]] of type to's.
type lists struct {
	from, to int
	own      []uint32
	of       []uint32 // the relation of each list; empty where there is one
	reversed bool     // links go from nodes to own
	start    []uint32
	nodes    []uint32
	block    sample.Block // the same, and their reverse
	owner    []uint32     // of each pair: its n
}

// pairTensors is scratch of upload.
type pairTensors struct {
	parts [][]uint32
	count []uint32
	zeros []uint32
}

// upload copies lists to the backend, with so many zeros, and others. There are rows(t) rows of
// type t.
func (k *Links) upload(
	f *step.Feed, all []lists, rows func(t int) int, zeros int, others ...[]uint32,
) (pairs []model.Pairs, zero kernels.Tensor, rest []kernels.Tensor) {
	p := &k.tensors
	most := 0
	p.parts = p.parts[:0]
	for i := range all {
		l := &all[i]
		n := len(l.own)
		l.block.Start, l.block.End, l.block.Nbr = l.start[:n], l.start[1:n+1], l.nodes
		l.block.Reverse(rows(l.to))
		l.owner = l.owner[:0]
		for n := range l.own {
			for range l.start[n+1] - l.start[n] {
				l.owner = append(l.owner, uint32(n))
			}
		}
		b := &l.block
		p.parts = append(p.parts, l.own, b.Start, b.End, b.Nbr, b.RevStart, b.RevDst, b.RevEdge, l.owner, l.of)
		most = max(most, len(l.nodes), n)
	}
	for i := len(p.count); i <= most; i++ {
		p.count = append(p.count, uint32(i))
	}
	for len(p.zeros) < zeros {
		p.zeros = append(p.zeros, 0)
	}
	p.parts = append(p.parts, p.count[:most+1], p.zeros[:zeros])
	tensors := f.Ints(append(p.parts, others...)...)
	for i := range all {
		l := &all[i]
		x := tensors[9*i:]
		pairs = append(pairs, model.Pairs{
			Nodes: x[0], Owner: x[7], Relations: x[8], Reversed: l.reversed, Count: tensors[9*len(all)],
			Lists: kernels.Adjacency{Start: x[1], End: x[2], Nbr: x[3], RevStart: x[4], RevDst: x[5], RevEdge: x[6]},
		})
	}
	return pairs, tensors[9*len(all)+1], tensors[9*len(all)+2:]
}

// list returns the next of k.lists, with the memory of an earlier one.
func (k *Links) list(from, to int, own []uint32) *lists {
	if len(k.lists) < cap(k.lists) {
		k.lists = k.lists[:len(k.lists)+1]
	} else {
		k.lists = append(k.lists, lists{})
	}
	l := &k.lists[len(k.lists)-1]
	l.from, l.to, l.own, l.start, l.nodes = from, to, own, append(l.start[:0], 0), l.nodes[:0]
	l.of, l.reversed = nil, false
	return l
}

func (l *lists) add(nodes ...uint32) { l.nodes = append(l.nodes, nodes...) }
func (l *lists) end()                { l.start = append(l.start, uint32(len(l.nodes))) }

// listPositives adds the list of x's positives. If relations are reciprocal and negatives replace
// sources, it also adds the list of the reversed positives.
func (k *Links) listPositives(x *examples) {
	for _, back := range []bool{false, true}[:k.positiveLists()] {
		from, to, own, other := k.sideOf(back, x)
		l := k.list(from, to, own)
		l.of, l.reversed = k.decoded(x.of, len(own), back)
		for _, v := range other {
			l.add(v)
			l.end()
		}
	}
}

// positiveLists returns the number of lists of positives.
func (k *Links) positiveLists() int {
	if k.links.Reciprocal && k.links.Corrupt != CorruptDst {
		return 2
	}
	return 1
}

// sideOf returns the node types and the rows of both ends of x's links: from and own are of the end
// that stays, to and other of the end that negatives replace. With back the source is replaced.
func (k *Links) sideOf(back bool, x *examples) (from, to int, own, other []uint32) {
	if back {
		return k.relation.Dst, k.relation.Src, x.dst, x.src
	}
	return k.relation.Src, k.relation.Dst, x.src, x.dst
}

// bothWays returns the decoder's numbers for the relations of x's links: one list for the links
// and, if there are two lists of positives, another one for the reversed links.
func (k *Links) bothWays(x *examples) (all [][]uint32) {
	for _, back := range []bool{false, true}[:k.positiveLists()] {
		of, _ := k.decoded(x.of, len(x.links), back)
		all = append(all, of)
	}
	return all
}

// decoded returns the number that the decoder has for the relation of each of n links, and whether
// the decoder must reverse the relation. of has the relations of the links; it is empty where there
// is one. back says that the links are reversed: they go from destinations to sources. With
// Reciprocal reversed links have numbers, and so vectors, of their own.
func (k *Links) decoded(of []uint32, n int, back bool) (relations []uint32, reversed bool) {
	if !k.links.Reciprocal {
		return of, back
	}
	relations = append(relations, of...)
	if len(of) == 0 {
		relations = make([]uint32, n)
	}
	for i := range relations {
		if back {
			relations[i] += uint32(len(k.relations))
		}
	}
	return relations, false
}

// listsOf sets k.lists to the lists of x. BCE has a list of positives and a list of negatives
// for each side. CE has the lists of each side, each with its positive first.
func (k *Links) listsOf(x *examples) {
	k.lists = k.lists[:0]
	if k.links.Loss == BCE {
		k.listPositives(x)
	}
	for _, s := range x.sides {
		from, to, own, other := k.sideOf(!s.dst, x)
		l := k.list(from, to, own)
		l.of, l.reversed = k.decoded(x.of, len(own), !s.dst)
		for i := range x.links {
			if k.links.Loss == CE {
				l.add(other[i])
			}
			l.add(s.list(i)...)
			l.end()
		}
	}
}

// Loss starts the backward pass from the mean loss of a batch, in the rows of its seeds.
func (k *Links) Loss(t *tape.Tape, f *step.Feed, out model.Rows, in step.Input) (tally func() step.Tally, err error) {
	x := &k.now
	k.owned.computes(in.Step)
	k.of(x, in.Step)
	if k.negatives.Way == All {
		return k.lossAmongAll(t, f, out, x), nil
	}
	k.lists, k.before = k.before, k.lists
	if k.products() {
		return k.lossShared(t, f, out, in.Step, x), nil
	}
	k.listsOf(x)
	positives := len(x.links)
	all, negatives := k.sizes(in.Step, len(x.sides))
	others := append([][]uint32{x.src, x.dst}, k.bothWays(x)...)
	pairs, zeros, ends := k.upload(f, k.lists, func(t int) int { return out[t].Value.Rows }, positives, others...)
	var scores []*tape.Var
	for i, p := range pairs {
		l := &k.lists[i]
		scores = append(scores, k.model.Score(t, out[l.from], out[l.to], p))
	}
	var sum func() float64
	if k.links.Loss == CE {
		sum = k.softmaxLoss(t, f, scores, zeros, float64(all))
	} else {
		sum = k.sigmoidLoss(t, f, scores, pairs, all, negatives, len(x.sides))
	}
	lists := k.lists
	var fetched [][]float32
	var penalties []float64
	for _, s := range scores {
		fetched = append(fetched, f.Fetch(s.Value))
	}
	if k.links.N3 > 0 {
		penalties = k.penalty(t, f, out, ends[0], ends[1], ends[2:], float64(all))
	}
	return func() step.Tally {
		a := step.Tally{Loss: penalised(sum(), penalties), Weight: float64(positives)}
		k.measureBatch(fetched, lists, &a)
		return a
	}, nil
}

// sigmoidLoss starts the backward pass from BCE: the sum of the means over the positives and over
// the negatives of the step. all and negatives count them, on all workers. scores has the scores of
// lists of positives, and then of the negatives of each side. The function that it returns adds up
// the loss.
func (k *Links) sigmoidLoss(
	t *tape.Tape, f *step.Feed, scores []*tape.Var, pairs []model.Pairs, all, negatives, sides int,
) func() float64 {
	most, first := 0, k.positiveLists()
	for _, s := range scores[first:] {
		most = max(most, s.Value.Rows)
	}
	positives := scores[0].Value.Rows
	k.positives = k.positives[:0]
	for range positives {
		k.positives = append(k.positives, 1)
	}
	targets := f.UploadFloats(append(k.positives, make([]float32, most)...), 1)
	of := func(list int) int { // the divisor of its mean
		switch {
		case list < first:
			return all * first
		case k.links.Adversarial > 0: // weights of a list add up to 1
			return all * sides
		}
		return max(negatives, 1)
	}
	var losses [][]float32
	for i, s := range scores {
		scale := 1 / float32(of(i))
		switch {
		case i < first:
			losses = append(losses, f.FetchLoss(t.SigmoidCrossEntropy(s, targets.Slice(0, positives), scale)))
		case k.links.Adversarial > 0:
			losses = append(losses, f.FetchLoss(t.AdversarialLoss(s, pairs[i].Lists, float32(k.links.Adversarial), scale)))
		default:
			target := targets.Slice(positives, positives+s.Value.Rows)
			losses = append(losses, f.FetchLoss(t.SigmoidCrossEntropy(s, target, scale)))
		}
	}
	return func() (loss float64) {
		for i, l := range losses {
			loss += step.Sum(l) / float64(of(i)) * float64(all)
		}
		return loss
	}
}

// softmaxLoss starts the backward pass from CE, the mean over the sides, of so many positives.
// Lists of equal length are rows of one matrix of logits. The function that it returns adds up the
// loss.
func (k *Links) softmaxLoss(
	t *tape.Tape, f *step.Feed, scores []*tape.Var, zeros kernels.Tensor, positives float64,
) func() float64 {
	scale := 1 / (positives * float64(len(scores)))
	var losses [][]float32
	for i, s := range scores {
		start := k.lists[i].start
		for lo := 0; lo < len(start)-1; {
			width, hi := start[lo+1]-start[lo], lo+1
			for hi < len(start)-1 && start[hi+1]-start[hi] == width {
				hi++
			}
			logits := t.Reshape(t.Window(s, int(start[lo]), int(start[hi])), hi-lo, int(width))
			losses = append(losses, f.FetchLoss(t.CrossEntropy(logits, zeros.Slice(lo, hi), float32(scale))))
			lo = hi
		}
	}
	return func() float64 { return sumOf(losses) / float64(len(scores)) }
}

// sumOf adds up numbers in their order.
func sumOf(lists [][]float32) (sum float64) {
	for _, l := range lists {
		for _, x := range l {
			sum += float64(x)
		}
	}
	return sum
}

// mostMeasured bounds the negatives of a batch that its metric reads, since it sorts them. It
// reads the negatives of the first positives.
const mostMeasured = 1 << 14

// measureBatch adds the metric of a batch to a, if it has one, from the scores of each of lists.
func (k *Links) measureBatch(scores [][]float32, lists []lists, a *step.Tally) {
	k.trained.Reset()
	measured := 0 // negatives
	var positives [][]float32
	if k.links.Loss == BCE {
		n := k.positiveLists()
		positives, scores, lists = scores[:n], scores[n:], lists[n:]
	}
	for i, got := range scores {
		of := min(i, len(positives)-1) // a second side is of links that go back
		if k.links.Corrupt == CorruptSrc {
			of = len(positives) - 1
		}
		start := lists[i].start
		for n := range len(start) - 1 {
			if start[n+1] > mostMeasured && n > 0 {
				break
			}
			negative := got[start[n]:start[n+1]]
			var positive []float32
			if k.links.Loss == CE {
				positive, negative = negative[:1], negative[1:]
			} else {
				positive = positives[of][n : n+1]
			}
			measured += k.addTrained(positive, negative)
		}
	}
	k.measured(measured, a)
}

// addTrained adds the scores of a positive and its negatives to the metric of a batch, and returns
// the number of negatives that it added. If K is larger than the number of negatives, it adds
// none: the positive is among the first K anyway.
func (k *Links) addTrained(positive, negative []float32) int {
	if best, isHits := k.kind.Best(); isHits && k.byRank() && len(negative) < best {
		return 0
	}
	k.trained.Add(positive, negative)
	return len(negative)
}

// measured adds the metric of so many negatives to a, if there is one.
func (k *Links) measured(negatives int, a *step.Tally) {
	if best, isHits := k.kind.Best(); isHits && negatives < best {
		return // it would be 1
	}
	if v, err := k.trained.Value(); err == nil {
		a.Rows = int64(a.Weight)
		a.Measured = v * a.Weight
	}
}

// Trained returns the mean metric of the batches in a; NaN where none of them has one.
func (k *Links) Trained(a step.Tally) float64 { return a.Measured / float64(a.Rows) }
