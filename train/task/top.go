package task

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/data"
	"github.com/gnnstore/gnnstore/train/model"
)

// TopOptions choose the destinations that Top finds.
type TopOptions struct {
	K int // of each source
	// Of is the relation of the links, by its place in data.Links.All, where several are learnt.
	Of int
	// ExcludeKnown leaves out the links that the dataset has, trained on or held out, and where
	// both ends are of one type a node itself.
	ExcludeKnown bool
	// Bytes bounds the memory. Half of it is for rows of sources and the best destinations of each
	// so far, the rest for known links and pairs to score. The least that Top needs comes on top:
	// see [Links.TopBytes].
	Bytes int64
	// Progress is called now and then with the number of pairs that are done, and of all pairs.
	// Default nil.
	Progress func(done, all int64)
}

// EndRows reads the output rows of nodes, which ascend.
type EndRows interface {
	Read(dst []float32, nodes []uint32) error
	Cols() int
}

// Sizes of a tile of scores.
const (
	topSources = 256
	topTargets = 1024
	topFloats  = 4 << 20 // floats of rows that a decoder takes at once, if it is no product
	leastKnown = 1 << 16 // known links of a chunk
	// sourceBytes is the memory of a source beside its row and its best destinations: a heap, its
	// place in lists, and in the lists of one destination.
	sourceBytes = 64
)

// FixedBytes returns the memory of Top or, if measures is set and it takes more, of a measurement.
func (k *Links) FixedBytes(memory int64, measures bool) int64 {
	if measures {
		return max(k.Bytes(memory), k.TopBytes())
	}
	return k.TopBytes()
}

// TopBytes returns the bytes that Top takes beside TopOptions.Bytes: a tile and its rows, the known
// links of a chunk, all held-out links, and the pairs of a source with a chunk.
func (k *Links) TopBytes() int64 {
	cols := int64(k.model.Out)
	valid, test := k.data.Links.Held()
	return 4*(3*topSources*topTargets+cols*(3*topSources+2*topTargets)) + 2*8*leastKnown + 3*2*8*int64(valid+test) + topTargets*k.listedBytes()
}

// listedBytes returns the bytes of a pair while it is scored: its places in lists and, where its
// score is not a product, three rows.
func (k *Links) listedBytes() int64 {
	if k.decoder != model.PairMLP {
		return pairBytes
	}
	return pairBytes + 3*k.scoredRow()
}

// scoredRow returns the bytes of a row that the decoder makes for a pair or for its source. The
// tape allocates an eighth more than it uses.
func (k *Links) scoredRow() int64 { return 4 * int64(k.options.Width) * 9 / 8 }

// Top calls do for each of sources, which ascend, with the K destinations of the highest scores;
// fewer where there are no more. The best comes first, and of equals the one that is stored first.
// Scores equal [Links.Scores], bit for bit.
//
// It goes through all destinations once for each block of sources that Options.Bytes has room for.
// Where scores are products of two rows, it takes a product of matrices first. It then scores only
// the pairs that can still be among the best, given the rounding of that product.
func (k *Links) Top(
	ctx context.Context, o TopOptions, sources []uint32, x, y EndRows, do func(src uint32, dst []uint32, scores []float32) error,
) error {
	r := k.relations[o.Of]
	s := &search{
		TopOptions: o, k: k, r: r, y: y, be: k.tape.Backend(), cols: x.Cols(), targets: k.data.Types[r.Dst].Nodes, all: int64(len(sources)),
	}
	s.K = min(s.K, s.targets)
	s.all *= int64(s.targets)
	defer s.close()
	each := int64(4*s.cols + 16*s.K + sourceBytes) // twice the best: while lists of them grow
	if each > max(o.Bytes/2, 1<<20) {
		return fmt.Errorf("{top} %d: the best of one source take %s, and there are %s; take fewer, or more {memory_bytes}", o.K,
			kernels.FormatBytes(each), kernels.FormatBytes(o.Bytes/2))
	}
	block := min(max(o.Bytes/2/each, 1), int64(len(sources)))
	s.mostKnown = max(leastKnown, int(o.Bytes/8/16))
	s.mostPairs = int(max(1, min(topFloats/int64(s.cols), o.Bytes/4/k.listedBytes())))
	for mine := range slices.Chunk(sources, max(1, int(block))) {
		if err := store.Guard(func() error { return s.block(ctx, mine, x) }); err != nil {
			return err
		}
		for i, u := range mine {
			dst, scores := s.best[i].sorted()
			if err := do(u, dst, scores); err != nil {
				return err
			}
		}
	}
	return nil
}

// search is one Top under way.
type search struct {
	TopOptions
	k       *Links
	r       data.Relation
	y       EndRows
	be      kernels.Backend
	cols    int
	targets int
	done    int64
	all     int64

	mostKnown int // known links of a chunk, without the links of its last destination
	mostPairs int // pairs that are scored together, without the pairs of the last source

	sources []uint32 // of the block
	best    []heap
	heldOut []uint64 // links of the relation: source, destination; nil before they are read
	held    []uint64 // held-out links of the block: destination, place of the source
	known   []uint64 // links of a chunk: place of the source, column

	x, chunk, products, norms kernels.Tensor // rows of the block and of a chunk of destinations; of a tile
	host                      []float32
	ids, at, of               []uint32
	product                   bool // scores are a product of matrices
	scores, sizes             []float32
}

func (s *search) close() { kernels.FreeTensors(s.be, s.x, s.chunk, s.products, s.norms) }

// room returns t with so many rows and columns. It allocates t anew if it has less room.
func (s *search) room(t *kernels.Tensor, rows, cols int) kernels.Tensor {
	if t.Buf == nil || t.Buf.Len() < rows*cols {
		kernels.FreeTensors(s.be, *t)
		*t = kernels.Tensor{} // before Alloc may fail
		*t = kernels.NewTensor(s.be, kernels.F32, rows, cols)
	}
	t.Rows, t.Cols = rows, cols
	return *t
}

// bring copies rows to the backend, some at a time.
func (s *search) bring(to kernels.Tensor, from EndRows, nodes []uint32) error {
	at := 0
	for some := range slices.Chunk(nodes, topTargets) {
		s.host = slices.Grow(s.host[:0], len(some)*s.cols)[:len(some)*s.cols]
		if err := from.Read(s.host, some); err != nil {
			return err
		}
		s.be.UploadF32(to.Slice(at, at+len(some)), s.host)
		at += len(some)
	}
	return nil
}

// block finds the best of some sources.
func (s *search) block(ctx context.Context, sources []uint32, x EndRows) error {
	s.sources = sources
	for len(s.best) < len(sources) {
		s.best = append(s.best, heap{})
	}
	for i := range sources {
		s.best[i].reset(s.K)
	}
	s.room(&s.x, len(sources), s.cols)
	if err := s.bring(s.x, x, sources); err != nil {
		return err
	}
	if s.ExcludeKnown {
		s.findHeld()
	}
	hi := 0
	for lo := 0; lo < s.targets; lo = hi {
		if err := ctx.Err(); err != nil {
			return err
		}
		hi = s.chunkFrom(lo)
		s.ids = s.ids[:0]
		for v := lo; v < hi; v++ {
			s.ids = append(s.ids, uint32(v))
		}
		s.room(&s.chunk, hi-lo, s.cols)
		if err := s.bring(s.chunk, s.y, s.ids); err != nil {
			return err
		}
		if s.ExcludeKnown {
			s.findKnown(lo, hi)
		}
		for from := 0; from < len(sources); from += topSources {
			if err := s.tile(lo, from, min(from+topSources, len(sources))); err != nil {
				return err
			}
		}
		s.done += int64(len(sources)) * int64(hi-lo)
		if s.Progress != nil {
			s.Progress(s.done, s.all)
		}
	}
	return nil
}

// place returns the place of a node among the sources of the block.
func (s *search) place(u uint32) (int, bool) {
	if i := int(u) - int(s.sources[0]); i >= 0 && i < len(s.sources) && s.sources[i] == u { // if all nodes are sources
		return i, true
	}
	return slices.BinarySearch(s.sources, u)
}

// findHeld finds the held-out links of the block.
func (s *search) findHeld() {
	if s.heldOut == nil {
		s.heldOut = s.k.heldLinks(s.Of)
	}
	s.held = s.held[:0]
	for i, u := range s.sources {
		at, _ := slices.BinarySearch(s.heldOut, uint64(u)<<32)
		for ; at < len(s.heldOut) && s.heldOut[at]>>32 == uint64(u); at++ {
			s.held = append(s.held, s.heldOut[at]<<32|uint64(i))
		}
	}
	slices.Sort(s.held)
}

// chunkFrom returns the end of the chunk of destinations that begins with lo. By the degrees, the
// chunk has at most mostKnown known links to the block, or just one destination.
func (s *search) chunkFrom(lo int) int {
	end := min(lo+topTargets, s.targets)
	if !s.ExcludeKnown {
		return end
	}
	known := 0
	for hi := lo; hi < end; hi++ {
		// Links of a source count once, since parallel ones are together.
		if known += min(s.r.Degree(uint32(hi)), len(s.sources)) + 1; known > s.mostKnown && hi > lo {
			return hi
		}
	}
	return end
}

// findKnown finds the known links of the block to destinations lo to hi.
func (s *search) findKnown(lo, hi int) {
	s.known = s.known[:0]
	r := s.r
	for v := lo; v < hi; v++ {
		for n, list := 0, r.Neighbors(uint32(v)); n < len(list); n++ {
			if n > 0 && list[n] == list[n-1] {
				continue
			}
			if i, ok := s.place(list[n]); ok {
				s.known = append(s.known, uint64(i)<<32|uint64(v-lo))
			}
		}
		if i, ok := s.place(uint32(v)); ok && r.Src == r.Dst {
			s.known = append(s.known, uint64(i)<<32|uint64(v-lo))
		}
	}
	at, _ := slices.BinarySearch(s.held, uint64(lo)<<32)
	for ; at < len(s.held) && s.held[at]>>32 < uint64(hi); at++ {
		s.known = append(s.known, s.held[at]<<32|(s.held[at]>>32-uint64(lo)))
	}
	slices.Sort(s.known)
}

// tile scores the sources from to to of the block against the chunk, whose first destination is lo.
func (s *search) tile(lo, from, to int) error {
	k, columns := s.k, s.chunk.Rows
	x := s.x.Slice(from, to)
	s.multiply(x)
	known, _ := slices.BinarySearch(s.known, uint64(from)<<32)
	k.lists = k.lists[:0]
	l := k.list(k.relation.Src, k.relation.Dst, nil)
	s.at = s.at[:0]
	for i := from; i < to; i++ {
		limit := s.best[i].limit()
		if s.product { // the most that rounding takes from a sum of so many products, in either order of adding them up
			limit -= 4 * float64(s.cols+1) / (1 << 24) * float64(s.sizes[i-from]) * float64(s.sizes[to-from])
			limit -= math.SmallestNonzeroFloat32 * float64(s.cols+1)
		}
		for c := range columns {
			if known < len(s.known) && s.known[known] == uint64(i)<<32|uint64(c) {
				for known < len(s.known) && s.known[known] == uint64(i)<<32|uint64(c) { // as often as there are parallel links
					known++
				}
				continue
			}
			if s.product && float64(s.scores[(i-from)*columns+c]) < limit {
				continue
			}
			l.add(uint32(c))
		}
		l.end()
		s.at = append(s.at, uint32(i-from))
		if len(l.nodes) >= s.mostPairs || i == to-1 {
			if err := s.take(x, l, lo, from); err != nil {
				return err
			}
			k.lists = k.lists[:0]
			l = k.list(k.relation.Src, k.relation.Dst, nil)
			s.at = s.at[:0]
		}
	}
	return nil
}

// multiply sets product if the decoder's scores are products of rows. Then it sets scores to the
// products of rows x with the chunk's rows, and sizes to the norms of the queries made of x, and
// last the largest norm of the chunk's rows.
func (s *search) multiply(x kernels.Tensor) {
	k := s.k
	k.lists = k.lists[:0]
	s.at = s.at[:0]
	for i := range x.Rows {
		s.at = append(s.at, uint32(i))
	}
	l := k.list(k.relation.Src, k.relation.Dst, s.at)
	l.of, _ = k.decoded(s.relations(), len(s.at), false)
	for range s.at {
		l.end()
	}
	pairs, _, _ := k.upload(k.feed, k.lists, func(int) int { return s.chunk.Rows }, 0)
	k.tape.Reset(false)
	q := k.model.Bilinear(k.tape, k.tape.Leaf(x), pairs[0])
	if s.product = q != nil; !s.product {
		return
	}
	products := s.room(&s.products, x.Rows, s.chunk.Rows)
	s.be.MatMul(products, q.Value, s.chunk, false, true, false)
	norms := s.room(&s.norms, max(x.Rows, s.chunk.Rows), 1)
	s.be.RowNorms(norms.Slice(0, s.chunk.Rows), s.chunk)
	largest := slices.Max(k.feed.Download(norms.Slice(0, s.chunk.Rows)))
	s.be.RowNorms(norms.Slice(0, x.Rows), q.Value)
	s.sizes = append(append(s.sizes[:0], k.feed.Download(norms.Slice(0, x.Rows))...), largest)
	s.scores = append(s.scores[:0], k.feed.Download(products)...)
}

// relations returns the relation of each source at hand; nil where just one relation is learnt.
func (s *search) relations() []uint32 {
	if len(s.k.relations) == 1 {
		return nil
	}
	for len(s.of) < len(s.at) {
		s.of = append(s.of, uint32(s.Of))
	}
	return s.of[:len(s.at)]
}

// take scores the pairs of a list exactly, and adds them to the heaps of their sources.
func (s *search) take(x kernels.Tensor, l *lists, lo, from int) error {
	if len(l.nodes) == 0 {
		return nil
	}
	l.own = s.at
	l.of, _ = s.k.decoded(s.relations(), len(s.at), false)
	scores := s.k.scoresOf(x, s.chunk)
	for n, at := range s.at {
		h := &s.best[from+int(at)]
		for e := l.start[n]; e < l.start[n+1]; e++ {
			v := uint32(lo) + l.nodes[e]
			if scores[e] != scores[e] {
				return fmt.Errorf("the score of nodes %s and %s is NaN: the weights of the run, or its rows, are no numbers",
					s.k.data.Name(s.k.relation.Src, s.sources[from+int(at)]), s.k.data.Name(s.k.relation.Dst, v))
			}
			h.add(scores[e], v)
		}
	}
	return nil
}

// scored is a destination and its score.
type scored struct {
	score float32
	node  uint32
}

// worse compares two destinations, the worse first.
func (a scored) worse(b scored) int {
	return cmp.Or(cmp.Compare(a.score, b.score), cmp.Compare(b.node, a.node))
}

// heap holds the best destinations so far, the worst of them at the root.
type heap struct {
	of   []scored
	most int
}

func (h *heap) reset(most int) { h.of, h.most = h.of[:0], most }

// limit returns the score that a destination has to reach.
func (h *heap) limit() float64 {
	if len(h.of) < h.most {
		return math.Inf(-1)
	}
	return float64(h.of[0].score)
}

func (h *heap) add(score float32, node uint32) {
	x := scored{score, node}
	if len(h.of) < h.most {
		h.of = append(h.of, x)
		for i := len(h.of) - 1; i > 0 && h.of[i].worse(h.of[(i-1)/2]) < 0; i = (i - 1) / 2 {
			h.of[i], h.of[(i-1)/2] = h.of[(i-1)/2], h.of[i]
		}
		return
	}
	if h.most == 0 || x.worse(h.of[0]) <= 0 {
		return
	}
	h.of[0] = x
	for i := 0; ; {
		least := i
		for _, child := range []int{2*i + 1, 2*i + 2} {
			if child < len(h.of) && h.of[child].worse(h.of[least]) < 0 {
				least = child
			}
		}
		if least == i {
			return
		}
		h.of[i], h.of[least] = h.of[least], h.of[i]
		i = least
	}
}

// sorted returns the heap's destinations and scores, the best first. The heap cannot be used
// afterwards.
func (h *heap) sorted() (nodes []uint32, scores []float32) {
	slices.SortFunc(h.of, func(a, b scored) int { return b.worse(a) })
	for _, x := range h.of {
		nodes, scores = append(nodes, x.node), append(scores, x.score)
	}
	return nodes, scores
}
