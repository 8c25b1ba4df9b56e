package kernels

import (
	"fmt"
	"testing"
)

// BenchmarkRows runs everything but products and aggregations, on one core. array=warm has the size
// of one chunk of an operation; array=cold is far larger than a second-level cache. Bytes are the
// bytes that the operation must read and write.
func BenchmarkRows(b *testing.B) {
	const cols, classes = 256, 48
	for _, array := range []struct {
		name string
		rows int
	}{{"warm", 64}, {"cold", 64 << 10}} {
		rows := array.rows
		n := rows * cols
		x, y, dx, m, v := floatsFrom(1, n), floatsFrom(2, n), make([]float32, n), make([]float32, n), make([]float32, n)
		halves, ids, labels := halvesOfFloats(x), make([]uint32, rows), make([]uint32, n/classes)
		for i := range ids {
			ids[i] = uint32(i * 977)
		}
		for i := range labels {
			labels[i] = uint32(i % classes)
		}
		stats, gain, bias, dgain, dbias := make([]float32, 2*rows), floatsFrom(2, cols), floatsFrom(3, cols), make([]float32, cols), make([]float32, cols)
		logits := x[:len(labels)*classes]
		loss, best := make([]float32, len(labels)), make([]uint32, len(labels))
		step := AdamStep{LR: 0.01, Beta1: 0.9, Beta2: 0.999, Eps: 1e-8, Correct1: 0.1, Correct2: 0.001}
		for _, op := range []struct {
			name  string
			bytes int // per element
			run   func(r *routines)
		}{
			{"fill", 4, func(r *routines) { r.fill(dx, 0.5) }},
			{"add", 12, func(r *routines) { r.add(dx, x) }},
			{"addRow", 8, func(r *routines) { r.addRow(dx, gain) }},
			{"columnSumGrad", 4, func(r *routines) { r.columnSumGrad(dgain, x) }},
			{"relu", 8, func(r *routines) { r.relu(dx, x) }},
			{"reluGrad", 16, func(r *routines) { r.reluGrad(dx, x, y) }},
			{"halfToFloat32", 6, func(r *routines) { r.widen(dx, halves) }},
			{"float32ToHalf", 6, func(r *routines) { r.narrow(halves, x) }},
			{"gelu", 8, func(r *routines) { r.gelu(dx, x) }},
			{"geluGrad", 16, func(r *routines) { r.geluGrad(dx, x, y) }},
			{"gate", 12, func(*routines) { Gate(dx, x, y, 0.25, 0.75) }},
			{"gateGrad", 28, func(*routines) { GateGrad(dx, m, x, y, v, 0.25, 0.75) }},
			{"dropout", 8, func(r *routines) { r.dropout(dx, x, ids, cols, 42, 0.5) }},
			{"dropoutHalf", 6, func(r *routines) { r.dropoutHalf(dx, halves, ids, cols, 42, 0.5) }},
			{"dropoutGrad", 12, func(r *routines) { r.dropoutGrad(dx, x, ids, cols, 42, 0.5) }},
			{"layerNorm", 8, func(r *routines) { r.layerNorm(dx, stats, x, gain, bias, 1e-5) }},
			{"layerNormGrad", 16, func(r *routines) { r.layerNormGrad(dx, dgain, dbias, y, x, stats, gain, true) }},
			{"exp", 8, func(r *routines) { r.exp(dx, x) }},
			{"softmaxCrossEntropy", 8, func(r *routines) { r.softmaxCrossEntropy(loss, dx, logits, labels, classes, 1) }},
			{"argMax", 4, func(r *routines) { r.argMax(best, logits, classes) }},
			{"adam", 28, func(r *routines) { r.adam(dx, x, m, v, step) }},
		} {
			for _, set := range Sets() {
				r := routinesOf(set)
				b.Run(fmt.Sprintf("op=%s/array=%s/set=%s", op.name, array.name, set), func(b *testing.B) {
					clear(dx)
					b.SetBytes(int64(op.bytes * n))
					for b.Loop() {
						op.run(&r)
					}
					b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "elements/s")
				})
			}
		}
	}
}
