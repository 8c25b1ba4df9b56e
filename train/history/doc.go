// Package history keeps the books of historical embeddings: which rows of hidden layers that
// earlier steps computed are used again, in place of computing them, and where they lie (FreshGNN,
// arXiv 2301.07482). Planning them by the window is ours.
//
// Each layer but the input has a pool of slots for each type, as many as [Kept] says. A step draws
// its batch from the seeds inward. A node that the step meets at a layer is live. If its embedding
// lies in a slot and is fresh, the step uses it, and nothing is drawn, read or computed for it;
// else the node is computed, and its new embedding takes a slot. A [Cache] decides this while
// batches are drawn. It never sees a byte of an embedding: the caller that runs a step reads the
// slots of [Planned], computes, and then writes the slots that Planned names.
//
// # Two clocks
//
// Batches are drawn long before they run. Where an embedding will lie is known when it is planned,
// since steps run in order: the next step may use it. Whether it is good is known once its step has
// run. So there are two clocks, in steps:
//
//	Group(i, n)       plans steps i to i+n-1 while they are drawn; wants WriteBack of step i+n-1-Lag
//	Planned(i)        what step i reads of the slots, and then writes there
//	WriteBack(i, …)   the gradients of all live nodes of step i, by which embeddings are accepted or rejected
//
// The plan of step i knows the verdicts of the steps up to i-Lag, and no others, even if they are
// there. A younger embedding is provisional: a coin, which is a hash of (seed, layer, type, node,
// step that computed it), lets plans use a share PGrad of them. The verdict of a step ranks the
// gradients of all live nodes of a layer and type, by norm and then by node. It accepts the share
// PGrad with the smallest. It rejects the embeddings of the others, both those that the step
// computed and those that it used, unless a newer one has replaced them. Uses that were planned by
// then stand, and are counted.
//
// So the choice of used embeddings is a function of the batches, the gradients and the options
// alone. It depends neither on how many steps are drawn together nor on when a step ran. With Lag 1
// and enough slots nothing is provisional, and this is FreshGNN's algorithm 1.
//
// The criterion matters where embeddings grow old. On Amazon Computers with TStale of 200 steps,
// two and a half epochs, random numbers in the place of the norms lose 1.0 points more at a PGrad
// of 0.9, and 0.35 at 0.5. With the default TStale, a fifth of an epoch, they lose no more, by four
// seeds. tools/results/history.md has the table.
//
// # Slots
//
// The lowest free slot is given out first. A plan frees a slot when it learns that no later step
// may use the embedding there: a verdict rejected it, a newer one replaced it, or it is past
// TStale. If the step being planned still reads the embedding, its slot is free after that plan. So
// every slot in use holds an embedding that may be used, and nothing waits. An embedding that may
// still be used is never thrown out for space: a computed node that finds no free slot is refused.
// Only nodes that Kept.Admits are kept.
//
// A step reads all that it uses before it writes, and steps run in order, so a slot that a plan
// gives away is not read any more when it is written.
//
// # What survives
//
// A [Snapshot] is the state as of the last step that was written back, though plans are ahead:
// every plan keeps what it changed until its step is written back. [Restore] makes a Cache of it,
// which plans the same steps in the same way, and [Cache.Rewind] forgets plans whose steps did not
// run.
//
// # Ownership
//
// One goroutine plans: Group, and Expand of what it returns. One writes back, in the order of
// steps. Planned, Stats and Snapshot.Take may be called at any time, Rewind while nobody else is at
// work. All state is under one mutex, which is held for one layer of one step at a time.
//
// Memory: [BytesPerSlot] a slot and half a byte. Each step that is planned and not written back
// takes 16 bytes for an embedding that it keeps, 12 for one that it uses, and 4 for one that its
// plan removed. Each embedding that the verdicts of the last Lag steps reject takes 8 bytes. The
// steps that are drawn together take 12 bytes for each live node of the layers with slots. Once all
// that has grown, nothing is allocated.
//
// Start reading at pool.plan.
//
// # Why not
//
// Why not show plan i what steps up to i-Lag wrote, and no more: an embedding that nobody may use
// for its first Lag steps is computed and written again by each of them that meets its node. In a
// simulation (one million nodes of degree 14, TStale 200) a step then saved 816 of 4,621 rows with
// a Lag of 100, and 1,340 with a Lag of 1.
//
// Why not use all provisional embeddings, or none: verdicts will accept a share PGrad of them, so
// the coin uses as many as will be right, though not the same ones. The paragraph above covers
// none.
//
// Why not share the slots among all layers: what one layer keeps would decide whether another finds
// a slot, and a hop could not be planned before the hops below it.
//
// Why not free slots in the order in which they were taken: a free slot would wait for all that
// were taken before it. With a slot for every node and a TStale of 200 steps, such a ring refused
// 74 % of the rows that Amazon Computers wanted to keep.
//
// Why not link the slots in the order of their age: each removal would read and write two more
// addresses. Sorting the slots once in TStale steps takes 4 bytes a slot, where links take 8.
//
// Why not sort the gradients: only the membership in the smallest share matters, and a few counts
// decide that (lowest).
package history
