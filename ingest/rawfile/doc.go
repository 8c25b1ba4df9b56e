// Package rawfile writes the files that other tools of the trade read: NumPy's archives of arrays
// ([NPZ]), PyTorch's saved objects ([PT], [Pickler]), and gzip ([NewGzip]). All are written front
// to back, so that what they hold may be larger than memory; compression is in blocks on all
// processors.
//
// A writer belongs to one goroutine. It is closed also after an error, which ends its own
// goroutines.
//
// # Why not
//
// Why not pgzip? An npz wants bare DEFLATE, which it does not give; with that at hand gzip is a
// header and a checksum.
package rawfile
