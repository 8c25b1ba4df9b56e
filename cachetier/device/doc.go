// Package device is the memory next to the arithmetic: one region that two tenants share from its two ends, FreshGNN's
// bidirectional buffer (arXiv 2301.07482).
//
//	byte 0                          junction                                      end
//	┌────────┬────────┬───┬────────┐      ┌─────────┬─────────┬───┬───────┬───────┐
//	│ slot 0 │ slot 1 │ … │ slot S │ ──►◄─│ row F-1 │ row F-2 │ … │ row 1 │ row 0 │
//	└────────┴────────┴───┴────────┘      └─────────┴─────────┴───┴───────┴───────┘
//	historical embeddings                   feature rows, the hottest outermost
//
// Embeddings that earlier steps computed have slots at the start, as wide as the widest hidden row. Feature rows fill the rest
// from the end, the hottest outermost. Ingest numbers nodes by heat, so the rows in the region are those below F, "is row v
// there" is v < F, and a slot that is added displaces the least hot of them.
//
// Two types: a [Layout] is the arithmetic of the picture, and a [Buffer] its bytes in host memory (a GPU's buffer uses the same
// Layout). Which slot holds whose embedding of which step is the business of package train/history.
//
// A Buffer is plain memory: several goroutines may use different slots and rows at once, and plans keep them apart.
//
// Start reading at [Layout].
package device
