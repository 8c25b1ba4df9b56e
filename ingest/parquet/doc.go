// Package parquet reads columns of Parquet files row by row, in memory that does not depend on what
// a file says of itself: [Open] a [File], see its Columns, and let [File.Rows] give the cells of
// some of them.
//
// A cell is null, an integer (booleans and times of day are some), a number, text, or a list of
// numbers. Dates, and dates with times, are text as in ISO 8601, whatever their unit. Nested
// columns are called by their path, "a.b"; lists of lists, maps, decimals and INT96 cannot be read,
// and [Column].Why says so. Pages may be packed by snappy, gzip, zstd or LZ4_RAW, of either
// version, in any encoding of the format but BIT_PACKED.
//
// A File may be used by several goroutines, a [Rows] by one.
//
// # Memory
//
// The footer, and for each column that is read one page and one dictionary, packed and unpacked:
// four times 64 MiB at most, and usually some MiB. Values, levels and lengths are decoded one at a
// time where they lie.
//
// # Why not parquet-go's reader
//
// Its metadata types are used here, and the tests compare with its reader and writer. But its
// decoders (v0.32.0) allocate what a header declares (lists of the footer, statistics, values of a
// page), runs as long as they say they are, and whatever a codec inflates to; LZ4_RAW that does not
// decode is tried again with twice the memory, for ever.
package parquet
