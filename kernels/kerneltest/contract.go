package kerneltest

import (
	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/kernels"
)

// testRefusals calls every operation with one shape that does not fit.
func testRefusals(r *rig) {
	f := func(rows, cols int) kernels.Tensor { return r.normal(rows, cols).tensor }
	u := func(n int) kernels.Tensor { return r.uints(make([]uint32, n)).tensor }
	edges := func(dsts, nbrs int) kernels.Adjacency {
		return kernels.Adjacency{Start: u(dsts), End: u(dsts), Nbr: u(nbrs), RevStart: u(4), RevDst: u(nbrs)}
	}
	b := r.b
	r.refuses(map[string]func(){
		"UploadF32":                 func() { b.UploadF32(f(2, 3), make([]float32, 5)) },
		"UploadU32":                 func() { b.UploadU32(u(2), make([]uint32, 3)) },
		"UploadHalf":                func() { b.UploadHalf(f(2, 3), make([]uint16, 6)) },
		"DownloadF32":               func() { b.DownloadF32(make([]float32, 7), f(2, 3)) },
		"DownloadU32":               func() { b.DownloadU32(make([]uint32, 6), f(2, 3)) },
		"Fill beyond the buffer":    func() { t := f(2, 3); t.Rows = 100; b.Fill(t, 1) },
		"Fill of indices":           func() { b.Fill(u(3), 1) },
		"Convert":                   func() { b.Convert(f(2, 3), f(3, 2)) },
		"Add":                       func() { b.Add(f(2, 3), f(2, 4)) },
		"MatMul inner":              func() { b.MatMul(f(2, 3), f(2, 4), f(5, 3), false, false, false) },
		"MatMul outer":              func() { b.MatMul(f(2, 3), f(4, 3), f(4, 3), false, false, false) },
		"Affine":                    func() { b.Affine(f(2, 3), f(1, 3), false, kernels.Term{X: f(2, 4), W: f(3, 5)}) },
		"Affine bias":               func() { b.Affine(f(2, 3), f(1, 2), false, kernels.Term{X: f(2, 4), W: f(3, 4)}) },
		"ReLUMask":                  func() { b.ReLUMask(f(2, 3), f(2, 4)) },
		"AddRow":                    func() { b.AddRow(f(2, 3), f(1, 2)) },
		"AddRow of rows":            func() { b.AddRow(f(2, 3), f(2, 3)) },
		"ColumnSumGrad":             func() { b.ColumnSumGrad(f(1, 2), f(2, 3)) },
		"NeighborMean columns":      func() { b.NeighborMean(f(2, 3), f(4, 4), edges(2, 1)) },
		"NeighborMean destinations": func() { b.NeighborMean(f(3, 3), f(4, 3), edges(2, 1)) },
		"NeighborMeanGrad columns":  func() { b.NeighborMeanGrad(f(3, 4), f(2, 3), edges(2, 1), 3) },
		"NeighborMeanGrad sources":  func() { b.NeighborMeanGrad(f(4, 3), f(2, 3), edges(2, 1), 4) },
		"AffineGrad":                func() { b.AffineGrad(f(2, 3), f(3, 2), kernels.Tensor{}) },
		"AffineGrad bias":           func() { b.AffineGrad(f(2, 3), kernels.Tensor{}, f(1, 2)) },
		"AffineGrad weights": func() {
			b.AffineGrad(f(2, 3), kernels.Tensor{}, kernels.Tensor{}, kernels.TermGrad{Term: kernels.Term{X: f(2, 4), W: f(3, 4)}, DW: f(4, 3)})
		},
		"ReLU":                       func() { b.ReLU(f(2, 3), f(3, 3)) },
		"ReLUGrad":                   func() { b.ReLUGrad(f(2, 3), f(2, 3), f(2, 4)) },
		"GELU":                       func() { b.GELU(f(2, 3), f(3, 2)) },
		"GELUGrad":                   func() { b.GELUGrad(f(2, 3), f(2, 3), f(3, 2)) },
		"Gate":                       func() { b.Gate(f(2, 3), f(2, 3), f(3, 2), f(1, 1)) },
		"Gate of several":            func() { b.Gate(f(2, 3), f(2, 3), f(2, 3), f(1, 3)) },
		"GateGrad":                   func() { b.GateGrad(f(2, 3), f(2, 2), f(1, 1), f(2, 3), f(2, 3), f(2, 3), f(1, 1)) },
		"GateGrad of several":        func() { b.GateGrad(f(2, 3), f(2, 3), f(2, 1), f(2, 3), f(2, 3), f(2, 3), f(1, 1)) },
		"Dropout ids":                func() { b.Dropout(f(2, 3), f(2, 3), u(3), 1, 0.5) },
		"Dropout of all":             func() { b.Dropout(f(2, 3), f(2, 3), u(2), 1, 1) },
		"DropoutGrad":                func() { b.DropoutGrad(f(2, 3), f(3, 3), u(2), 1, 0.5) },
		"LayerNorm gain":             func() { b.LayerNorm(f(2, 3), f(2, 2), f(2, 3), f(1, 2), f(1, 3), 1e-5) },
		"LayerNorm stats":            func() { b.LayerNorm(f(2, 3), f(2, 3), f(2, 3), f(1, 3), f(1, 3), 1e-5) },
		"LayerNormGrad":              func() { b.LayerNormGrad(f(2, 3), f(1, 3), f(1, 2), f(2, 3), f(2, 3), f(2, 2), f(1, 3), false) },
		"SoftmaxCrossEntropy":        func() { b.SoftmaxCrossEntropy(f(2, 1), f(2, 3), f(2, 3), u(3), 1) },
		"SoftmaxCrossEntropy labels": func() { b.SoftmaxCrossEntropy(f(1, 1), f(1, 3), f(1, 3), r.uints([]uint32{3}).tensor, 1) },
		"SigmoidCrossEntropy":        func() { b.SigmoidCrossEntropy(f(2, 1), f(2, 3), f(2, 3), f(3, 2), 1) },
		"SigmoidCrossEntropy losses": func() { b.SigmoidCrossEntropy(f(2, 3), f(2, 3), f(2, 3), f(2, 3), 1) },
		"SquaredError":               func() { b.SquaredError(f(2, 1), f(2, 3), f(2, 3), f(3, 2), 1) },
		"SquaredError losses":        func() { b.SquaredError(f(2, 3), f(2, 3), f(2, 3), f(2, 3), 1) },
		"Scale of indices":           func() { b.Scale(u(3), 2) },
		"ScaleRows":                  func() { b.ScaleRows(f(2, 3), f(3, 1)) },
		"FetchF32":                   func() { b.FetchF32(make([]float32, 7), f(2, 3)) },
		"FetchU32":                   func() { b.FetchU32(make([]uint32, 6), f(2, 3)) },
		"CheckFinite":                func() { b.CheckFinite(f(1, 1), f(2, 3)) },
		"CheckFinite of flags":       func() { b.CheckFinite(u(2), f(2, 3)) },
		"ClipFactor":                 func() { b.ClipFactor(f(1, 2), f(1, 1), []kernels.Tensor{f(2, 3)}, 1) },
		"ClipFactor squares":         func() { b.ClipFactor(f(1, 1), f(2, 1), []kernels.Tensor{f(2, 3)}, 1) },
		"ArgMax":                     func() { b.ArgMax(u(3), f(2, 3)) },
		"Adam": func() {
			param := kernels.AdamParam{Value: f(2, 3), Grad: f(2, 3), M: f(2, 3), V: f(3, 3)}
			b.Adam([]kernels.AdamParam{param}, 1, kernels.AdamStep{}, kernels.Guard{})
		},
		"Adam of two flags":  func() { b.Adam(nil, 1, kernels.AdamStep{}, kernels.Guard{Void: u(2)}) },
		"Adam of two scales": func() { b.Adam(nil, 1, kernels.AdamStep{}, kernels.Guard{Scale: f(1, 2)}) },
		"StoreRows of a wrong flag": func() {
			b.StoreRows(r.halves(1, 1, make([]float32, 1)).tensor, u(1), f(1, 1), u(1), u(1), f(1, 1))
		},
	})
}

// testRepeat runs the operations that add many numbers together twice over, for equal bits.
func testRepeat(r *rig) {
	const rows, cols, srcs = 1500, 35, 300
	all := lists(r.rng, rows, srcs)
	g := r.layer(all, srcs)
	x, dy, gain, stats := r.normal(rows, cols), r.normal(rows, cols), r.normal(1, cols), r.normal(rows, 2)
	var first [][]float32
	for range 3 {
		zeros := func(rows, cols int) operand { return r.floats(rows, cols, make([]float32, rows*cols)) }
		product, sum, dsrc, dx := zeros(cols, cols), zeros(1, cols), zeros(srcs, cols), zeros(rows, cols)
		dgain, dbias := zeros(1, cols), zeros(1, cols)
		r.b.MatMul(product.tensor, x.tensor, dy.tensor, true, false, false)
		r.b.ColumnSumGrad(sum.tensor, dy.tensor)
		r.b.NeighborMeanGrad(dsrc.tensor, dy.tensor, g.on(func(o operand) kernels.Tensor { return o.tensor }), srcs)
		r.b.LayerNormGrad(dx.tensor, dgain.tensor, dbias.tensor, dy.tensor, x.tensor, stats.tensor, gain.tensor, false)
		var results [][]float32
		for _, o := range []operand{product, sum, dsrc, dx, dgain, dbias} {
			values := make([]float32, o.tensor.Len())
			r.b.DownloadF32(values, o.tensor)
			results = append(results, values)
		}
		if first == nil {
			first = results
		}
		require.Equal(r.t, first, results)
	}
}
