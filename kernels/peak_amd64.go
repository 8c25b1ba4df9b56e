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
