package kernels

import "math"

func adamRef[T float](param, grad, m, v []T, s AdamStep) {
	lr, beta1, beta2, eps, decay := T(s.LR), T(s.Beta1), T(s.Beta2), T(s.Eps), T(s.WeightDecay)
	for i := range param {
		g := grad[i] + decay*param[i]
		m[i] = beta1*m[i] + (1-beta1)*g
		v[i] = beta2*v[i] + (1-beta2)*g*g
		mHat, vHat := m[i]/T(s.Correct1), v[i]/T(s.Correct2)
		param[i] -= lr * mHat / (T(math.Sqrt(float64(vHat))) + eps)
	}
}
