// Package lines reads text a line at a time in fixed memory, from a plain file or one that gzip or
// zstd packed, and words the errors about it: [Open] a [Scanner], call Next until io.EOF, and
// Errorf about what a line says.
//
// It takes several gzip members after each other, lines that end in \r\n or, the last, in nothing.
// A line has at most [MaxLine] bytes. A truncated or damaged file is an error that says so, also
// when a line of nonsense shows first.
//
// A Scanner is used by one goroutine.
//
// # Why not one reader of rows
//
// Rows without quotes are cut by [Cells], whatever the format. With quotes three readers differ in
// what they accept:
//
//   - csvgz knows the number of cells beforehand and reads numbers where they lie. A blank line may
//     be a missing label.
//   - table follows RFC 4180. Blanks belong to a cell, and a quote inside it is an error. A bad row
//     ends where the error is, and the next line begins another.
//   - edgelist takes what people write: cells between two bytes or blanks, blanks around cells, and
//     quotes inside. It joins the lines of a row before it cuts them, and does not pass over a bad
//     row of several lines, which may have swallowed good ones. Most rows are two integers, which
//     it reads without cutting.
package lines
