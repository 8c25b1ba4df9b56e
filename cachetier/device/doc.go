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
// end. One size bounds both. The region holds the first rows of a table, which ingest has made the
// hottest, so "is row v there" is v < F.
//
// Three types: a [Buffer] is the region, a [Part] is a tenant's share of it, and [Rings] are slots
// that displace rows. Package train/history knows which slot holds which hidden row of which step.
// Package cachetier knows which rows of a table lie here.
//
// # Memory that the host cannot address
//
// A GPU's memory is apart from the host's. Rows there are written once, and read by the backend
// alone: kernels.Backend.RowsOf puts them together with rows that the host has brought. They lie
// from the end backwards, row 0 outermost. The junction between rows and slots moves: rows fill the
// region, and a ring takes room from the start in chunks, as slots of higher numbers come into use
// (free slots are given out lowest first). The rows that lie there, the least hot ones, are given
// up for good. They are on the host all the time, so that a displaced row costs no disk read.
//
// The plan alone decides placement. A step finds the rows that the steps before it have not
// displaced. They are known when the step is planned, and never grow in number. The backend runs
// operations in order, and a step puts its rows together before it stores any. So it still reads
// the rows that its own stores displace.
//
// Between the hottest rows and the rows that slots will displace, package cachetier has a dynamic
// part, of fixed size: rows that came for a step stay there while its policy finds them worth it.
//
// The index of places is on the host, with the planner, which plans steps long before they run.
// FreshGNN has its index on the GPU.
//
// Memory: whoever makes a Buffer closes it, once every Part and the Rings are closed. A Part is
// plain memory, and belongs to its tenant alone. Several goroutines may use different parts at
// once: a step uses slots while rows are gathered from other parts.
//
// # Why not
//
// Why not move the boundary during a run where the host addresses the region: the windows that read
// the displaced rows are planned already, so these rows must be available elsewhere at once. Each
// therefore lies on the host as well. Where both are one memory, the row is there twice, and the
// second copy serves nobody. If it were given up for good when the first steps keep hidden rows,
// the tiers would have to fetch rows that they count as always resident, in the middle of windows,
// for one epoch of a run. So there slots have all their bytes from the start, and the rows of the
// region are fixed. The hottest rows need not be the outermost then.
//
// Why not slot by slot, as the paper has it: a ring's slots lie one behind the other within a
// chunk, so that a place follows from a table of chunks that is small, and several rings can grow
// from one end.
//
// Why not host memory that a backend is given: a GPU's slots must lie where its operations reach
// them, so the backend allocates.
package device
