// Package device is the memory next to the arithmetic: one region that two tenants share from its two ends, FreshGNN's
// bidirectional buffer (arXiv 2301.07482).
//
//	byte 0                          junction                                      end
//	┌────────┬────────┬───┬────────┐      ┌─────────┬─────────┬───┬───────┬───────┐
//	│ slot 0 │ slot 1 │ … │ slot S │ ──►◄─│ row F-1 │ row F-2 │ … │ row 1 │ row 0 │
//	└────────┴────────┴───┴────────┘      └─────────┴─────────┴───┴───────┴───────┘
//	historical embeddings, by age           feature rows, the hottest outermost
//
// Embeddings that earlier steps computed grow from the start, in slots as wide as the widest hidden row. Feature rows
// fill the rest from the end, the hottest outermost. Ingest numbers nodes by heat, so the rows in the region are those
// below F, "is row v there" is v < F, and a slot that is added displaces the least hot of them. When the slots shrink,
// those rows come back from the host, which therefore keeps every row that can be displaced ([Ledger.Displaceable]).
//
// Three types: a [Layout] is the arithmetic of the picture, a [Buffer] its bytes in host memory (a GPU's buffer uses
// the same Layout), and a [Ledger] the bookkeeping: which slot holds whose embedding of which step, and where the
// junction is. A Ledger never sees a byte.
//
// # Deciding ahead
//
// A Ledger belongs to the planner, which decides step i long before it runs. With k for [Options].Staleness:
//
//	Begin(i)       wants WriteBack(i-k), and shows what the steps up to i-k wrote; never more, even if more is known
//	Use(key)       finds an embedding that step i reads, and leases its slot until i has run; as often as need be
//	Reserve(n)     gives the slots that step i writes: how many is known now, whose embeddings go there is not
//	  … step i runs: it reads, computes, and only then writes to the region …
//	WriteBack(i)   says whose embeddings went there, and which ones that it used are to be evicted
//
// So plans depend on the batches, the options and what steps up to i-k wrote; when a step ran, or on how many threads,
// has no part in it.
//
// Whatever plan i changes in the region is written by step i after all of its reads. So a row that plan i displaces can
// be read by steps up to i; one that it restores by those from i+k on, which is the rule for an embedding, too.
//
// # Age
//
// The slots in use form a queue in order of age, and the oldest leaves first. Its slot can be given away when no step
// to come may read it (it has MaxAge, was evicted, was NaN and never came, or has a younger version) and every
// step that leased it runs before the one that writes. Until then those behind it wait, free or not: that is what keeps
// the queue a queue. An embedding that may still be used is never thrown out for space: Reserve gives fewer slots than
// asked.
//
// Slots that were freed wait in a second queue behind the first, and the two make a ring: a slot's turn comes once a
// lap, and a lap meets the slots in the same order as the one before, except that a slot may leave the ring or join it.
// A slot joins only when none is free, the lowest number first.
//
// # Ownership
//
// A Ledger is used by one goroutine at a time; the step hands what it wrote to the planner, which waits for it anyway,
// and the planner calls WriteBack. It allocates in NewLedger ([BytesPerSlot] a slot), and later only where more
// evictions wait than ever before. A Buffer is plain memory: disjoint slots and rows may be used at once, and plans
// keep them disjoint.
//
// Start reading at [Ledger.Reserve].
//
// # Why not
//
// Why not a ring in the order of addresses: it can only grow while its head stands at the junction, so for most of
// a lap a step that admits more than the one before is refused, however cold the features beside it. The order of a
// queue costs 4 bytes a slot.
//
// Why not reuse a dead slot where it lies: the slots are then no longer in the order of their age, and the oldest must
// be searched for. What it would win are the slots of evictions and holes until their turn comes.
package device
