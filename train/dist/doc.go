// Package dist lets the workers that train one network exchange what each of them has made.
//
// A worker is the unit of the algorithm: a run has V of them, and its results follow from V. A
// process hosts one worker or several. A [Host] is one process: its [Host.Run] runs the workers
// that it hosts, each on a goroutine of its own with a [Group]. The methods of a Group are
// collective: every worker calls the same ones in the same order. [Group.Gather] brings the bytes
// of each worker to all, and [Group.Sum] adds numbers in the order of the workers, so that the
// result has the same bits on every worker and for every number of processes.
//
// Beneath is one operation, all-to-all of bytes, of a [Comm]. Workers of one process copy to each
// other. Processes exchange by MPI, in builds with the tag mpi.
//
// # How a run ends
//
// Every exchange begins with a header of 64 bytes from each worker to each. A worker that has
// failed, or that is asked to stop, says so in the header of the exchange that the others begin
// next: see [Group.Leave]. Then all of them end at that point, and the error names the worker that
// failed. Workers that begin different exchanges, as by a bug, all get an error. A worker that does
// not come at all is named once [Options.Timeout] has passed.
//
// Memory: what a method returns is the caller's until the Group's next call, unless it says
// otherwise. Concurrency: each Group belongs to one goroutine at a time.
//
// Start reading at [Group.Sum].
//
// # Why not
//
//   - Reductions of the MPI library: their order of adding follows the library, the number of
//     processes and the size of messages, and so would the last bits of the weights.
//   - Cgo: a program would be of one family of MPI libraries, and need its headers to be built.
//   - Connections of our own: launching, trust and tuning for each kind of network are what
//     schedulers have MPI for.
package dist
