// Package plan decides what a run will do before it does it: here, how its memory is split.
//
// A run is parts that share one budget: the blocks of batches ([Batches]), feature rows ([Rows]), neighbour lists ([Lists]),
// and what is fixed. Each says what it needs at least and what it could use (Need), and rows and lists how long the disk is
// busy when they have so many bytes (Seconds). [Demand.Split] divides the budget so that the disk is busy least.
//
// Everything here is a value or a function of values, without memory or goroutines of its own.
package plan
