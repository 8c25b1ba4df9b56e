package sample

import (
	"cmp"
	"math"
	"slices"
)

// drawer is what one goroutine makes blocks with: the rules, and scratch. A block is made in two goes: fill draws its
// neighbours from lists, and finish numbers them. In between, lists that were not at hand may be read and drawn from.
type drawer struct {
	nodes int
	Config

	// near has list heads of at most ahead nodes read early.
	near func(near *[ahead]list, nodes []uint32)
	// degree is the number of v's in-neighbours, and how many of them are v itself.
	degree func(v uint32) (degree, selves int)

	index index
	last  finished
	chooser
	star    star
	lists   [ahead]list
	touched uint32 // a sum of what was read early, so that reading it is not left out

	// For weights: of each destination, how many neighbours stand behind a drawn one, and of each source, 1/√d̂.
	factor, norm []float64
}

// finished is the hop of a batch whose sources the index holds.
type finished struct {
	*Batch
	hop int
}

// ahead is how many list heads are read before the first of them is used: these reads are cache misses that do not wait for each
// other, and a processor has ten or more under way at a time. With 16, batches of 10 million nodes took a tenth longer, with 8 a
// fifth.
const ahead = 64

func newDrawer(nodes int, c Config) drawer {
	if err := c.Validate(); err != nil {
		panic("sample: " + err.Error())
	}
	c.Kind = cmp.Or(c.Kind, NS)
	if c.Smoothed {
		makeKnots()
	}
	return drawer{nodes: nodes, Config: c, index: index{nodes: nodes}}
}

// begin makes b a batch of seeds without blocks.
func (d *drawer) begin(b *Batch, seeds []uint32) {
	b.Seeds = append(b.Seeds[:0], seeds...)
	if len(b.Blocks) != len(d.Fanouts) {
		b.Blocks = make([]Block, len(d.Fanouts))
	}
}

// block is what hop fills of b, and the destinations that it is for.
func (d *drawer) block(b *Batch, hop int) (block *Block, dst []uint32) {
	layer := len(d.Fanouts) - hop
	if hop == 0 {
		return &b.Blocks[layer-1], b.Seeds
	}
	return &b.Blocks[layer-1], b.Blocks[layer].Src
}

// start makes b a block of dst without neighbours.
func (b *Block) start(dst []uint32) {
	b.Dst = len(dst)
	b.Src = append(b.Src[:0], dst...)
	b.Start, b.End = resize(b.Start, len(dst)), resize(b.End, len(dst))
	b.Nbr, b.Weight, b.places = b.Nbr[:0], b.Weight[:0], b.places[:0]
}

// make gives destination i of b places for n neighbours, and where SelfLoops wants one place more, leaves it free behind them.
func (d *drawer) make(b *Block, i, n int) {
	start, free := len(b.Nbr), 0
	if d.SelfLoops {
		free = 1
	}
	if uint64(start)+uint64(n+free) > math.MaxUint32 {
		panic("sample: more than 4,294,967,295 edges in a block; use a smaller batch or fanout")
	}
	b.Nbr = slices.Grow(b.Nbr, n+free)[:start+n+free]
	if d.weighs() {
		b.Weight = slices.Grow(b.Weight, n+free)[:start+n+free]
	}
	b.Start[i], b.End[i] = uint32(start), uint32(start+n)
}

// fill gives each destination its places in Nbr, and draws neighbours, as ids, from the lists that are at hand. It counts lists
// at hand that were drawn from, and others.
func (d *drawer) fill(b *Block, dst []uint32, draws *draws) (hits, misses int, err error) {
	b.start(dst)
	for i, v := range dst {
		if i%ahead == 0 {
			d.read(dst[i:min(i+ahead, len(dst))])
		}
		l := &d.lists[i%ahead]
		n := d.room(l.degree, draws.fanout)
		d.make(b, i, n)
		switch {
		case n == 0:
		case l.ids == nil:
			misses++
		default:
			hits++
			if n, err = d.choose(&d.Config, draws, v, l, b.drawn(i), b.values(i)); err != nil {
				return 0, 0, err
			}
			b.End[i] = b.Start[i] + uint32(n)
			if !d.SelfLoops { // nothing is left free
				b.Nbr = b.Nbr[:b.End[i]]
				b.Weight = b.Weight[:min(len(b.Weight), int(b.End[i]))]
			}
		}
	}
	return hits, misses, nil
}

// drawn and values are the places of destination i in Nbr and in Weight, if that is in use.
func (b *Block) drawn(i int) []uint32 { return b.Nbr[b.Start[i]:b.End[i]] }

func (b *Block) values(i int) []float32 {
	if len(b.Weight) == 0 {
		return nil
	}
	return b.Weight[b.Start[i]:b.End[i]]
}

// read sets lists to those of at most ahead nodes, and reads both ends of each.
func (d *drawer) read(nodes []uint32) {
	d.near(&d.lists, nodes)
	for i := range nodes {
		if ids := d.lists[i].ids; len(ids) > 0 {
			d.touched += ids[0] + ids[len(ids)-1]
		}
	}
}

// appendLists appends the lists of nodes, of those at hand.
func (d *drawer) appendLists(lists []list, nodes []uint32) []list {
	for lo := 0; lo < len(nodes); lo += ahead {
		some := nodes[lo:min(lo+ahead, len(nodes))]
		d.read(some)
		lists = append(lists, d.lists[:len(some)]...)
	}
	return lists
}

// finish turns ids in Nbr into positions in Src, and adds what Options want.
func (d *drawer) finish(b *Batch, hop int) error {
	block, dst := d.block(b, hop)
	switch {
	case d.SelfLoops:
		block.loop(dst)
	case d.varies():
		block.squeeze()
	}
	if hop == 0 || d.last != (finished{b, hop - 1}) { // else the index holds dst, in this order
		d.index.begin(dst)
	}
	d.last = finished{b, hop}
	var bad int
	if block.Src, bad = d.index.number(block.Nbr, block.Src); bad >= 0 {
		i, _ := slices.BinarySearch(block.End, uint32(bad)+1)
		return &NeighborError{dst[i], block.Nbr[bad], d.nodes}
	}
	switch {
	case d.GCN:
		d.normalize(block, d.Fanouts[hop])
	case d.weighs() && !d.SelfLoops:
		block.addUp()
	}
	block.RevStart, block.RevDst, block.RevEdge = block.RevStart[:0], block.RevDst[:0], block.RevEdge[:0]
	if hop < len(d.Fanouts)-1 || d.RevInput {
		block.reverse(d.RevEdges)
	}
	return nil
}
