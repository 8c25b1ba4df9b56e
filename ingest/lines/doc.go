// Package lines reads text a line at a time in fixed memory, from a plain file or one that gzip or
// zstd packed, and words the errors about it: [Open] a [Scanner], call Next until io.EOF, and
// Errorf about what a line says.
//
// It takes several gzip members after each other, lines that end in \r\n or, the last, in nothing.
// A line has at most [MaxLine] bytes. A truncated or damaged file is an error that says so, also
// when a line of nonsense shows first.
//
// A Scanner is used by one goroutine.
package lines
