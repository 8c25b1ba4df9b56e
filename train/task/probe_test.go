package task

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
	"github.com/gnnstore/gnnstore/train/data"
	"github.com/gnnstore/gnnstore/train/metric"
)

// probed returns a graph whose label is mostly a linear function of rows. The columns of the rows
// have different scales, and one is constant.
func probed(nodes int) storetest.Spec {
	rng := rand.New(rand.NewPCG(5, 6))
	s := storetest.Spec{Nodes: nodes, Dim: 4, Elem: store.F32, Classes: 3}
	rows, class, number := make([][]float32, nodes), make([]int32, nodes), make([]float32, nodes)
	for v := range nodes {
		a, b := rng.NormFloat64(), rng.NormFloat64()
		rows[v] = []float32{float32(a), float32(1000 + 50*b), 7, float32(rng.NormFloat64() / 100)}
		sum := a - b + rng.NormFloat64()
		number[v] = float32(300 + 20*sum)
		switch {
		case sum > 1:
			class[v] = 2
		case sum > -0.5:
			class[v] = 1
		}
		part := []*[]store.NodeID{&s.Train, &s.Train, &s.Valid, &s.Train, &s.Test}[v%5]
		*part = append(*part, store.NodeID(v))
	}
	s.Row, s.Class = func(v int) []float32 { return rows[v] }, func(v int) int32 { return class[v] }
	s.Number = func(v int) float32 { return number[v] }
	return s
}

// columnsOf returns the rows of s as columns.
func columnsOf(s storetest.Spec) Columns {
	return Columns{Cols: s.Dim, Rows: func(_ context.Context, dst []float32, nodes []uint32) error {
		for i, v := range nodes {
			copy(dst[i*s.Dim:], s.Row(int(v)))
		}
		return nil
	}}
}

// descend returns the weights that minimise the mean loss over the training nodes plus strength/2
// times the squared weights: a row for each output, with its bias last. It takes the gradient of
// all nodes at a time, and columns with mean 0 and deviation 1.
func descend(rows [][]float64, slope func(v int, out []float64) []float64, outputs int, strength float64) [][]float64 {
	cols := len(rows[0])
	w := make([][]float64, outputs)
	for o := range w {
		w[o] = make([]float64, cols+1)
	}
	rate := 0.5 / (1 + strength)
	out := make([]float64, outputs)
	for range 3000 {
		grad := make([][]float64, outputs)
		for o := range grad {
			grad[o] = make([]float64, cols+1)
			for c := range cols {
				grad[o][c] = strength * w[o][c]
			}
		}
		for v, row := range rows {
			for o := range out {
				out[o] = w[o][cols]
				for c, x := range row {
					out[o] += w[o][c] * x
				}
			}
			for o, d := range slope(v, out) {
				for c, x := range row {
					grad[o][c] += d * x
				}
				grad[o][cols] += d
			}
		}
		for o := range w {
			for c := range w[o] {
				w[o][c] -= rate * grad[o][c]
			}
		}
	}
	return w
}

// standard returns the columns of nodes with mean 0 and deviation 1, by the training nodes; a
// constant column is 0.
func standard(s storetest.Spec, nodes []store.NodeID) (rows [][]float64) {
	mean, deviation, n := make([]float64, s.Dim), make([]float64, s.Dim), float64(len(s.Train))
	for _, v := range s.Train {
		for c, x := range s.Row(int(v)) {
			mean[c] += float64(x) / n
		}
	}
	for _, v := range s.Train {
		for c, x := range s.Row(int(v)) {
			deviation[c] += (float64(x) - mean[c]) * (float64(x) - mean[c]) / n
		}
	}
	for _, v := range nodes {
		row := make([]float64, s.Dim)
		for c, x := range s.Row(int(v)) {
			if deviation[c] > 1e-12 {
				row[c] = (float64(x) - mean[c]) / math.Sqrt(deviation[c])
			}
		}
		rows = append(rows, row)
	}
	return rows
}

// TestProbeAgreesWithDescent: the weights of every strength are close to the optimum that plain
// gradient descent in float64 finds, for one class, several classes and numbers. The metric is
// better than the metric of one answer for all.
func TestProbeAgreesWithDescent(t *testing.T) {
	one, several, numbers := probed(400), probed(400), probed(400)
	one.Number, several.Number = nil, nil
	class := one.Class
	several.Bits = func(v int) []uint8 {
		bits := []uint8{0, 1, 0}
		bits[class(v)]++
		bits[1] = uint8(v / 5 % 2)
		if v%7 == 0 {
			bits[2] = store.MissingBit
		}
		return []uint8{min(bits[0], 1), bits[1], bits[2]}
	}
	known := 0.0
	for _, v := range several.Train {
		for _, b := range several.Bits(int(v)) {
			if b != store.MissingBit {
				known++
			}
		}
	}
	sum, squares, n := 0.0, 0.0, float64(len(numbers.Train))
	for _, v := range numbers.Train {
		sum += float64(numbers.Number(int(v)))
	}
	for _, v := range numbers.Train {
		squares += math.Pow(float64(numbers.Number(int(v)))-sum/n, 2)
	}
	unit := math.Sqrt(squares / n)
	for _, c := range []struct {
		name    string
		spec    storetest.Spec
		outputs int
		slope   func(v int, out []float64) []float64 // gradient of the loss of v
	}{
		{"one class", one, 3, func(i int, out []float64) []float64 {
			d, all := make([]float64, 3), 0.0
			for o := range out {
				all += math.Exp(out[o])
			}
			for o := range out {
				d[o] = math.Exp(out[o]) / all / n
			}
			d[class(int(one.Train[i]))] -= 1 / n
			return d
		}},
		{"several classes", several, 3, func(i int, out []float64) []float64 {
			d := make([]float64, 3)
			for o, bit := range several.Bits(int(several.Train[i])) {
				if bit != store.MissingBit {
					d[o] = (1/(1+math.Exp(-out[o])) - float64(bit)) / known
				}
			}
			return d
		}},
		{"numbers", numbers, 1, func(i int, out []float64) []float64 {
			return []float64{2 * (out[0] - (float64(numbers.Number(int(numbers.Train[i])))-sum/n)/unit) / n}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := nodesOf(t, c.spec, "")
			be := kernels.NewCPU(kernels.CPUOptions{Threads: 2})
			p, err := k.fitAll(t.Context(), be, columnsOf(c.spec), func(int, int) {})
			require.NoError(t, err)
			for i, strength := range Strengths {
				want := descend(standard(c.spec, c.spec.Train), c.slope, c.outputs, strength)
				w, b := make([]float32, c.outputs*4), make([]float32, c.outputs)
				of, biases := p.model(i)
				be.DownloadF32(w, of)
				be.DownloadF32(b, biases)
				for col := range 5 {
					got, at := make([]float64, c.outputs), make([]float64, c.outputs)
					for o := range want {
						if at[o] = want[o][col]; col < 4 {
							got[o] = float64(w[o*4+col])
						} else {
							got[o] = float64(b[o])
						}
					}
					if c.name == "one class" { // a number that is added to all outputs changes nothing
						center(got)
						center(at)
					}
					require.InDeltaSlice(t, at, got, 0.01, "strength %v, column %d", strength, col)
				}
			}
			require.NoError(t, p.choose(t.Context()))
			require.Contains(t, Strengths, p.L2)
			require.True(t, p.Validated)
			got, err := p.Measure(t.Context(), toNodes(c.spec.Test))
			require.NoError(t, err)
			b, err := k.Baseline(t.Context(), k.data.Seeds(toNodes(c.spec.Test)))
			require.NoError(t, err)
			require.True(t, k.Kind().Better(got, b.Value), "%v and %v", got, b.Value)
			p.Close()
		})
	}
}

// center makes the mean of v 0.
func center(v []float64) {
	sum := 0.0
	for _, x := range v {
		sum += x
	}
	for i := range v {
		v[i] -= sum / float64(len(v))
	}
}

func toNodes(all []store.NodeID) []uint32 { return all }

// TestProbeOfBatches: a fit of several batches comes close to the optimum, and threads do not
// change a bit of it.
func TestProbeOfBatches(t *testing.T) {
	s := probed(3 * probeRows)
	k := nodesOf(t, s, "")
	require.Greater(t, len(s.Train), probeRows)
	var first []float32
	for _, threads := range []int{1, 3} {
		be := kernels.NewCPU(kernels.CPUOptions{Threads: threads})
		p, err := k.NewProbe(t.Context(), be, columnsOf(s), func(int, int) {})
		require.NoError(t, err)
		w := make([]float32, 4)
		of, _ := p.model(p.chosen)
		be.DownloadF32(w, of)
		if first == nil {
			first = w
		}
		require.Equal(t, first, w)
		got, err := p.Measure(t.Context(), toNodes(s.Test))
		require.NoError(t, err)
		require.InDelta(t, 20, got, 0.7) // the noise
		p.Close()
	}
}

// TestProbeChooses: validation nodes choose the strength, and without them it is the middle one. A
// probe without columns predicts the largest class. Columns that are not finite are refused.
func TestProbeChooses(t *testing.T) {
	s := probed(100)
	s.Number, s.Valid = nil, nil
	fit := func(s storetest.Spec, from Columns) (*Probe, error) {
		k := nodesOf(t, s, metric.Accuracy)
		return k.NewProbe(t.Context(), kernels.NewCPU(kernels.CPUOptions{}), from, func(int, int) {})
	}
	p, err := fit(s, columnsOf(s))
	require.NoError(t, err)
	require.Equal(t, Strengths[len(Strengths)/2], p.L2)
	require.False(t, p.Validated)
	p.Close()

	none := Columns{Rows: func(context.Context, []float32, []uint32) error { return nil }}
	p, err = fit(s, none)
	require.NoError(t, err)
	got, err := p.Measure(t.Context(), toNodes(s.Test))
	require.NoError(t, err)
	b, err := p.nodes.Baseline(t.Context(), p.nodes.data.Seeds(toNodes(s.Test)))
	require.NoError(t, err)
	require.Equal(t, b.Value, got) // the largest class
	p.Close()

	row := s.Row
	s.Row = func(v int) []float32 {
		r := append([]float32(nil), row(v)...)
		if v == 30 {
			r[3] = float32(math.Inf(1))
		}
		return r
	}
	_, err = fit(s, columnsOf(s))
	require.ErrorContains(t, err, "column 3 of the rows of the training nodes has a value that is not finite")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	k := nodesOf(t, probed(50), "")
	_, err = k.NewProbe(ctx, kernels.NewCPU(kernels.CPUOptions{}), columnsOf(probed(50)), func(int, int) {})
	require.ErrorIs(t, err, context.Canceled)
	_, err = (&Nodes{data: &data.Data{}}).NewProbe(t.Context(), nil, none, nil)
	require.ErrorContains(t, err, "no training node")
}
