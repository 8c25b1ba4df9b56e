package task

import (
	"context"
	"encoding/binary"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/metric"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/sample"
	"github.com/gnnstore/gnnstore/train/tape"
)

// ranked ranks each held-out link among all nodes in the place of an end, for each end that Corrupt
// names. Nodes that make another known link, trained on or held out, are no candidates (the
// filtered setting of Bordes et al. 2013).
type ranked struct {
	ranks  *metric.Ranks
	parts  [2][]triple
	others [2]map[uint64][]uint32 // by (relation, source) the known destinations, and by (relation, destination) the sources: of parts
	counts []count
	every  denseLists // a list of all nodes for each link
}

// triple is a link. of is the index of its relation among the learnt relations.
type triple struct{ of, src, dst uint32 }

// ends returns the end that stays, and the end that other nodes replace.
func (l triple) ends(isDst bool) (stays, replaced uint32) {
	if isDst {
		return l.src, l.dst
	}
	return l.dst, l.src
}

// count counts the candidates that score higher than a positive, or the same.
type count struct {
	higher, same int
	nan          bool
}

// open checks that the metric is one of ranks.
func (e *ranked) open(k *Links) (err error) {
	if e.ranks, err = metric.NewRanks(k.kind); err != nil {
		return fmt.Errorf("%s: {eval_negatives} all: %w", k.data.Set.Path(), err)
	}
	k.most = k.links.EvalEdges
	return nil
}

// bytes returns the bytes that ranking takes: a row a node, scores and a copy of them, and the
// known links.
func (e *ranked) bytes(k *Links) (n int64) {
	most := 0
	for _, t := range k.data.SeedTypes() {
		nodes := k.data.Types[t].Nodes
		n += 4*int64(nodes)*int64(k.model.Out) + int64(nodes)/4
		most = max(most, nodes)
	}
	valid, test := k.data.Links.Held()
	// each node replaces each end of each link of a part
	scores := min(mostScores, 2*int64(max(valid, test))*int64(most))
	if k.model.Decoder.Distance() {
		n += 2 * 4 * max(int64(most), scores) // lists that join links with nodes, here and on the backend
	}
	return n + 2*4*max(int64(most), scores) + 16*(k.edges()+int64(valid+test)*12)
}

// everyNode begins a measurement of a part: all nodes have rows.
func (k *Links) everyNode(ctx context.Context, p Part) ([][]uint32, error) {
	e := &k.evaluation
	e.part = p
	e.rows.free()
	if err := k.learnTriples(ctx); err != nil {
		return nil, err
	}
	if len(k.parts[p]) == 0 {
		return make([][]uint32, len(k.data.Types)), nil
	}
	e.rows = newMeasuredRows(k.data)
	for _, t := range k.data.SeedTypes() {
		for v := range uint32(k.data.Types[t].Nodes) {
			e.rows.add(t, v)
		}
	}
	return e.rows.nodes(), nil
}

// learnTriples reads the links of both parts, and the known links that share an end and the
// relation with a measured link.
func (k *Links) learnTriples(ctx context.Context) error {
	if k.others[0] != nil {
		return nil
	}
	for i := range k.others {
		k.others[i] = map[uint64][]uint32{}
	}
	all := [2][]triple{}
	for n, l := range k.data.Links.All {
		for p, h := range []store.HeldEdges{l.Valid, l.Test} {
			if h.Len() == 0 {
				continue
			}
			src, dst := h.Ends()
			for i := range src {
				all[p] = append(all[p], triple{uint32(n), src[i], dst[i]})
			}
		}
	}
	for p, links := range all {
		k.parts[p] = links
		if n := uint64(len(links)); k.most > 0 && n > uint64(k.most) {
			k.parts[p] = nil
			order := newPermutation(n, sample.Hash(k.options.Seed, phaseEval, uint64(p), 1))
			for i := range k.most {
				k.parts[p] = append(k.parts[p], links[order.at(uint64(i))])
			}
		}
		for _, l := range k.parts[p] {
			k.others[0][key(l.of, l.src)] = nil
			k.others[1][key(l.of, l.dst)] = nil
		}
	}
	add := func(l triple) {
		for i, isDst := range []bool{true, false} {
			stays, other := l.ends(isDst)
			if list, ok := k.others[i][key(l.of, stays)]; ok {
				k.others[i][key(l.of, stays)] = append(list, other)
			}
		}
	}
	if err := k.eachTrained(ctx, add); err != nil {
		k.others = [2]map[uint64][]uint32{}
		return err
	}
	for _, links := range all {
		for _, l := range links {
			add(l)
			if k.relations[l.of].Relation.Symmetric {
				add(triple{l.of, l.dst, l.src})
			}
		}
	}
	for _, known := range k.others {
		for at, list := range known {
			slices.Sort(list)
			known[at] = slices.Compact(list)
		}
	}
	return nil
}

// eachTrained calls add with each link that is trained on, of all workers; where workers own lists,
// only with links that share an end and the relation with a measured one.
func (k *Links) eachTrained(ctx context.Context, add func(l triple)) error {
	var own []byte
	for n, r := range k.relations {
		for v, list := range r.OwnLists {
			for _, u := range list {
				l := triple{uint32(n), u, v}
				if k.options.Workers == nil {
					add(l)
					continue
				}
				_, asSource := k.others[0][key(l.of, u)]
				_, asTarget := k.others[1][key(l.of, v)]
				if asSource || asTarget {
					for _, x := range []uint32{l.of, l.src, l.dst} {
						own = binary.LittleEndian.AppendUint32(own, x)
					}
				}
			}
		}
	}
	if k.options.Workers == nil {
		return nil
	}
	came, err := k.options.Workers.Gather(ctx, own)
	for _, b := range came {
		for ; len(b) >= 12; b = b[12:] {
			u32 := binary.LittleEndian.Uint32
			add(triple{u32(b), u32(b[4:]), u32(b[8:])})
		}
	}
	return err
}

func key(of, node uint32) uint64 { return uint64(of)<<32 | uint64(node) }

// mostScores bounds the scores at once, but one link always has the scores of all nodes.
const mostScores = 1 << 22

// rank returns the metric of the part that everyNode began.
func (k *Links) rank() (float64, error) {
	defer k.ranks.Reset()
	for _, isDst := range corrupted(k.links.Corrupt) {
		from, to := k.relation.Dst, k.relation.Src
		if isDst {
			from, to = k.relation.Src, k.relation.Dst
		}
		rows := k.rows[to].rows
		chunk := max(1, mostScores/max(1, rows.Rows))
		for links := range slices.Chunk(k.parts[k.part], chunk) {
			k.rankChunk(links, isDst, k.scoreAll(links, isDst, from, to), rows.Rows)
		}
	}
	v, err := k.ranks.Value()
	if err == nil {
		k.within = rankedWithin(k.ranks)
	}
	return v, err
}

// scoreAll returns the scores of all nodes of type to in the place of an end of links, a row a
// link.
func (k *Links) scoreAll(links []triple, isDst bool, from, to int) []float32 {
	var l lists
	for _, link := range links {
		stays, _ := link.ends(isDst)
		l.own = append(l.own, stays)
		if len(k.relations) > 1 {
			l.of = append(l.of, link.of)
		}
	}
	l.of, l.reversed = k.decoded(l.of, len(links), !isDst)
	for i := len(k.tensors.count); i <= len(links); i++ {
		k.tensors.count = append(k.tensors.count, uint32(i))
	}
	all := [][]uint32{l.own, l.of, k.tensors.count[:len(links)+1]}
	d := k.model.Distance()
	if d != nil {
		all = append(all, k.every.grow(len(links), k.rows[to].rows.Rows)...)
	}
	ints := k.feed.Ints(all...)
	t := k.tape
	t.Reset(false)
	p := model.Pairs{Nodes: ints[0], Relations: ints[1], Count: ints[2], Reversed: l.reversed}
	q, others := k.model.Query(t, t.Leaf(k.rows[from].rows), p), t.Leaf(k.rows[to].rows)
	if d != nil {
		every := kernels.Adjacency{Start: ints[3], End: ints[4], Nbr: ints[5]}
		return k.feed.Download(t.EdgeDistance(q, others, *d, every).Value)
	}
	return k.feed.Download(t.Affine(nil, tape.Term{X: q, W: others}).Value)
}

// rankChunk adds the ranks of links, whose scores are a row each.
func (k *Links) rankChunk(links []triple, isDst bool, scores []float32, nodes int) {
	k.counts = append(k.counts[:0], make([]count, len(links))...)
	side := 1
	if isDst {
		side = 0
	}
	var others sync.WaitGroup
	workers := min(runtime.GOMAXPROCS(0), len(links))
	for w := range workers {
		others.Go(func() {
			for i := w; i < len(links); i += workers {
				stays, positive := links[i].ends(isDst)
				k.counts[i] = among(scores[i*nodes:(i+1)*nodes], positive, k.others[side][key(links[i].of, stays)])
			}
		})
	}
	others.Wait()
	for _, c := range k.counts {
		if c.nan {
			k.ranks.AddNaN()
		} else {
			k.ranks.Add(c.higher, c.same)
		}
	}
}

// among counts the candidates of a positive: all nodes except the known ones, which include the
// positive.
func among(scores []float32, positive uint32, known []uint32) (c count) {
	own := scores[positive]
	below := 0
	for _, x := range scores {
		switch {
		case x < own:
			below++
		case x > own:
			c.higher++
		case x == own:
			c.same++
		}
	}
	c.nan = below+c.higher+c.same < len(scores)
	for _, v := range known {
		switch x := scores[v]; {
		case x > own:
			c.higher--
		case x == own:
			c.same--
		}
	}
	return c
}
