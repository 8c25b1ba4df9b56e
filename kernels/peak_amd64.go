//go:build amd64 && !purego

package kernels

// peakRounds is the length of a call: 25,000 multiplications and additions of a vector, 5 to 10 µs.
const peakRounds = 2048

func (r *routines) peakOf(run func(n int), lanes int) {
	r.peak = func() int {
		run(peakRounds)
		return peakRounds * 12 * lanes * 2
	}
}

// bf16Peak is the peak of a set of BF16: a dot product of 16 pairs is 64 operations, and a product
// of tiles 16·16·32 multiplications and additions.
func bf16Peak(s Set) func() int {
	if s == AMX {
		config := tileConfig(32, 32)
		return func() int {
			peakAMX(&config, peakRounds/8)
			return peakRounds / 8 * 4 * 2 * 16 * 16 * 32
		}
	}
	return func() int {
		peakAVX512BF16(peakRounds)
		return peakRounds * 24 * 64
	}
}
