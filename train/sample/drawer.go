package sample

import (
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
	picker
	lists [ahead]list

	// For weights: of each destination, how many neighbours stand behind a drawn one, and of each source, 1/√d̂.
	factor, norm []float64
}

// list is a node's in-neighbours.
type list struct {
	ids    []uint32 // nil where they are not at hand
	degree int
}

// ahead is how many list heads, and then how many places in the index, are read before the first of them is used: these
// reads are cache misses that do not wait for each other, and a processor has ten or more under way at a time.
const ahead = 16

func newDrawer(nodes int, c Config) drawer {
	if err := c.Validate(); err != nil {
		panic("sample: " + err.Error())
	}
	if c.Kind != "" && c.Kind != NS || c.Smoothed || c.Weighted || c.LayerDependency {
		panic("sample: only independent neighbour sampling so far")
	}
	return drawer{nodes: nodes, Config: c}
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

// layerKey is what the draws of a hop of a batch have in common; listKey is that of the draws from v's list.
func (d *drawer) layerKey(z Z, hop int) uint64 { return Hash(z.First, uint64(len(d.Fanouts)-hop)) }

func listKey(layerKey uint64, v uint32) uint64 { return mix(layerKey ^ mix(uint64(v)+golden)) }

// drawn is how many neighbours are drawn from a list of degree with fanout k.
func drawn(degree, k int) int {
	if k == All {
		return degree
	}
	return min(k, degree)
}

// fill gives each destination its places in Nbr, and draws neighbours, as ids, from the lists that are at hand. Where
// SelfLoops wants one place more, it is left free behind End. It counts lists at hand that were drawn from, and others.
func (d *drawer) fill(b *Batch, z Z, hop int) (hits, misses int) {
	block, dst := d.block(b, hop)
	k, key := d.Fanouts[hop], d.layerKey(z, hop)
	block.Dst = len(dst)
	block.Src = append(block.Src[:0], dst...)
	block.Start, block.End = resize(block.Start, len(dst)), resize(block.End, len(dst))
	nbr, free := block.Nbr[:0], 0
	if d.SelfLoops {
		free = 1
	}
	for i, v := range dst {
		if i%ahead == 0 {
			d.read(dst[i:min(i+ahead, len(dst))])
		}
		l := &d.lists[i%ahead]
		start, n := len(nbr), drawn(l.degree, k)
		if uint64(start)+uint64(n+free) > math.MaxUint32 {
			panic("sample: more than 4,294,967,295 edges in a block; use a smaller batch or fanout")
		}
		nbr = slices.Grow(nbr, n+free)[:start+n+free]
		block.Start[i], block.End[i] = uint32(start), uint32(start+n)
		switch {
		case n == 0:
		case l.ids == nil:
			misses++
		default:
			hits++
			d.choose(nbr[start:start+n], l.ids, listKey(key, v))
		}
	}
	block.Nbr = nbr
	return hits, misses
}

// read sets lists to those of at most ahead nodes, and reads both ends of each.
func (d *drawer) read(nodes []uint32) {
	d.near(&d.lists, nodes)
	for i := range nodes {
		if ids := d.lists[i].ids; len(ids) > 0 {
			d.index.touched += ids[0] + ids[len(ids)-1]
		}
	}
}

// finish turns ids in Nbr into positions in Src, and adds what Options want.
func (d *drawer) finish(b *Batch, hop int) error {
	block, dst := d.block(b, hop)
	if d.SelfLoops {
		block.loop(dst)
	}
	d.index.reset(2 * len(dst))
	for _, v := range dst {
		d.index.add(v)
	}
	for e, u := range block.Nbr {
		if e%ahead == 0 {
			d.index.touch(block.Nbr[e:min(e+ahead, len(block.Nbr))])
		}
		if int64(u) >= int64(d.nodes) {
			i, _ := slices.BinarySearch(block.End, uint32(e)+1)
			return &NeighborError{dst[i], u, d.nodes}
		}
		pos, isNew := d.index.add(u)
		if isNew {
			block.Src = append(block.Src, u)
		}
		block.Nbr[e] = pos
	}
	block.Weight = block.Weight[:0]
	if d.GCN {
		d.weigh(block, d.Fanouts[hop])
	}
	block.RevStart, block.RevDst, block.RevEdge = block.RevStart[:0], block.RevDst[:0], block.RevEdge[:0]
	if hop < len(d.Fanouts)-1 || d.RevInput {
		block.reverse(d.RevEdges)
	}
	return nil
}

// loop drops what each of dst drew of itself, puts it at the end of its list, into the place that fill left, and closes
// the gaps. Nbr holds ids.
func (b *Block) loop(dst []uint32) {
	n := uint32(0)
	for i, v := range dst {
		start := n
		for _, u := range b.Nbr[b.Start[i]:b.End[i]] {
			if u != v {
				b.Nbr[n] = u
				n++
			}
		}
		b.Nbr[n] = v
		n++
		b.Start[i], b.End[i] = start, n
	}
	b.Nbr = b.Nbr[:n]
}

// weigh fills b.Weight as Options.GCN says, for fanout k.
func (d *drawer) weigh(b *Block, k int) {
	d.norm, d.factor = resize(d.norm, len(b.Src)), resize(d.factor, b.Dst)
	for p, u := range b.Src {
		degree, selves := d.degree(u)
		d.norm[p] = 1 / math.Sqrt(float64(degree-selves+1))
		if p < b.Dst {
			d.factor[p] = float64(degree) / float64(max(drawn(degree, k), 1))
		}
	}
	b.Weight = resize(b.Weight, len(b.Nbr))
	for i := range b.Dst {
		self, norm := b.End[i]-1, d.norm[i]
		for e := b.Start[i]; e < self; e++ {
			b.Weight[e] = float32(d.factor[i] * norm * d.norm[b.Nbr[e]])
		}
		b.Weight[self] = float32(norm * norm)
	}
}

// picker chooses from lists.
type picker struct {
	picked index // of Floyd's algorithm, when many are chosen
	places []uint32
}

// choose fills out with as many of list. If those are not all, they are the ones that key says, each set equally likely.
func (p *picker) choose(out, list []uint32, key uint64) {
	if len(out) == len(list) {
		copy(out, list)
		return
	}
	p.floyd(out, len(list), key)
	for n, place := range out {
		out[n] = list[place]
	}
}

// choosePart is choose for a list of degree neighbours of which only part is there, from neighbour from on: the other
// elements of out are left alone, for other parts.
func (p *picker) choosePart(out []uint32, degree, from int, part []uint32, key uint64) {
	if len(out) == degree {
		copy(out[from:], part)
		return
	}
	p.places = resize(p.places, len(out))
	p.floyd(p.places, degree, key)
	for n, place := range p.places {
		if i := int(place) - from; i >= 0 && i < len(part) {
			out[n] = part[i]
		}
	}
}

// floyd fills out with different places below d, more than out has, by Floyd's algorithm (Bentley and Floyd 1987): as many
// draws, and every set of places is equally likely.
func (p *picker) floyd(out []uint32, d int, key uint64) {
	k := len(out)
	if k > 32 { // below, comparing with all earlier picks beats a table
		p.picked.reset(k)
		for n := range out {
			j := d - k + n
			t := uint32(draw(key, n, j+1))
			if _, isNew := p.picked.add(t); !isNew {
				t = uint32(j)
				p.picked.add(t)
			}
			out[n] = t
		}
		return
	}
	for n := range out {
		j := d - k + n
		t := uint32(draw(key, n, j+1))
		for _, earlier := range out[:n] {
			if earlier == t {
				t = uint32(j)
				break
			}
		}
		out[n] = t
	}
}
