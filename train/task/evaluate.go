package task

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/metric"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/sample"
	"github.com/gnnstore/gnnstore/train/step"
	"github.com/gnnstore/gnnstore/train/tape"
)

// evaluation measures a part of an edge split. Part returns the nodes whose rows it needs, Measure
// takes these rows, and Value scores the part's links and their negatives, which are the same each
// time.
type evaluation struct {
	model   *model.Model
	decoder model.Decoder
	tape    *tape.Tape
	feed    *step.Feed
	most    int // links of a part; 0: all

	of      Negatives
	metric  metric.Links
	bounded bool               // the metric is the default, so that few links need be measured
	within  map[string]float64 // see RankedWithin
	held    [2]store.HeldEdges
	drawn   [3][][2]uint32 // of InPairs: the pairs of each part, once they are drawn
	known   []uint64       // held-out links, as pairs of nodes, ascending; nil at first
	part    Part
	ends    [2][]uint32 // sources and destinations of the part's links
	which   []uint32    // relation of each link; empty where there is one
	used    []int       // indexes of the links that are measured
	read    examples    // scratch of readTrained
	rows    measuredRows
	scratch [][2]uint32
}

// open finds the negatives of evaluation, and checks that they suit the metric.
func (e *evaluation) open(k *Links) (err error) {
	e.held = [2]store.HeldEdges{k.data.Links.Valid, k.data.Links.Test}
	if e.metric, err = k.newMetric(); err != nil {
		return err
	}
	several := len(k.relations) > 1
	_, isHits := k.kind.Best()
	if k.links.EvalNegatives == "" && (several || k.options.NoLayers && (isHits || k.kind == metric.MRR) && !given(e.held[0]) && !given(e.held[1])) {
		k.links.EvalNegatives = All
		if k.allRows() > mostRows {
			k.links.EvalNegatives, k.links.EvalEdges = Uniform+":1000", cmp.Or(k.links.EvalEdges, fewEdges)
		}
	}
	if k.links.EvalNegatives == All {
		e.of.Way = All
		return k.ranked.open(k)
	}
	if several && !strings.HasPrefix(k.links.EvalNegatives, Uniform) {
		return fmt.Errorf("%s: {eval_negatives} %s: links of several relations are measured among nodes in the place of an end; take all or uniform:N, or one "+
			"relation by {target}", k.data.Set.Path(), k.links.EvalNegatives)
	}
	if k.links.EvalNegatives == "" {
		switch {
		case (given(e.held[0]) || e.held[0].Len() == 0) && (given(e.held[1]) || e.held[1].Len() == 0) && e.held[0].Len()+e.held[1].Len() > 0:
			k.links.EvalNegatives = Given
		case isHits || k.kind == metric.MRR:
			k.links.EvalNegatives = fmt.Sprintf("%s:%d", Uniform, k.fewRanked())
			if valid, test := k.data.Links.Held(); e.bounded && max(valid, test) > rankedEdges {
				k.links.EvalEdges = cmp.Or(k.links.EvalEdges, rankedEdges)
			}
		default:
			k.links.EvalNegatives = InPairs + ":1"
		}
	}
	if e.of, err = ParseNegatives(k.links.EvalNegatives, InPairs, Uniform, Given); err != nil {
		return fmt.Errorf("{eval_negatives} %w", err)
	}
	return k.Limit(k.links.EvalEdges)
}

const (
	// mostRows is the most bytes of all nodes' rows with which a run ranks links among all nodes by
	// default. It is a constant, since what a run measures must not depend on its budget.
	mostRows = 1 << 30
	// fewEdges is the number of links of a part that are measured by default where rows take more,
	// each among nodes of its own.
	fewEdges = 500
	// rankedEdges is the number of links of a part that are measured by the default metric, each
	// among 1,000 nodes. The standard error of an MRR of 10,000 links is below half a point.
	rankedEdges = 10_000
)

// fewRanked returns the number of nodes among which a link is ranked by default. It is 1,000, or
// fewer by the default metric of a small graph, whose nodes would be drawn again and again.
func (k *Links) fewRanked() int {
	n := 1000
	if !k.evaluation.bounded {
		return n
	}
	for _, isDst := range corrupted(k.links.Corrupt) {
		t := k.relation.Src
		if isDst {
			t = k.relation.Dst
		}
		n = min(n, k.data.Types[t].Nodes-1)
	}
	return max(n, 1)
}

// allRows returns the bytes of the rows of all nodes.
func (k *Links) allRows() (n int64) {
	for _, t := range k.data.SeedTypes() {
		n += 4 * int64(k.data.Types[t].Nodes) * int64(k.options.Width)
	}
	return n
}

// given reports whether negatives come with a part.
func given(h store.HeldEdges) bool {
	return h.Part.PoolSrc != nil || h.Part.SrcNegatives != nil || h.Part.DstNegatives != nil
}

// Limit measures parts of more than n links on n of them; 0: on all. It returns an error if the
// negatives of these do not suit the metric.
func (k *Links) Limit(n int) error {
	k.most = n
	e := &k.evaluation
	if e.of.Way == All {
		return nil
	}
	for p := range k.held {
		if k.Count(Part(p)) == 0 {
			continue
		}
		if err := k.Measurable(Part(p)); err != nil {
			return err
		}
	}
	return k.checkScoring()
}

// Measurable returns an error if the metric does not suit the links of a part and their negatives.
func (k *Links) Measurable(p Part) error {
	e := &k.evaluation
	fail := func(format string, args ...any) error {
		return fmt.Errorf("%s: {eval_negatives} %s: relation %s, %v links: %s", k.data.Set.Path(), k.links.EvalNegatives,
			k.relation.Relation.Key(), p, fmt.Sprintf(format, args...))
	}
	if e.of.Way == Given && (p == Train || !given(e.held[p])) {
		return fail("none are given; take pairs:1, or uniform:1000")
	}
	if e.of.Way == All {
		if p == Train {
			return fail("links that are trained on are not ranked; take uniform:1000")
		}
		return nil
	}
	lists := e.of.Way == Uniform || e.of.Way == Given && e.held[p].Part.PoolSrc == nil
	if k.kind == metric.MRR && !lists {
		return fail("{metric} mrr ranks each link among negatives of its own, and these are for all; take uniform:1000")
	}
	among, each := k.negativesOf(p, e.of), ""
	if k.byRank() {
		among, each = k.ownNegatives(p), " for each link"
	}
	if best, isHits := k.kind.Best(); isHits && int64(best) > among {
		return fail("{metric} %s wants %d negatives%s, and there are %d; take a smaller K, or more of them", k.kind, best, each, among)
	}
	return nil
}

// ownNegatives returns the number of negatives that each link of a part has of its own. If its two
// ends have different numbers, it returns the smaller one.
func (k *Links) ownNegatives(p Part) int64 {
	if k.evaluation.of.Way == Uniform {
		return int64(k.evaluation.of.Of)
	}
	n := int64(math.MaxInt64)
	for _, f := range []*store.File{k.held[p].Part.SrcNegatives, k.held[p].Part.DstNegatives} {
		if f != nil {
			n = min(n, f.Cols)
		}
	}
	return n
}

// Examples returns "links".
func (k *Links) Examples() string { return "links" }

// Attach makes the network of s score links. It is called before the first step.
func (k *Links) Attach(s *step.Stepper) { k.model, k.tape, k.feed = s.Model, s.Tape, s.Feed }

// Count returns the number of links of a part that are measured. For Train it is the size of the
// larger held-out part at most, since memory may not hold the scores of all training links.
func (k *Links) Count(p Part) int {
	valid, test := k.data.Links.Held()
	n := [...]int{Train: int(min(int64(max(valid, test)), k.edges())), Valid: valid, Test: test}[p]
	if k.most > 0 {
		n = min(n, k.most)
	}
	return n
}

// Bytes returns the largest memory of an evaluation beside the rows of the layers: a row for
// each node that links and negatives name, and the memory for scoring.
func (k *Links) Bytes(int64) (n int64) {
	if k.evaluation.of.Way == All {
		return k.ranked.bytes(k)
	}
	n = k.scoring(k.evaluation.of)
	for _, t := range k.data.SeedTypes() {
		nodes, ends := int64(k.data.Types[t].Nodes), int64(0)
		for p := range k.held {
			ends = max(ends, int64(k.Count(Part(p)))*int64(2+2*k.evaluation.of.Of))
			if k.evaluation.of.Way == Given {
				ends = nodes
			}
		}
		n += 4*min(nodes, ends)*int64(k.model.Out) + nodes/4
	}
	return n
}

// scoring returns the bytes of a measurement with these negatives: the pairs that are drawn, the
// lists that are scored at a time, and the scores that the metric keeps.
func (k *Links) scoring(of Negatives) (n int64) {
	scores, lists := int64(0), int64(0)
	most, pair := k.scoredAtOnce()
	for p, h := range k.held {
		links := int64(k.Count(Part(p)))
		negatives := min(k.negativesOf(Part(p), of), 1<<50) // any more would overflow below
		kept := links
		if !k.byRank() {
			kept += negatives
		}
		scores = max(scores, kept)
		each := int64(0) // pairs of a link, which are scored together
		if of.Way == InPairs || of.Way == Given && h.Part.PoolSrc != nil {
			n += 8 * (negatives + 2*int64(h.Len()))
		} else if links > 0 {
			each = negatives / links
		}
		lists = max(lists, pair*min(links+negatives, int64(most))+k.listedBytes()*each)
	}
	if len(k.relations) > 1 { // ends and relations of all links of a part, while lists of them grow
		valid, test := k.data.Links.Held()
		n += 2 * 12 * int64(max(valid, test))
	}
	return n + lists + 2*4*scores // twice: while the list of them grows
}

// checkScoring refuses more negatives than there is memory to measure with.
func (k *Links) checkScoring() error {
	of := k.evaluation.of
	available := k.available()
	if of.Of == 0 || k.scoring(of) <= available {
		return nil
	}
	fits := sort.Search(of.Of, func(n int) bool { return k.scoring(Negatives{of.Way, n + 1}) > available })
	remedy := fmt.Sprintf("take %s:%d, or fewer links by {eval_edges}", of.Way, fits)
	if fits == 0 {
		remedy = "take fewer links by {eval_edges}"
	}
	return fmt.Errorf("%s: {eval_negatives} %s: scoring the links of a part among them takes %s, and there are %s; %s", k.data.Set.Path(),
		k.links.EvalNegatives, kernels.FormatBytes(k.scoring(of)), kernels.FormatBytes(available), remedy)
}

// available returns the most bytes that a step or an evaluation may take, as far as that is known.
func (k *Links) available() int64 {
	most := int64(math.MaxInt64)
	if k.options.MemoryBytes > 0 {
		most = k.options.MemoryBytes
	}
	if n, err := kernels.AvailableMemory(); err == nil {
		most = min(most, n)
	}
	return most
}

// negativesOf returns the number of negatives of all links of a part together.
func (k *Links) negativesOf(p Part, of Negatives) (n int64) {
	links := int64(k.Count(p))
	switch way := of.Way; {
	case way == Uniform:
		return links * int64(of.Of*len(corrupted(k.links.Corrupt)))
	case way == InPairs:
		return links * int64(of.Of)
	case k.held[p].Part.PoolSrc != nil:
		return k.held[p].Part.PoolSrc.Rows
	}
	for _, f := range []*store.File{k.held[p].Part.SrcNegatives, k.held[p].Part.DstNegatives} {
		if f != nil {
			n += links * f.Cols
		}
	}
	return n
}

// replaced are nodes in the place of a link's ends.
type replaced struct{ src, dst []uint32 }

// Part begins a measurement. It returns by type the nodes that the part's links and their negatives
// have for ends.
func (k *Links) Part(ctx context.Context, p Part) ([][]uint32, error) {
	if k.evaluation.of.Way == All {
		return k.everyNode(ctx, p)
	}
	e := &k.evaluation
	e.part, e.used = p, e.used[:0]
	switch {
	case p == Train:
		if err := k.readTrained(ctx, k.Count(p)); err != nil {
			return nil, err
		}
	case len(k.relations) > 1:
		e.ends, e.which = [2][]uint32{}, e.which[:0]
		for n, l := range k.data.Links.All {
			h := [...]store.HeldEdges{l.Valid, l.Test}[p]
			if h.Len() == 0 {
				continue
			}
			src, dst := h.Ends()
			e.ends = [2][]uint32{append(e.ends[0], src...), append(e.ends[1], dst...)}
			e.which = append(e.which, slices.Repeat([]uint32{uint32(n)}, len(src))...)
		}
		e.used = k.choose(e.used, p, k.Count(p), len(e.which))
	default:
		e.ends[0], e.ends[1] = k.held[p].Ends()
		e.used = k.choose(e.used, p, k.Count(p), len(e.ends[0]))
	}
	e.rows.free()
	e.rows = newMeasuredRows(k.data)
	r := k.relation
	for _, i := range e.used {
		e.rows.add(r.Src, e.ends[0][i])
		e.rows.add(r.Dst, e.ends[1][i])
		lists := k.replacing(i)
		for _, u := range lists.src {
			e.rows.add(r.Src, u)
		}
		for _, v := range lists.dst {
			e.rows.add(r.Dst, v)
		}
	}
	pairs, err := k.pairs(ctx)
	if err != nil {
		return nil, err
	}
	for _, pair := range pairs {
		e.rows.add(r.Src, pair[0])
		e.rows.add(r.Dst, pair[1])
	}
	return e.rows.nodes(), nil
}

// Candidates calls f with each measured link of a part and the nodes that its destination is
// compared with, so that other methods can be measured as a run is. It is for negatives Uniform,
// and lends instead until f returns.
func (k *Links) Candidates(ctx context.Context, p Part, f func(src, dst uint32, instead []uint32)) error {
	if k.evaluation.of.Way != Uniform {
		return fmt.Errorf("{eval_negatives} %s: the candidates of a link are those of uniform:N", k.links.EvalNegatives)
	}
	if _, err := k.Part(ctx, p); err != nil {
		return err
	}
	for _, i := range k.used {
		f(k.ends[0][i], k.ends[1][i], k.replacing(i).dst)
	}
	return nil
}

// choose appends n of all links of a part to dst, ascending: the same ones each time.
func (k *Links) choose(dst []int, p Part, n, all int) []int {
	if n == all {
		for i := range n {
			dst = append(dst, i)
		}
		return dst
	}
	order := newPermutation(uint64(all), sample.Hash(k.options.Seed, phaseEval, uint64(p), 1))
	for i := range n {
		dst = append(dst, int(order.at(uint64(i))))
	}
	slices.Sort(dst)
	return dst
}

// readTrained makes n of the training edges the links of the part.
func (k *Links) readTrained(ctx context.Context, n int) error {
	e, x := &k.evaluation, &k.evaluation.read
	x.edges = x.edges[:0]
	for _, i := range k.choose(nil, Train, n, int(k.edges())) {
		x.edges = append(x.edges, int64(i))
	}
	if w := k.options.Workers; w == nil {
		x.read(k.relations, k.begins, x.edges)
	} else {
		var err error
		if x.links, _, err = k.owned.read(ctx, w.Gather, x.edges); err != nil {
			return err
		}
		x.of = relationsOf(x.of[:0], k.begins, x.edges)
	}
	x.src, x.dst = x.src[:0], x.dst[:0]
	for i, l := range x.links {
		x.src, x.dst, e.used = append(x.src, l[0]), append(x.dst, l[1]), append(e.used, i)
	}
	e.ends, e.which = [2][]uint32{x.src, x.dst}, x.of
	return nil
}

// replacing returns the nodes that take the place of the ends of link i in its negatives.
func (k *Links) replacing(i int) (l replaced) {
	r := k.relation
	switch k.evaluation.of.Way {
	case Given:
		if h := k.held[k.part]; h.Part.PoolSrc == nil {
			return replaced{h.SrcNegatives(i), h.DstNegatives(i)}
		}
	case Uniform:
		for side, isDst := range corrupted(k.links.Corrupt) {
			key := sample.Hash(k.options.Seed, phaseEval, uint64(k.part), 2, uint64(i), uint64(side))
			t, list := r.Src, &l.src
			if isDst {
				t, list = r.Dst, &l.dst
			}
			for j := range k.evaluation.of.Of {
				*list = append(*list, below(key, j, k.data.Types[t].Nodes))
			}
		}
	}
	return l
}

// mostTries bounds the draws in a row that give no negative.
const mostTries = 10_000

// pairs returns the negatives that are pairs, drawn or given. Known links and pairs of a node with
// itself are drawn anew; if nearly all pairs are such, it is an error.
func (k *Links) pairs(ctx context.Context) ([][2]uint32, error) {
	e, r := &k.evaluation, k.relation
	switch {
	case e.of.Way == Given && k.held[k.part].Part.PoolSrc != nil:
		src, dst := k.held[k.part].Pool()
		e.scratch = e.scratch[:0]
		for i := range src {
			e.scratch = append(e.scratch, [2]uint32{src[i], dst[i]})
		}
		return e.scratch, nil
	case e.of.Way != InPairs:
		return nil, nil
	case e.drawn[k.part] != nil:
		return e.drawn[k.part], nil
	}
	if k.known == nil {
		k.known = k.heldLinks(0)
	}
	sources, targets := k.data.Types[r.Src].Nodes, k.data.Types[r.Dst].Nodes
	key := sample.Hash(k.options.Seed, phaseEval, uint64(k.part), 3)
	pairs, tries := make([][2]uint32, 0, len(e.used)*e.of.Of), 0
	for i := 0; len(pairs) < cap(pairs); {
		some := make([]candidatePair, min((cap(pairs)-len(pairs))*9/8+64, 1<<18))
		for n := range some {
			some[n] = candidatePair{0, below(key, 2*(i+n), sources), below(key, 2*(i+n)+1, targets)}
		}
		i += len(some)
		linked, err := k.owned.linked(ctx, k.gather(), some)
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return nil, err
		}
		for n := 0; n < len(some) && len(pairs) < cap(pairs); n++ {
			u, v := some[n].src, some[n].dst
			if !linked[n] && !k.heldOut(u, v) && (r.Src != r.Dst || u != v) {
				pairs, tries = append(pairs, [2]uint32{u, v}), 0
			} else if tries++; tries > mostTries {
				return nil, fmt.Errorf("%s: {eval_negatives} %s: %d pairs of nodes that were drawn in a row are links of %s, "+
					"so nearly all pairs are; take uniform:%d, which looks none up",
					k.data.Set.Path(), k.links.EvalNegatives, tries, r.Relation.Key(), e.of.Of)
			}
		}
	}
	e.drawn[k.part] = pairs
	return pairs, nil
}

// heldLinks returns the held-out links of one of the relations, by source and destination. The list
// is not nil.
func (k *Links) heldLinks(of int) []uint64 {
	l := k.data.Links.All[of]
	known := make([]uint64, 0, 2*(l.Valid.Len()+l.Test.Len())) // twice where the relation is symmetric
	for _, h := range []store.HeldEdges{l.Valid, l.Test} {
		if h.Len() == 0 {
			continue
		}
		src, dst := h.Ends()
		for i, u := range src {
			known = append(known, uint64(u)<<32|uint64(dst[i]))
			if k.relations[of].Relation.Symmetric {
				known = append(known, uint64(dst[i])<<32|uint64(u))
			}
		}
	}
	slices.Sort(known)
	return known
}

// heldOut reports whether a link from u to v is held out.
func (k *Links) heldOut(u, v uint32) bool {
	_, held := slices.BinarySearch(k.known, uint64(u)<<32|uint64(v))
	return held
}

// gather returns the exchange for evaluations, or nil where this worker has all edges.
func (k *Links) gather() Gather {
	if k.options.Workers == nil {
		return nil
	}
	return k.options.Workers.Gather
}

// Measure keeps the output rows of nodes of type t.
func (k *Links) Measure(f *step.Feed, t int, out kernels.Tensor, nodes []uint32) error {
	k.rows.keep(k.tape.Backend(), f, t, out, nodes)
	return nil
}

const (
	// scoredBytes bounds the memory of the pairs that are scored at once. It is a constant, because
	// what a run measures must not depend on its budget.
	scoredBytes = 32 << 20
	mostPairs   = 1 << 18
)

// scoredAtOnce returns how many pairs are scored at once, and the bytes that each takes if no two
// share a source: its place in a list, and the decoder's rows of its source. The last link may add
// more pairs of its own.
func (k *Links) scoredAtOnce() (pairs int, each int64) {
	rows := map[model.Decoder]int{
		model.Dot: 1, model.DistMult: 3, model.ComplEx: 8, model.TransE: 4, model.RotatE: 9, model.PairMLP: 1,
	}[k.decoder]
	each = k.listedBytes() + int64(rows)*k.scoredRow()
	return int(min(mostPairs, max(scoredBytes/each, 1))), each
}

// Value returns the metric of the part that Part began, after Measure has taken its rows.
func (k *Links) Value() (v float64, err error) {
	defer k.rows.free()
	defer k.evaluation.metric.Reset()
	k.within = nil
	err = store.Guard(func() (err error) {
		if err := k.rows.check(k.data); err != nil {
			return err
		}
		if k.evaluation.of.Way == All {
			v, err = k.rank()
			return err
		}
		k.answers = sameness{} // an evaluation that was cut short may have left some
		k.scoreLinks()
		k.scorePairs()
		k.constant = k.answers.take(nil, byScores)
		v, err = k.metric.Value()
		if ranks, ok := k.metric.(within); ok && err == nil {
			k.within = rankedWithin(ranks)
		}
		return err
	})
	return v, err
}

// within is a metric of ranks.
type within interface{ Within(k int) float64 }

// RankedWithin returns the shares of links that the last Value ranked among the first 1, 3 and 10
// of their candidates, by these numbers. It returns nil if the metric is none of ranks.
func (k *Links) RankedWithin() map[string]float64 { return k.within }

func rankedWithin(ranks within) map[string]float64 {
	shares := map[string]float64{}
	for _, first := range []int{1, 3, 10} {
		shares[strconv.Itoa(first)] = ranks.Within(first)
	}
	return shares
}

// scoreLinks scores the links of the part, and the nodes that take the place of their ends.
func (k *Links) scoreLinks() {
	r := k.relation
	from, to := &k.rows[r.Src], &k.rows[r.Dst]
	src, dst := k.ends[0], k.ends[1]
	most, _ := k.scoredAtOnce()
	for all := k.used; len(all) > 0; {
		k.lists = slices.Grow(k.lists[:0], 4)
		positive, byDst := k.list(r.Src, r.Dst, nil), k.list(r.Src, r.Dst, nil)
		bySrc, back := k.list(r.Dst, r.Src, nil), k.list(r.Dst, r.Src, nil)
		var ends, of []uint32 // rows of sources, and relations
		for pairs := 0; len(all) > 0 && pairs < most; all = all[1:] {
			i := all[0]
			ends = append(ends, from.number(src[i]))
			if len(k.which) > 0 {
				of = append(of, k.which[i])
			}
			positive.add(to.number(dst[i]))
			positive.end()
			instead := k.replacing(i)
			for _, v := range instead.dst {
				byDst.add(to.number(v))
			}
			byDst.end()
			for _, u := range instead.src {
				bySrc.add(from.number(u))
			}
			bySrc.end()
			pairs += 1 + len(instead.src) + len(instead.dst)
		}
		positive.own, byDst.own, bySrc.own = ends, ends, positive.nodes
		positive.of, _ = k.decoded(of, len(ends), false)
		bySrc.of, bySrc.reversed = k.decoded(of, len(ends), true)
		byDst.of = positive.of
		back.own, back.of, back.reversed = bySrc.own, bySrc.of, bySrc.reversed
		if k.links.Reciprocal && len(bySrc.nodes) > 0 {
			for _, u := range ends { // the same links, that go back
				back.add(u)
				back.end()
			}
		} else {
			k.lists = k.lists[:3]
		}
		scores := k.scoreLists()
		for _, list := range scores {
			k.answers.add(list, 1, byScores)
		}
		if len(scores) < 4 {
			k.addScores(scores[0], scores[1:]...)
			continue
		}
		if len(scores[1]) > 0 {
			k.metric.Add(scores[0], scores[1])
		}
		k.metric.Add(scores[3], scores[2])
	}
}

// addScores adds the scores of positives and of lists of their negatives to the metric.
func (k *Links) addScores(positive []float32, negatives ...[]float32) {
	none := true
	for _, negative := range negatives {
		if len(negative) > 0 {
			k.metric.Add(positive, negative)
			none = false
		}
	}
	if none { // the negatives are pairs
		k.metric.Add(positive, nil)
	}
}

// scorePairs scores the negatives that are pairs.
func (k *Links) scorePairs() {
	r := k.relation
	pairs, _ := k.pairs(context.Background()) // Part has drawn them
	most, _ := k.scoredAtOnce()
	for len(pairs) > 0 {
		n := min(len(pairs), most)
		var ends []uint32
		k.lists = k.lists[:0]
		l := k.list(r.Src, r.Dst, nil)
		for _, p := range pairs[:n] {
			ends = append(ends, k.rows[r.Src].number(p[0]))
			l.add(k.rows[r.Dst].number(p[1]))
			l.end()
		}
		l.own, pairs = ends, pairs[n:]
		l.of, _ = k.decoded(nil, n, false)
		scores := k.scoreLists()[0]
		k.answers.add(scores, 1, byScores)
		k.metric.Add(nil, scores)
	}
}

// scoreLists returns the scores of k.lists, whose nodes are numbered by measured rows.
func (k *Links) scoreLists() (all [][]float32) {
	pairs, _, _ := k.upload(k.feed, k.lists, func(t int) int { return k.rows[t].rows.Rows }, 0)
	k.tape.Reset(false)
	for i, p := range pairs {
		l := &k.lists[i]
		s := k.model.Score(k.tape, k.tape.Leaf(k.rows[l.from].rows), k.tape.Leaf(k.rows[l.to].rows), p)
		all = append(all, slices.Clone(k.feed.Download(s.Value)))
	}
	return all
}
