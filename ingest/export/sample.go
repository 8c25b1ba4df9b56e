package export

import (
	"errors"
	"math/rand/v2"

	"github.com/gnnstore/gnnstore/store"
)

var errNoNode = errors.New("an id of no node; run gnnstore verify")

// burning is the forward burning probability that Leskovec and Faloutsos recommend.
const burning = 0.7

// node is any node of a dataset.
type node struct {
	typ uint32 // index of types
	id  store.NodeID
}

// fire burns a sample: a node that it has reached has a row that is not none.
type fire struct {
	e     *exporter
	rng   *rand.Rand
	into  [][]source // by node type: the relations that lead to it
	queue []node
	left  int64
}

// source is a relation seen from its destination.
type source struct {
	graph *store.Graph
	typ   uint32 // index of the type of its sources
}

// burn marks the nodes of a sample.
func (e *exporter) burn(nodes int64) error {
	f := &fire{e: e, rng: rand.New(rand.NewPCG(e.Seed, 0x6669_7265)), into: make([][]source, len(e.types)), left: nodes}
	index := map[string]uint32{}
	for i, n := range e.types {
		index[n.typ.Name] = uint32(i)
	}
	for i, r := range e.m.Relations {
		f.into[index[r.Dst]] = append(f.into[index[r.Dst]], source{e.ds.Graph(i), index[r.Src]})
	}
	if len(e.m.Splits) > 0 {
		// In an order of its own: the ids of a split ascend.
		train := e.ds.Split(0).Train
		typ := index[e.m.Splits[0].NodeType]
		for i, step := 0, f.stride(len(train)); i < len(train) && f.left > 0; i++ {
			if err := f.start(node{typ, train[uint64(i)*step%uint64(len(train))]}); err != nil {
				return err
			}
		}
	}
	for f.left > 0 {
		v, ok := f.anywhere()
		if !ok {
			break
		}
		if err := f.start(v); err != nil {
			return err
		}
	}
	return nil
}

// stride visits all of n things in an order that is not theirs: it has no divisor with n in common.
func (f *fire) stride(n int) uint64 {
	if n < 2 {
		return 1
	}
	for {
		s := 1 + f.rng.Uint64N(uint64(n))
		a, b := s, uint64(n)
		for b != 0 {
			a, b = b, a%b
		}
		if a == 1 {
			return s
		}
	}
}

// anywhere is a node that does not burn yet.
func (f *fire) anywhere() (node, bool) {
	total := f.e.nodes()
	at := f.rng.Int64N(total)
	for try := int64(0); try < total; try++ {
		if try > 0 && try < 64 {
			at = f.rng.Int64N(total)
		} else if try >= 64 { // most nodes burn: try one after the other
			at = (at + 1) % total
		}
		i := at
		for typ, n := range f.e.types {
			if i < n.typ.Count {
				if n.row[i] == none {
					return node{uint32(typ), store.NodeID(i)}, true
				}
				break
			}
			i -= n.typ.Count
		}
	}
	return node{}, false
}

// light makes a node burn. It reports false if the node burns already or the sample is full.
func (f *fire) light(v node) bool {
	row := f.e.types[v.typ].row
	if int64(v.id) >= int64(len(row)) || row[v.id] != none || f.left == 0 {
		return false
	}
	row[v.id] = 0
	f.left--
	f.queue = append(f.queue, v)
	return true
}

// start burns from a node until the fire dies.
func (f *fire) start(v node) error {
	f.queue = f.queue[:0]
	f.light(v)
	for i := 0; i < len(f.queue) && f.left > 0; i++ {
		if i%4096 == 0 {
			if err := f.e.ctx.Err(); err != nil {
				return err
			}
		}
		for _, s := range f.into[f.queue[i].typ] {
			f.spread(s, f.queue[i].id)
		}
	}
	return nil
}

// spread lights a geometric number of a node's neighbours, with mean p/(1-p). A neighbour that
// burns already is drawn in vain, and each may be drawn a few times.
func (f *fire) spread(s source, v store.NodeID) {
	neighbors := s.graph.Neighbors(v)
	if len(neighbors) == 0 {
		return
	}
	want := 0
	for f.rng.Float64() < burning {
		want++
	}
	for try := 0; try < 4*want && want > 0; try++ {
		u := neighbors[f.rng.IntN(len(neighbors))]
		if int64(u) >= int64(len(f.e.types[s.typ].row)) {
			panic(s.graph.CorruptNeighbor(v, u))
		}
		if f.light(node{s.typ, u}) {
			want--
		}
	}
}
