package tape

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/kernels"
)

// TestLossGradients compares the gradient of the mean loss by a weight matrix with finite
// differences, in float64.
func TestLossGradients(t *testing.T) {
	const rows, in, out = 4, 3, 5
	be, rng := kernels.NewReference(), rand.New(rand.NewPCG(1, 2))
	tensor := func(rows, cols int, values ...float64) kernels.Tensor {
		x := kernels.Tensor{Buf: be.Alloc(kernels.F32, rows*cols), Rows: rows, Cols: cols}
		if values == nil {
			for range rows * cols {
				values = append(values, rng.NormFloat64())
			}
		}
		be.UploadF64(x, values)
		return x
	}
	read := func(x kernels.Tensor) []float64 {
		s := make([]float64, x.Len())
		be.DownloadF64(s, x)
		return s
	}
	labels := kernels.Tensor{Buf: be.Alloc(kernels.U32, rows), Type: kernels.U32, Rows: rows, Cols: 1}
	be.UploadU32(labels, []uint32{4, kernels.NoLabel, 0, 0})
	weights := tensor(rows, 1, 0.5, 3, 2, 2)
	targets := tensor(rows, out)
	cells, known := make([]float64, rows*out), 0
	for i := range cells {
		if cells[i] = float64(i % 2); i%3 == 0 {
			cells[i] = math.NaN()
		} else {
			known++
		}
	}
	be.UploadF64(targets, cells)
	x := tensor(rows, in)
	for name, loss := range map[string]struct {
		of    func(*Tape, *Var, float32) kernels.Tensor
		total float64 // what the losses' sum is divided by
	}{
		"weighted": {func(t *Tape, y *Var, scale float32) kernels.Tensor {
			return t.WeightedCrossEntropy(y, labels, weights, scale)
		}, 0.5 + 2 + 2},
		"sigmoid": {func(t *Tape, y *Var, scale float32) kernels.Tensor {
			return t.SigmoidCrossEntropy(y, targets, scale)
		}, float64(known)},
		"squared": {func(t *Tape, y *Var, scale float32) kernels.Tensor {
			return t.SquaredError(y, targets, scale)
		}, float64(known)},
	} {
		w, grad := tensor(out, in), tensor(out, in, make([]float64, out*in)...)
		tape := New(be)
		forward := func(record bool) (mean float64) {
			tape.Reset(record)
			for _, l := range read(loss.of(tape, tape.Affine(nil, Term{X: tape.Leaf(x), W: NewParam(w, grad)}), float32(1/loss.total))) {
				mean += l / loss.total
			}
			return mean
		}
		forward(true)
		tape.Backward()
		got, point := read(grad), read(w)
		for i, v := range point {
			const h = 1e-5
			point[i] = v + h
			be.UploadF64(w, point)
			above := forward(false)
			point[i] = v - h
			be.UploadF64(w, point)
			below := forward(false)
			point[i] = v
			// scale is a float32: 1e-7 of it is lost.
			require.InDelta(t, (above-below)/(2*h), got[i], 1e-6, "%s, weight %d", name, i)
		}
		tape.Close()
	}
}

// TestLossesAgreeWithPyTorch reads testdata/torch.json: see tools/refnums/losses.py.
func TestLossesAgreeWithPyTorch(t *testing.T) {
	type mean struct {
		Loss     float64   `json:"loss"`
		Gradient []float32 `json:"gradient"`
	}
	var torch struct {
		Rows     int       `json:"rows"`
		Classes  int       `json:"classes"`
		Logits   []float32 `json:"logits"`
		Labels   []int64   `json:"labels"`
		Weights  []float32 `json:"weights"`
		Targets  []float32 `json:"targets"`
		Known    []int     `json:"known"`
		Weighted mean      `json:"weighted"`
		Sigmoid  mean      `json:"sigmoid"`
	}
	b, err := os.ReadFile("testdata/torch.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(b, &torch))

	be := kernels.NewCPU(kernels.CPUOptions{})
	tensor := func(rows int, values []float32) kernels.Tensor {
		x := kernels.Tensor{Buf: be.Alloc(kernels.F32, len(values)), Rows: rows, Cols: len(values) / rows}
		be.UploadF32(x, values)
		return x
	}
	labels, weights, total := make([]uint32, torch.Rows), make([]float32, torch.Rows), 0.0
	for r, label := range torch.Labels {
		if labels[r] = kernels.NoLabel; label >= 0 {
			labels[r], weights[r] = uint32(label), torch.Weights[label]
			total += float64(weights[r])
		}
	}
	labelled := kernels.Tensor{Buf: be.Alloc(kernels.U32, torch.Rows), Type: kernels.U32, Rows: torch.Rows, Cols: 1}
	be.UploadU32(labelled, labels)
	known := 0.0
	for i, k := range torch.Known {
		known += float64(k)
		if k == 0 {
			torch.Targets[i] = float32(math.NaN())
		}
	}
	check := func(name string, want mean, total float64, of func(*Tape, *Var, float32) kernels.Tensor) {
		tape, grad := New(be), tensor(torch.Rows, make([]float32, len(torch.Logits)))
		defer tape.Close()
		losses := of(tape, NewParam(tensor(torch.Rows, torch.Logits), grad), float32(1/total))
		rows, sum := make([]float32, torch.Rows), 0.0
		be.DownloadF32(rows, losses)
		for _, l := range rows {
			sum += float64(l)
		}
		require.InEpsilon(t, want.Loss, sum/total, 1e-6, name)
		got := make([]float32, len(torch.Logits))
		be.DownloadF32(got, grad)
		require.InDeltaSlice(t, want.Gradient, got, 1e-7, name)
	}
	check("weighted", torch.Weighted, total, func(t *Tape, y *Var, scale float32) kernels.Tensor {
		return t.WeightedCrossEntropy(y, labelled, tensor(torch.Rows, weights), scale)
	})
	check("sigmoid", torch.Sigmoid, known, func(t *Tape, y *Var, scale float32) kernels.Tensor {
		return t.SigmoidCrossEntropy(y, tensor(torch.Rows, torch.Targets), scale)
	})
}
