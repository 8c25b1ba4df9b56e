package kernels

import "math"

// Adam updates param, m and v in place from grad.
func Adam(param, grad, m, v []float32, s AdamStep) {
	grad, m, v = grad[:len(param)], m[:len(param)], v[:len(param)]
	for i := range param {
		g := grad[i] + s.WeightDecay*param[i]
		m[i] = s.Beta1*m[i] + (1-s.Beta1)*g
		v[i] = s.Beta2*v[i] + (1-s.Beta2)*g*g
		step := m[i] / s.Correct1 / (float32(math.Sqrt(float64(v[i]/s.Correct2))) + s.Eps)
		param[i] -= s.LR * step
	}
}
