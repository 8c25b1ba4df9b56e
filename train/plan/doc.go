// Package plan decides what a run will do before it does it: how its memory is split, what its
// steps draw, which of them read their rows together, and what stays in memory.
//
// # The memory
//
// A run is parts that share one budget: the blocks of batches ([Batches]), feature rows ([Rows]),
// neighbour lists ([Lists]), and what is fixed. Each part has a least size that works and a most
// that is of use (Need). Rows and lists also give the time that the disk is busy when they have so
// many bytes (Seconds). [Demand.Split] divides the budget so that the disk is busy least. These are
// values and functions of values, without memory or goroutines of their own.
//
// # The steps
//
// A [Planner] decides the future of a range of steps. The way of a decision, in order:
//
//	Begin      a range of steps, and what they are drawn from
//	Next       how many steps the next group has; draw it; have each table expect its rows; how many of its steps fit every table
//	Keep       what stays in each table's cache beside the rows of the window
//	WriteBack  a step was used, and this is what it wrote; Written waits for that
//	Done       the bytes of its batch are free for a group to come
//
// Forecast takes the same decisions about steps that are drawn, and counts what their windows would
// read.
//
// A group is the steps that are drawn together, hop by hop, so that the neighbour lists of all of
// them are read in one pass of the file. A window is the steps, of one group, whose feature rows
// are read in one pass. Both follow from the batches drawn before and from the budgets, never from
// timing: neither that nor the number of samplers changes a batch, an order or a counter of the
// tables. The code that reads, gathers and uses follows the plan, and decides nothing.
//
// # Horizons
//
// With a spill ([Join]) a range of many windows goes by horizons: the steps of many windows are
// drawn, their batches sent to the spill, and each table is scanned once for all their rows, while
// the windows of the horizon before are used. A goroutine of the Planner's prepares the next
// horizon, and scans for it once the windows of the one in use have left room in the spill. How
// long it may be, and for which windows that waits, is known beforehand, so that neither depends on
// timing, unless the room between hops is full. Begin and Reset wait for its end.
//
// Workers that draw from each other's lists (Config.Agree) go by horizons if all of them can. They
// agree on the size of each group before they draw it. After the draw they agree on each of its
// steps: a step that one worker has no room for ends the horizon of all. So all workers' horizons
// have the same steps; their windows differ.
//
// No worker waits for ever. While a worker draws horizon k, it waits for two things: for the other
// workers' part of the draw, and for its own windows of horizon k-2 to be loaded. The other workers
// begin to draw horizon k once they have planned all their windows of horizon k-2. All steps of
// horizon k-2 are drawn by then, so using them waits for no draw.
//
// Memory: a Planner owns the batches. Next lends them, Done takes them back for later steps, and
// the collector has them with the Planner.
//
// Concurrency: one goroutine calls Begin, Next, Draw, Forecast and Reset; one calls Keep, in the
// order of Next; one WriteBack, in the order of steps. Done, Written, Newest and Worked may be
// called at any time. Decisions are made under one lock, which is never held while drawing, reading
// or waiting.
//
// Start at [Planner.Next].
package plan
