// Package temporal turns a stream of events into batches for networks that remember: the nodes at
// the ends of some consecutive events, their neighbours at that time, destinations that the events
// did not have, and whose state the events change.
//
// Three things to know. A [Batch] has these, with every node, every row (a node at a time) and
// every event's features once. A [Sampler] draws batches in the order of events, for the [Step]s
// that it is given. [Negatives] are a function of a key, the event's number and a count, so that
// evaluation compares with the same ones whatever the batches.
//
// Neighbours of a node at time t are the other ends of its events before t, strictly: of a batch's
// own events too, but not of those at t. They are the newest, or drawn from all. Since candidates
// are a function of node and time, a root that a batch asks for twice is one root, though other
// events lie between. A network has one layer of them: the neighbours of neighbours would need
// times in the past.
//
// The list of a node lies in one piece, in the order of time (store.Stream), so that the newest
// neighbours are one small read. Cursors find it: one number a node, which moves with the stream. A
// [Sampler.Draw] reads the lists of all its steps in one pass over the file through package disk,
// and shared pieces once.
//
// Memory: cursors take 4 bytes a node outside the Go heap, and blending takes 14 for times and
// similar nodes. A Draw takes 44 bytes for each piece of a list that it wants: one for each asker,
// or one a neighbour drawn from all. It takes 16 bytes for each half-edge. A worker takes four
// tables and 12 bytes a row. [Sampler.Bytes] returns the total so far. The offsets of lists are
// read through the memory map. A Batch owns its lists, and is drawn into again without allocating
// once they have grown.
//
// Concurrency: a Sampler is used by one goroutine at a time, and its workers make batches inside
// Draw. Batches do not depend on how many there are, nor on which steps are drawn together.
//
// The rest needs no network, and reads whole streams: [Baselines] measures scores that a network
// has to beat, [Similar] finds the nodes with the same partners, and [Blends] finds memories of a
// batch so old that the memories of similar nodes help.
//
// Start at [Sampler.Draw]. Cursors are in cursors.go, reading in lists.go, rows in maker.go, mail
// to neighbours in deliver.go, memories that are out of date in blend.go.
//
// # Why not
//
// Why not a binary search for the time in each list: on a list that is not in memory each probe is
// a read. A scan of the events' ends, 8 bytes an event, puts the cursors anywhere, so that
// checkpoints need not have them.
//
// Why do cursors not move with every event: events at one time would have to be passed over, entry
// by entry, and where a node has more of them than the fanout its list would be read again, further
// back each time.
//
// Why not the event's number in the hash of uniform draws: the draws of a node at a time would then
// depend on which of its events at that time comes first in a batch, and so on where batches are
// cut.
package temporal
