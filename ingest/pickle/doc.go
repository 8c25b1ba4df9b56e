// Package pickle reads the data in Python pickles, protocols 0 to 5, without running what they say:
// [Dialect.ReadFile] or [Dialect.Load], then a type switch over the types that Load lists.
//
// A pickle is a program that may call anything Python can import. This machine knows the opcodes
// that build data and an allow-list of globals: NumPy's arrays, dtypes and scalars, SciPy's CSR,
// CSC and COO matrices (as an [Object] with its state), defaultdict, sets (as a [List]), and the
// handful of helpers by which Python versions write them. A [Dialect] adds the globals that the
// files of one library need. Every other import, call or opcode is an error of one line that names
// the file, the byte and the reason.
//
// A dict of many items need not fit in memory: [Dialect.EachItem] streams them.
//
// # Bounds
//
// The file is in memory, [MaxFile] bytes at most, and strings and arrays are lent from it; they
// last as long as it does. The machine does not recurse. Each opcode takes time and memory in
// proportion to the bytes and values that it consumes: sizes are held against what is left of the
// file before they are believed, and the memo is a table of the entries there are and not of the
// largest index. What the file and its objects take is counted as they are made: beyond [Share] of
// the ingest's memory, [Dialect.Memory], the pickle ends in an error.
//
// What comes out may hold one list in many places, or a list in itself. Whoever walks it goes by
// the form that it should have, and counts.
//
// # Why not a library
//
// The one at hand (nlpodyssey/gopickle) makes a slice of a declared size before it reads, and its
// integers of any length are decoded in quadratic time; both are out of reach from outside. Data
// alone needs less than it has.
package pickle
