// Package staleness answers how many steps old the state of nodes may be, so that training on a
// stream never waits for it.
//
// A network for streams keeps state of each node, which every step reads and rewrites. A step has
// six stages: it samples, pages rows in from disk, fetches features, fetches state, trains, and
// publishes the new state. Stages of different steps overlap. With a staleness of k, step i sees
// all updates of steps up to i-k and none of later ones. k = 1 is the plain loop, and a larger k
// lets the fetch of state begin earlier. This is the pipeline of MSPipe (arXiv 2402.15113, section
// 4), which has no paging.
//
// Three things to know. [Costs] has the times of the stages, and the closed forms: the period of a
// step for any k, and the least k that reaches the best period. [Overlap] counts how much of the
// rows that steps read was rewritten by the steps just before, which bounds k by its cost in
// accuracy. The k to train with is the smaller of [Costs.Within] and [Overlap.Most]. [Realised]
// counts the same while training at one k.
//
// Everything here is a function of its arguments, and knows no graph, no clock and no pipeline. An
// Overlap or a Realised is used by one goroutine.
//
// # Why not
//
// Why not choose k at each step, as the paper does: results would depend on the times measured at
// each step. A constant k from [Costs.Within], with share 0, has the same period once the pipeline
// is full.
package staleness
