package metric

import "math"

// Spread is the mean of some values and their standard deviation, with n-1 in the denominator. The
// deviation of one value is 0.
type Spread struct {
	Mean      float64 `json:"mean"`
	Deviation float64 `json:"deviation"`
}

// SpreadOf returns the Spread of values, or nil if there are none.
func SpreadOf(values []float64) *Spread {
	if len(values) == 0 {
		return nil
	}
	s, n := new(Spread), float64(len(values))
	for _, v := range values {
		s.Mean += v
	}
	s.Mean /= n
	if n == 1 {
		return s
	}
	for _, v := range values {
		s.Deviation += (v - s.Mean) * (v - s.Mean)
	}
	s.Deviation = math.Sqrt(s.Deviation / (n - 1))
	return s
}
