// Package sweep tries settings of a run: each combination of some values, or combinations drawn at
// random. It compares the settings by validation, and measures the test part for the chosen one
// alone.
//
// A [Grid] has the options, fixed and varying, and [Grid.Settings] lists its settings.
// [Halving.Ladder] plans successive halving: how many settings train up to which epoch. [Sweep.Do]
// trains the runs, one after the other, by a function of its caller. A [Dir] is the directory of
// the runs. It holds the grid, and is locked while a sweep is at work in it.
//
// A sweep keeps no state besides its runs. The figures of the runs decide which settings go on. So
// a sweep that was killed reads its runs again, and comes to the same end. Only one goroutine may
// use a value of this package at a time.
//
// # Why not
//
// Asynchronous halving, and Bayesian search over several runs at once, depend on which run ends
// first, and so on the speed of the machine. Runs side by side would share one memory limit, and
// one run already uses all processors.
package sweep
