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
// So plan i depends on the batches, the options and what steps up to i-k wrote. It does not depend on when a step ran, or on
// how many threads.
//
// What plan i changes in the region, step i writes after all of its reads. So steps up to i can read a row that plan i
// displaces. Steps from i+k on can read a row that it restores, as they can an embedding that step i writes.
//
// # Age
//
// The slots in use form a queue in order of age, and the oldest leaves first. It can be given away when two things hold.
// No later step may read it: it has reached MaxAge, was evicted, is a hole, or was replaced by a younger version. And every step
// that leased it runs before the step that writes. Until then the slots behind it wait, whether they could go or not: so the
// queue stays in order. An embedding that may still be used is never thrown out for space: Reserve gives fewer slots instead.
//
// Freed slots wait in a second queue, and the two queues make a ring: each lap comes to every slot once, in the order of the
// lap before, but for slots that leave the ring or join it. A slot joins only when none is free, the lowest number first.
//
// # Ownership
//
// A Ledger is used by one goroutine at a time, the planner's: a step tells the planner what it wrote, and the planner calls
// WriteBack. A Ledger allocates in NewLedger ([BytesPerSlot] a slot), and later only when more evictions wait than ever
// before. A Buffer is plain memory: several goroutines may use different slots and rows at once, and plans keep them apart.
//
// Start reading at [Ledger.Reserve].
//
// # Why not
//
// Why not a ring in the order of addresses: it can only grow while its head stands at the junction, so for most of
// a lap a step that admits more than the one before is refused, however cold the features beside it. The order of a
// queue costs 4 bytes a slot.
//
// Why not reuse a dead slot where it lies: the slots would no longer be in the order of their age, and the oldest would have to
// be searched for. All that it would win is the slots of evictions and holes until their turn comes.
package device
