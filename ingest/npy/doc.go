// Package npy reads NumPy's .npy arrays as a stream: [ReadHeader] for the form alone, a [Reader]
// for the elements in file order, [Rows] for a matrix row by row whichever way round it is stored,
// a [View] for elements that lie in a file in any regular way.
//
// All versions of the container are read, numbers and booleans of every width and both byte orders,
// and fixed-width text. What Python alone can decode gives [ErrUnsupported]. Nothing is allocated
// on the word of a header: buffers have a fixed size, and whoever needs more asks for it in the
// slices it passes in.
//
// A Reader is used by one goroutine. The underlying reader stays its owner's to close.
package npy
