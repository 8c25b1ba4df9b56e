// Package csvgz scans gzipped tables of numbers, a line at a time in fixed memory: make a
// [Scanner], then call Ints, Floats or Labels for as many lines as there are. There is no header
// line and no quoting beyond a pair of quotes around a cell.
//
// What it takes in its stride, because real files have it: several gzip members after each other,
// lines that end in \r\n or, the last, in nothing, blank lines at the end, spaces around a cell,
// integers written 3.0 or 1e+06, and nan or an empty cell where a value is missing. What it does
// not take is an error of one line that names the file and the line.
//
// A Scanner is used by one goroutine.
//
// # Why not encoding/csv
//
// It makes a string of every cell; scanning the digits where they lie is over three times as fast
// (BenchmarkInts, gzip without compression).
package csvgz
