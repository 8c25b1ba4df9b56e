package kernels

// Peak multiplies and adds in registers for some 200 µs on one core, with nothing to wait
// for, and returns how many floating-point operations that were. Timed, it is the ceiling of the
// set's products of matrices. It returns 0 for a set without assembly, whose ceiling is the
// compiler's, and panics for one that this machine cannot run.
func Peak(s Set) (operations int) {
	set, err := ParseSet(string(s), Float32)
	if err != nil {
		set, err = ParseSet(string(s), BF16)
	}
	if err != nil {
		panic("kernels: Peak: " + err.Error())
	}
	peak := routinesOf(set).peak
	if peak == nil {
		return 0
	}
	for range peakCalls {
		operations += peak()
	}
	return operations
}

// peakCalls makes the search for the set's routines, some µs, small beside the work.
const peakCalls = 32
