// Package sweep tries settings of a run: each combination of some values, or combinations drawn at
// random. It compares the settings by validation, and measures the test part for the chosen one
// alone.
//
// A [Grid] has the options, fixed and varying, and [Grid.Settings] lists its settings. A [Ladder]
// is the plan of successive halving: after so many epochs so many settings go on. [Sweep.Do] trains
// the runs, one after the other, by a function of its caller. A [Dir] is the directory of the runs,
// locked while a sweep is at work in it, with the grid on record.
//
// A sweep keeps no other state than its runs. The settings that go on follow from the figures of
// the runs, so a sweep that was killed reads its runs again, and comes to the same end. Its
// functions are for one goroutine at a time.
//
// # Why not
//
// Asynchronous halving and Bayesian choices depend on which run ends first, and so on the speed of
// the machine. Runs side by side would share one memory limit, and a run alone uses all processors
// already.
package sweep
