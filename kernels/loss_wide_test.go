package kernels

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestWideSoftmax: rows longer than a call of the assembly give the results of the loop, also with
// elements that are not finite.
func TestWideSoftmax(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	const cols = 40_943
	for _, set := range Sets() {
		for _, special := range []float32{0, float32(math.Inf(-1)), float32(math.Inf(1)), float32(math.NaN())} {
			x, labels := make([]float32, 3*cols), []uint32{40_000, NoLabel, 7}
			for i := range x {
				x[i] = float32(rng.NormFloat64() * 10)
			}
			x[35_000] = special
			if special < 0 { // a whole part of them
				for i := range 16_384 {
					x[i] = special
				}
			}
			run := func(be Backend) (loss, d []float32) {
				tensor := func(rows, cols int) Tensor { return Tensor{Buf: be.Alloc(F32, rows*cols), Rows: rows, Cols: cols} }
				l := Tensor{Buf: be.Alloc(U32, 3), Type: U32, Rows: 3, Cols: 1}
				be.UploadU32(l, labels)
				logits, grad, losses := tensor(3, cols), tensor(3, cols), tensor(3, 1)
				be.UploadF32(logits, x)
				be.SoftmaxCrossEntropy(losses, grad, logits, l, 0.5)
				loss, d = make([]float32, 3), make([]float32, 3*cols)
				be.DownloadF32(loss, losses)
				be.DownloadF32(d, grad)
				return loss, d
			}
			wantLoss, want := run(NewCPU(CPUOptions{Set: Portable}))
			gotLoss, got := run(NewCPU(CPUOptions{Set: set}))
			for i := range want {
				same := want[i] == got[i] || want[i] != want[i] && got[i] != got[i]
				require.True(t, same || math.Abs(float64(want[i]-got[i])) <= 1e-6*math.Abs(float64(want[i]))+1e-12, "%s, %v: %d: %v, %v", set, special, i, want[i], got[i])
			}
			for i := range wantLoss {
				if wantLoss[i] == wantLoss[i] {
					require.InDelta(t, wantLoss[i], gotLoss[i], 1e-4, "%s, %v", set, special)
				} else {
					require.True(t, gotLoss[i] != gotLoss[i], "%s, %v", set, special)
				}
			}
		}
	}
}
