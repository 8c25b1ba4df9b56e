package temporal

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/kernels"
)

// TestProbe: logits and the loss equal plain loops in float64, and steps find classes that
// embeddings have.
func TestProbe(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	be := kernels.NewCPU(kernels.CPUOptions{})
	const in, classes, rows = 7, 3, 60
	p := NewProbe(be, in, classes, 5)
	defer p.Close()
	z, labels := make([]float32, rows*in), make([]uint32, rows)
	for i := range z {
		z[i] = float32(rng.NormFloat64())
	}
	for r := range labels {
		labels[r] = uint32(r % classes)
		z[r*in+r%classes] += 2
	}
	check := func() (loss float64, right int) {
		w := p.Weights()
		got := p.Logits(z)
		for r := range rows {
			var y [classes]float64
			for c := range y {
				y[c] = float64(w[3][c])
				for h := range probeHidden {
					x := float64(w[1][h])
					for k := range in {
						x += float64(w[0][h*in+k]) * float64(z[r*in+k])
					}
					y[c] += float64(w[2][c*probeHidden+h]) * max(0, x)
				}
				require.InDelta(t, y[c], got[r*classes+c], 1e-4)
			}
			sum, best := 0.0, 0
			for c := range y {
				sum += math.Exp(y[c])
				if y[c] > y[best] {
					best = c
				}
			}
			loss += (math.Log(sum) - y[labels[r]]) / rows
			if best == int(labels[r]) {
				right++
			}
		}
		return loss, right
	}
	want, _ := check()
	before := p.Weights()
	require.InDelta(t, want, p.Step(z, labels, 1e-2), 1e-5)
	for range 100 {
		p.Step(z, labels, 1e-2)
	}
	loss, right := check()
	require.Less(t, loss, want/4)
	require.Greater(t, right, 55)
	p.SetWeights(before)
	again, _ := check()
	require.Equal(t, want, again)
	require.Len(t, p.Logits(z[:in]), classes)
	require.Panics(t, func() { p.Step(z, labels[:3], 1) })
}
