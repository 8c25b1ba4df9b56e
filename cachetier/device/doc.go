// Package device is the memory next to the arithmetic: one region that two tenants take from its
// two ends, FreshGNN's bidirectional buffer (arXiv 2301.07482).
//
//	byte 0                                                             end
//	┌─────────────────┬─────────────────┬───┐   ┌───┬─────────┬─────────┐
//	│ slots of ring 0 │ slots of ring 1 │ … │►◄─│ … │ table 1 │ table 0 │
//	└─────────────────┴─────────────────┴───┘   └───┴─────────┴─────────┘
//	hidden rows of earlier steps                feature rows
//
// Slots for hidden rows that earlier steps computed are taken from the start, feature rows from the
// end. One size bounds both: what slots leave free rows may take, and no part is given that would
// reach into another. Of a table the region has the first rows, which ingest has made the hottest,
// so that "is row v there" is v < F.
//
// Two types: a [Buffer] is the region, and a [Part] what a tenant has of it. Which slot holds whose
// hidden row of which step is the business of package train/history, which rows of a table lie here
// that of package cachetier.
//
// Memory: who makes a Buffer closes it, once every Part is closed. A Part is plain memory, and its
// tenant's alone: several goroutines may use different parts at once, a step that of slots while
// rows are gathered from others.
//
// # Why not
//
// Why is the junction where it is for a whole run, though the paper's slots join one by one, each
// in the place of the coldest row: the rows that give way must be had from elsewhere at once, since
// the windows that read them are planned, so each of them lies on the host as well. A GPU's memory
// is beside the host's, and such a row is worth its place there until a slot wants it. Where both
// are one memory the row is there twice, and the second time serves nobody. To give it up for good
// when the first steps keep hidden rows would have the tiers bring rows that they count as always
// there, in the middle of windows, for one epoch of a run. So slots have their bytes from the
// start, all of them, and the rows of the region are fixed. The hottest rows need not be the
// outermost then.
//
// Why not host memory that a backend is shown: a GPU's slots lie where its operations reach them,
// so it is the backend that allocates.
package device
