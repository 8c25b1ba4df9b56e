// Package device manages the memory next to the arithmetic: one region that two tenants fill from
// its two ends, FreshGNN's bidirectional buffer (arXiv 2301.07482).
//
//	byte 0                                                             end
//	┌─────────────────┬─────────────────┬───┐   ┌───┬─────────┬─────────┐
//	│ slots of ring 0 │ slots of ring 1 │ … │►◄─│ … │ table 1 │ table 0 │
//	└─────────────────┴─────────────────┴───┘   └───┴─────────┴─────────┘
//	hidden rows of earlier steps                feature rows
//
// Slots for hidden rows that earlier steps computed are taken from the start, feature rows from the
// end. One size bounds both: rows may take what slots leave free, and no part reaches into another.
// The region holds the first rows of a table, which ingest has made the hottest, so "is row v
// there" is v < F.
//
// Two types: a [Buffer] is the region, and a [Part] is a tenant's share of it. Package
// train/history knows which slot holds which hidden row of which step. Package cachetier knows
// which rows of a table lie here.
//
// A GPU's memory is apart from the host's. Rows there are written once, and read by the backend
// alone: kernels.Backend.RowsOf puts them together with rows that the host has brought. They lie
// from the end backwards, row 0 outermost. The index of what lies where stays with the planner
// on the host, which makes plans long before their steps run. FreshGNN's index is on the GPU.
//
// Memory: whoever makes a Buffer closes it, once every Part is closed. A Part is plain memory, and
// belongs to its tenant alone. Several goroutines may use different parts at once: a step uses
// slots while rows are gathered from other parts.
//
// # Why not
//
// Why not move the boundary between slots and rows during a run, as the paper does by adding slots
// one by one, each in place of the coldest row: the windows that read the displaced rows are
// planned already, so these rows must be available elsewhere at once. Each therefore lies on the
// host as well. A GPU's memory is separate from the host's, and such a row is worth its place there
// until a slot wants it. Where both are one memory, the row is there twice, and the second copy
// serves nobody. If it were given up for good when the first steps keep hidden rows, the tiers
// would have to fetch rows that they count as always resident, in the middle of windows, for one
// epoch of a run. So slots have all their bytes from the start, and the rows of the region are
// fixed. The hottest rows need not be the outermost then.
//
// Why not host memory that a backend is given: a GPU's slots must lie where its operations reach
// them, so the backend allocates.
package device
