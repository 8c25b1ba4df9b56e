// Package kernels is the arithmetic of gnnstore: everything a graph neural network computes, and nothing else. It knows
// no graph, no file and no model.
//
// It has two layers. Below are plain functions on slices and sizes, one family to a file: [HalfToFloat32],
// [MatMul], [NeighborMean], [LayerNorm] and so on. They run on the caller's goroutine, keep no state, and trust the sizes
// they are given: a slice that is too short fails Go's own bounds check. Beside each family lies its definition as a
// whiteboard loop (norm.go, norm_ref.go), generic over float32 and float64.
//
// Above is [Backend], the same operations on buffer handles, so that model code is written once for every device. It
// checks shapes, and splits the work over threads. [CPU] runs the plain functions; [Reference] runs the whiteboard loops
// in float64, as the oracle of the conformance suite in package kerneltest and for gradient checks.
//
// Memory: a Buffer belongs to the Backend that made it, a [Tensor] is a window into one, and the caller frees buffers,
// not windows. Host lends; the other transfers copy. Plain functions keep no slice after they return. Large buffers of a
// CPU are a [HostBuf], memory outside the Go heap, which other packages use for what they keep.
//
// Concurrency: plain functions may run at once on destinations that do not overlap. A Backend serves one goroutine at a
// time; the goroutines that it starts end before the call does.
//
// Start reading at [Backend], then aggregate.go, which is where a graph model spends its memory bandwidth.
//
// # Why not
//
// Sums over rows (bias gradients, layer norm's gain) could be split per thread; they are split by fixed chunk, because
// results must not depend on the number of threads. For the same reason gonum's Sgemm is called on tiles below the size
// at which it would start goroutines of its own.
//
// Dropout could draw from a generator; it hashes the element's coordinates, so that the backward pass recomputes the mask
// instead of storing it, and so that a mask does not depend on the order in which rows were computed.
package kernels
