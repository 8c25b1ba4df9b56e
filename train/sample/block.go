package sample

// Batch is the input of one step: Layers[0] reads features, the last one makes the seeds.
type Batch struct {
	Seeds  [][]uint32 // by type: the nodes that the last layer computes
	Layers []Layer
	// Without has the edges of each relation that the batch is drawn without; empty: none. The
	// caller sets it before a draw.
	Without []Without

	// expanded says that an Expander chose what the batch draws. Then rows are its Inputs, for
	// types whose sources have an Origin.
	expanded bool
	rows     [][]uint32 // by type
	edgeRows [][]uint32 // by table of edges: the table's rows that the batch reads, each once
	dealt    *Dealt     // of SampleParts and SampleCooperative
	asked    [][]uint32 // of SampleCooperative: the seeds that this worker asked for, by type
	halos    []Halo     // of SampleCooperative
}

// Asked returns the seeds that the batch was drawn for, by type. They are its Seeds, unless
// SampleCooperative drew it.
func (b *Batch) Asked() [][]uint32 {
	if b.halos != nil {
		return b.asked
	}
	return b.Seeds
}

// Halos lists the rows that workers exchange for the batch. They exchange Halos()[l], from 1 on,
// before layer l reads its sources. By the last one, after all layers, each worker gets the rows of
// Asked. It is nil unless SampleCooperative drew the batch.
func (b *Batch) Halos() []Halo { return b.halos }

// Dealt lists the rows that owners read and send for the batch. It is nil unless SampleParts or
// SampleCooperative drew the batch.
func (b *Batch) Dealt() *Dealt { return b.dealt }

// Reads returns the rows that this worker reads for the step of the batch: its Inputs, or the rows
// that it owns of all workers' Inputs.
func (b *Batch) Reads() [][]uint32 {
	if b.dealt != nil {
		return b.dealt.Rows
	}
	return b.Inputs()
}

// Layer is one layer of a batch: the nodes that it reads and makes, and the edges between them.
type Layer struct {
	Nodes  []Frontier // by type
	Blocks []Block    // by relation
}

// Frontier has the nodes of one type in a layer. The layer reads the rows of Src. The first Dst
// of them are the destinations, whose rows it computes, so a destination finds its own row
// without a look-up. Sources come in the order in which they first appear: destinations, then
// the drawn nodes, relation by relation.
type Frontier struct {
	Src []uint32 // node ids, as stored
	Dst int
	// Origin has for each source the place of its row. It is empty without an [Expander], and where
	// that gives none. Then the row of source n is row n of the layer below, or of Inputs. In a
	// batch with [Batch.Halos] it is by node of [Batch.Live], not by source.
	Origin []Origin
}

// Block is the edges of one relation in a layer, from the sources of one Frontier to the
// destinations of another, or of the same.
//
// Edges are in CSR2 form (FreshGNN §4.2): destination i has the sources Nbr[Start[i]:End[i]], as
// positions in Src of the relation's source type; pruning it is End[i] = Start[i].
type Block struct {
	Start, End []uint32 // by destination
	Nbr        []uint32

	// Weight has the weight of each neighbour in Nbr in a sum over them. With Options.GCN these are
	// GCN's weights. Else, if the sampler chooses some neighbours with a higher probability than
	// others, they are Hájek's: the inverse probability, or for RW the number of visits, scaled to
	// add up to 1. With Options.SelfLoops they are not scaled, and the loop has 1; attention
	// divides by their sum. If all neighbours count the same, Weight is empty, and a mean is right.
	Weight []float32

	// RevStart and RevDst are the edges by source, for the backward pass: source u is used by the
	// destinations RevDst[RevStart[u]:RevStart[u+1]], ascending. RevEdge, where there are weights
	// or Options.RevEdges asked for it, has the position in Nbr of each edge in RevDst. The input
	// layer has no reverse, since no gradient flows to features, unless Options.RevInput or
	// RevTypes asked for one.
	RevStart, RevDst, RevEdge []uint32

	// Values are the numbers that edges bring along, where the Sampler was given some: one for each
	// column, for each position of Nbr in turn.
	Values []float32

	// Rows has the row of each edge in a table, where the Sampler was given rows: for each position
	// of Nbr, a position among the rows that the batch reads of Table. Inputs lists these rows
	// after the nodes of all types.
	Rows  []uint32
	Table int

	lost    []uint32 // by seed: number of edges left out of its draws; empty if none are
	columns int      // of Values
	brings  bool     // edges bring along Values, or Rows
	// places has the places of neighbours in their lists: of all neighbours in Nbr if edges bring
	// something along, else of neighbours whose lists are still to come.
	places []uint32
}

// Reverse fills RevStart, RevDst and RevEdge, for so many sources.
func (b *Block) Reverse(sources int) { b.reverse(sources, true) }

// reverseRoom gives RevStart, RevDst and, with edges or where they have weights, RevEdge the size
// that reverse does.
func (b *Block) reverseRoom(sources int, edges bool) {
	b.RevStart = resize(b.RevStart, sources+1)
	b.RevDst = resize(b.RevDst, len(b.Nbr))
	if edges || len(b.Weight) > 0 {
		b.RevEdge = resize(b.RevEdge, len(b.Nbr))
	}
}

// reverse fills them by a counting sort.
func (b *Block) reverse(sources int, edges bool) {
	edges = edges || len(b.Weight) > 0
	b.reverseRoom(sources, edges)
	clear(b.RevStart)
	for _, u := range b.Nbr {
		b.RevStart[u+1]++
	}
	for u := range sources {
		b.RevStart[u+1] += b.RevStart[u]
	}
	for i := range b.Start {
		for e := b.Start[i]; e < b.End[i]; e++ {
			u := b.Nbr[e]
			at := b.RevStart[u]
			b.RevDst[at] = uint32(i)
			if edges {
				b.RevEdge[at] = e
			}
			b.RevStart[u]++
		}
	}
	copy(b.RevStart[1:], b.RevStart[:sources]) // each start has moved to its end
	b.RevStart[0] = 0
}

// withSpare returns the capacity of a batch's slice for n elements: an eighth more, so that later
// batches, which are about as large, fit.
func withSpare(n int) int { return n + n/8 }

// resize returns s with length n, its contents undefined.
func resize[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n, withSpare(n))
	}
	return s[:n]
}

// grow returns s with room for n more elements.
func grow[T any](s []T, n int) []T {
	if need := len(s) + n; cap(s) < need {
		return append(make([]T, 0, withSpare(need)), s...)
	}
	return s
}

// Inputs returns the nodes of each type whose feature rows the batch reads, each once, and then the
// rows of each table of edges.
func (b *Batch) Inputs() [][]uint32 {
	ids := make([][]uint32, len(b.Layers[0].Nodes), len(b.Layers[0].Nodes)+len(b.edgeRows))
	for t := range ids {
		f := &b.Layers[0].Nodes[t]
		if ids[t] = f.Src; b.expanded && len(f.Origin)+len(b.rows[t]) > 0 {
			ids[t] = b.rows[t]
		}
	}
	return append(ids, b.edgeRows...)
}

// DrawnBytes returns the bytes of the neighbours of the hop that has most, with their weights,
// values and rows.
func (b *Batch) DrawnBytes() (most int64) {
	for l := range b.Layers {
		n := 0
		for _, k := range b.Layers[l].Blocks {
			n += len(k.Nbr) + len(k.Weight) + len(k.Values) + len(k.Rows)
		}
		most = max(most, 4*int64(n))
	}
	return most
}

// Bytes returns the bytes of the batch's layers, with their spare room.
func (b *Batch) Bytes() int64 {
	n := 0
	for _, ids := range b.rows {
		n += len(ids)
	}
	for _, rows := range b.edgeRows {
		n += len(rows)
	}
	if b.dealt != nil {
		n += b.dealt.len()
	}
	for l := range b.halos {
		n += b.halos[l].len()
	}
	for _, w := range b.Without {
		n += len(w.Start) + len(w.Src)
	}
	for l := range b.Layers {
		layer := &b.Layers[l]
		for t := range layer.Nodes {
			n += len(layer.Nodes[t].Src) + 2*len(layer.Nodes[t].Origin)
		}
		for r := range layer.Blocks {
			k := &layer.Blocks[r]
			n += len(k.Start) + len(k.End) + len(k.Nbr) + len(k.RevStart) + len(k.RevDst) + len(k.RevEdge) + len(k.Weight) + len(k.Values) + len(k.Rows) + len(k.places) + len(k.lost)
		}
	}
	return 4 * int64(withSpare(n))
}
