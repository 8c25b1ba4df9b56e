// Package archive reads the members of zip archives of arrays, NumPy's .npz and PyTorch's .pt, as
// storage that can be read anywhere: [Open], then [Archive.Member].
//
// A member that is stored, as both writers leave it unless told otherwise, is read in place. A
// deflated one is inflated as it is read front to back; only up to [MaxInflated] bytes is it held
// in memory, for readers that must jump.
//
// # Bounds
//
// Sizes come from the directory at the end of the file, zip64 and data descriptors included, and
// are held against the file. Names are never paths: nothing is written; and they are the same in
// the directory and where a member lies, see [NewReader]. The directory has a fixed limit, and so
// has all that is held.
//
// A checksum is compared when a member is read front to back as a whole, and by [Archive.Verify].
// PyTorch can be told to write none, which leaves a zero.
package archive
