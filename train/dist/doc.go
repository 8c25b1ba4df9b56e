// Package dist lets the workers that train one network exchange what each of them has made.
//
// A worker is the unit of the algorithm: a run has V of them. Its results depend on V, and not on
// the number of processes. A process hosts one worker or several. A [Host] is one process: its
// [Host.Run] runs the workers that it hosts, each on a goroutine of its own with a [Group]. The
// methods of a Group are collective: every worker calls the same ones in the same order.
// [Group.Gather] brings the bytes of each worker to all, and [Group.Sum] adds numbers in the order
// of the workers, so that the result has the same bits on every worker and for every number of
// processes.
//
// Every method is built on one operation: each worker sends bytes to each worker. Workers of one
// process copy to each other. Processes exchange by MPI, in builds with the tag mpi.
//
// With [Host.SetTopology] an exchange of large messages goes in rounds, so that no two messages are
// on one link at the same time. A round is that operation, too, in which only some pairs have
// bytes. A process begins a round once its own messages of the round before have arrived. It does
// not wait for messages between other processes.
//
// # How a run ends
//
// Every exchange begins with a header of 64 bytes from each worker to each. A worker that has
// failed, or that is asked to stop, says so in its header of the next exchange. Then all of them
// end at that point, and the error names the worker that failed. If a bug makes workers begin
// different exchanges, all get an error. After [Options.Timeout] the wait for a worker that does
// not come is an error, which names it. If it is in another process, all workers of that process
// are named.
//
// Memory: a method returns bytes that are the caller's. Concurrency: each Group belongs to one
// goroutine at a time.
//
// Start reading at [Group.Sum].
//
// # Why not
//
//   - Rounds that follow from the lengths of messages: each worker would need the lengths of all
//     pairs, which takes one exchange more. For equal lengths, which are usual, [rounds.Fixed] is
//     as good.
//   - Reductions of the MPI library: their order of adding follows the library, the number of
//     processes and the size of messages, and so would the last bits of the weights.
//   - Cgo: a program would be of one family of MPI libraries, and need its headers to be built.
//   - Connections of our own: schedulers launch MPI programs, secure them and tune them for each
//     kind of network.
package dist
