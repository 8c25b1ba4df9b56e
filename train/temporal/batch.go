package temporal

// Batch has the events of a step, and the rows that a network computes of them. Nodes are given by
// their places, as store.Events numbers them, and times are since the first event of the stream,
// times its TimeScale. A Batch names the state and the features to read, but does not have them.
//
// A row is a node at a time. Each row comes once, however many events and neighbours it belongs to.
// Rows come event by event: its source, its destination and its negatives, and behind each of these
// its neighbours, the newest first.
// these its neighbours, the newest first.
type Batch struct {
	From, To int64 // the events

	// Nodes are the places whose state is read, and Events the events whose features are read. Each
	// comes once, in the order in which they are first wanted.
	Nodes, Events []uint32

	RowNode []uint32  // by row: its node, among Nodes
	RowTime []float64 // by row

	// Roots are the rows that are embedded. The rest is beside them: neighbour j of root i is row
	// NearRow[j], by event NearEvent[j] among Events, Since[j] before the root; of a batch without
	// neighbours all of it is empty but NearStart and NearEnd.
	Roots              []uint32
	NearStart, NearEnd []uint32 // by root
	NearRow, NearEvent []uint32
	NearRoot           []uint32 // its root
	Since              []float64

	// By event, or by pair of Step.Asks: which root its source is, and its destination, and those
	// of its Each negatives. All are empty of a batch that only state is computed of.
	Src, Dst, Negatives []uint32
	Each                int

	// Pairs has PairColumns for each scored pair, if SamplerOptions.Pairs asks for them: first the
	// pairs of Src and Dst, then those with Negatives.
	Pairs []float32

	// Writes are the nodes whose state the events change: those at the ends. None is there twice,
	// and they come by the last of their events.
	Writes []Write

	// Mails lists the mail that nodes get where mail goes to neighbours too, as APAN sends it. No
	// node comes twice. A node at the end of an event gets none if it is missing here. Nodes has
	// all of them; those at no end have no row. They are in the order of the first mail that a node
	// could have. If Mails is empty, each of Writes gets the mail of its own event.
	Mails []Write

	// Blended are rows of roots whose memory is out of date. Before use, the memory of row
	// Blended[i] is blended with the memories of the nodes Similar[BlendStart[i]:BlendStart[i+1]],
	// which are among Nodes. See Blends.
	Blended, BlendStart, Similar []uint32

	bytes int64 // room of the lists
}

// Write is the change of a node's state by the last of its events in the batch. An event from a
// node to itself leaves the destination's change. For mail to a neighbour, Row is the end of the
// event that it neighbours.
type Write struct {
	Node  uint32 // among Nodes
	Row   uint32 // the node at the time of the event
	Other uint32 // the row of the node at the other end
	Event uint32 // among Events, whose features the mail has
}

// mails returns the mail that nodes get.
func (b *Batch) mails() []Write {
	if len(b.Mails) > 0 {
		return b.Mails
	}
	return b.Writes
}

// Written appends the places of the nodes whose state the events change, some of them twice, and
// returns all.
func (b *Batch) Written(places []uint32) []uint32 {
	for _, writes := range [][]Write{b.Writes, b.Mails} {
		for _, w := range writes {
			places = append(places, b.Nodes[w.Node])
		}
	}
	return places
}

// Inputs returns the rows that the batch reads: of the table of states, of the features of
// events, and of the features of nodes, which only embeddings read.
func (b *Batch) Inputs() [][]uint32 {
	inputs := [][]uint32{b.Nodes, b.Events, nil}
	if len(b.Roots) > 0 {
		inputs[2] = b.Nodes
	}
	return inputs
}

// Reads returns Inputs.
func (b *Batch) Reads() [][]uint32 { return b.Inputs() }

// Bytes returns the memory of the batch in bytes, including the room that its lists have for more.
func (b *Batch) Bytes() int64 { return b.bytes }

// Reset empties the batch. Its lists keep their memory.
func (b *Batch) Reset() {
	b.From, b.To, b.Each = 0, 0, 0
	for _, list := range b.lists() {
		*list = (*list)[:0]
	}
	b.RowTime, b.Since, b.Pairs, b.Writes, b.Mails = b.RowTime[:0], b.Since[:0], b.Pairs[:0], b.Writes[:0], b.Mails[:0]
}

// lists returns the lists of uint32.
func (b *Batch) lists() []*[]uint32 {
	return []*[]uint32{
		&b.Nodes, &b.Events, &b.RowNode, &b.Roots, &b.NearStart, &b.NearEnd, &b.NearRow, &b.NearEvent, &b.NearRoot, &b.Src, &b.Dst, &b.Negatives,
		&b.Blended, &b.BlendStart, &b.Similar,
	}
}

// size sets what Bytes says.
func (b *Batch) size() {
	b.bytes = 8*int64(cap(b.RowTime)+cap(b.Since)) + 4*int64(cap(b.Pairs)) + 16*int64(cap(b.Writes)+cap(b.Mails))
	for _, list := range b.lists() {
		b.bytes += 4 * int64(cap(*list))
	}
}
