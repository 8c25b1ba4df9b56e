package metric

import (
	"fmt"
	"math"
)

// Metrics of numbers. Less is better.
const (
	// RMSE is the root of the mean of (prediction - target)².
	RMSE Kind = "rmse"
	// MAE is the mean of |prediction - target|.
	MAE Kind = "mae"
)

// NumberKinds are the metrics of numbers.
var NumberKinds = []Kind{RMSE, MAE}

// OfNumbers reports whether k measures numbers.
func (k Kind) OfNumbers() bool { return k == RMSE || k == MAE }

// Better reports whether a is a better value of k than b.
func (k Kind) Better(a, b float64) bool {
	if k.OfNumbers() {
		return a < b
	}
	return a > b
}

// Numbers measures predictions of one number each. It adds up in float64, in the order in which
// they come.
type Numbers struct {
	kind Kind
	sum  float64
	n    int64
}

// NewNumbers makes the accumulator of k.
func NewNumbers(k Kind) (*Numbers, error) {
	if !k.OfNumbers() {
		return nil, fmt.Errorf("{metric} %s: of numbers there are rmse and mae", k)
	}
	return &Numbers{kind: k}, nil
}

// Add takes predictions and their targets. A target of NaN is not known, and not counted.
func (m *Numbers) Add(predictions, targets []float32) {
	if len(predictions) != len(targets) {
		panic(fmt.Sprintf("metric: %d predictions of %d numbers", len(predictions), len(targets)))
	}
	for i, y := range targets {
		if y != y {
			continue
		}
		off := math.Abs(float64(predictions[i]) - float64(y))
		if m.kind == RMSE {
			off *= off
		}
		m.sum += off
		m.n++
	}
}

// Total returns the sum behind the metric's mean, and the number of terms, for Mean.
func (m *Numbers) Total() (sum float64, n int64) { return m.sum, m.n }

// Mean returns the metric for a sum of n terms from Total.
func (m *Numbers) Mean(sum float64, n int64) float64 {
	mean := sum / float64(n)
	if m.kind == RMSE {
		return math.Sqrt(mean)
	}
	return mean
}

// Value returns the metric of all numbers since the last Reset.
func (m *Numbers) Value() (float64, error) {
	switch {
	case m.n == 0:
		return 0, undefined(m.kind, "no number is known")
	case m.sum != m.sum || math.IsInf(m.sum, 0):
		return 0, undefined(m.kind, "a prediction is not finite")
	}
	return m.Mean(m.sum, m.n), nil
}

// Reset begins anew.
func (m *Numbers) Reset() { m.sum, m.n = 0, 0 }
