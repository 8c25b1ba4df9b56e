//go:build amd64 && !purego

package kernels

import "unsafe"

// rounding has what the two sets with bfloat16 share.
func rounding() *panels {
	return &panels{
		roundRows: roundRowsAVX512BF16, roundRowsHalf: roundRowsHalfAVX512BF16,
		roundPairs: roundPairsAVX512BF16, roundPairsHalf: roundPairsHalfAVX512BF16,
		turnRows: turnRowsAVX512BF16, turnPairs: turnPairsAVX512BF16, turnPairsHalf: turnPairsHalfAVX512BF16,
		add8: matMulAdd8,
	}
}

// dotPanels are products by VDPBF16PS.
func dotPanels() *panels {
	p := rounding()
	p.most = 1 << 22 // 100 µs at 84 GFLOP/s
	p.multiply = func(dst *float32, dstRow int, a, b *uint16, panel, rows, cols, k int, add bool) {
		for {
			routine := dotPanelAVX512BF16x2
			if cols <= panelCols/2 {
				routine = dotPanelAVX512BF16x1
			}
			routine(dst, dstRow, a, 2*padded(k), b, rows, min(cols, panelCols), (k+1)/2, add)
			if cols -= panelCols; cols <= 0 {
				return
			}
			dst, b = further(dst, 4*panelCols), further(b, panel)
		}
	}
	return p
}

// tilePanels are products by AMX.
func tilePanels() *panels {
	p := rounding()
	p.most = 1 << 26 // 45 µs at 3 TFLOP/s
	p.blocked = true
	p.multiply = func(dst *float32, dstRow int, a, b *uint16, panel, rows, cols, k int, add bool) {
		for i := 0; i < rows; {
			high := tileSpan(rows - i)
			for j := 0; j < cols; {
				wide := tileSpan(cols - j)
				config := tileConfig(min(high, 32), min(wide, 32))
				to, left, right := further(dst, i*dstRow+4*j), further(a, 2*i*padded(k)), further(b, j/panelCols*panel)
				blocks, across, steps := (high+31)/32, (wide+31)/32, (k+31)/32
				switch {
				case high > 16 && wide > 16:
					tilePanelsAMX2x2(&config, to, dstRow, left, right, panel, blocks, across, steps, add)
				case high > 16:
					tilePanelsAMX2x1(&config, to, dstRow, left, right, panel, blocks, across, steps, add)
				case wide > 16:
					tilePanelsAMX1x2(&config, to, dstRow, left, right, panel, blocks, across, steps, add)
				default:
					tilePanelsAMX1x1(&config, to, dstRow, left, right, panel, blocks, across, steps, add)
				}
				j += wide
			}
			i += high
		}
	}
	return p
}

// tileSpan returns how many of n rows or columns one call takes: all whole blocks of 32, or the
// rest.
func tileSpan(n int) int {
	if n >= 32 {
		return n &^ 31
	}
	return n
}

// tileConfig is the configuration of AMX for a block of sums, whose tiles lie two by two, and of
// its factors.
func tileConfig(rows, cols int) (c [64]byte) {
	const (
		palette = 0
		columns = 16 // two bytes a tile: bytes of a row
		rowsAt  = 48 // one byte a tile
	)
	c[palette] = 1
	set := func(tile, rows, bytes int) {
		if rows > 0 && bytes > 0 {
			c[rowsAt+tile], c[columns+2*tile] = byte(rows), byte(bytes)
		}
	}
	for i := range 2 {
		high, wide := min(max(rows-16*i, 0), 16), min(max(cols-16*i, 0), 16)
		for j := range 2 {
			set(2*i+j, high, 4*min(max(cols-16*j, 0), 16))
		}
		set(4+i, high, 64)
		set(6+i, 16, 4*wide)
	}
	return c
}

// further is p moved by some bytes.
func further[T any](p *T, bytes int) *T { return (*T)(unsafe.Add(unsafe.Pointer(p), bytes)) }
