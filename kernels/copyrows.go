package kernels

import "fmt"

// Move is a row to copy: its number in the source and in the destination.
type Move struct{ From, To uint32 }

// CopyRows copies row From of src to row To of dst for each move, on the caller's goroutine. Rows
// have size bytes and lie one behind the other. No destination is named twice, or is a source. A
// row that is not there panics, before any is copied.
//
// It is for rows that lie far apart in memory, where it brings the next rows into the processor's
// cache while it copies one.
func CopyRows(dst, src []byte, size int, moves []Move) {
	from, to := uint32(0), uint32(0)
	for _, m := range moves {
		from, to = max(from, m.From), max(to, m.To)
	}
	if len(moves) > 0 && (size < 1 || int(from) >= len(src)/size || int(to) >= len(dst)/size) {
		panic(fmt.Sprintf("kernels: CopyRows: row %d of %d bytes to row %d, and there are %d bytes and %d", from, size, to, len(src), len(dst)))
	}
	fastest.copyRows(dst, src, size, moves)
}

// copyRows is CopyRows of rows that are there.
func copyRows(dst, src []byte, size int, moves []Move) {
	for _, m := range moves {
		copy(dst[int(m.To)*size:][:size], src[int(m.From)*size:][:size])
	}
}
