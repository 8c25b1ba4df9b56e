package task

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/train/metric"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/optim"
	"github.com/gnnstore/gnnstore/train/step"
	"github.com/gnnstore/gnnstore/train/tape"
)

// TestLinkLosses compares the losses of steps with loops over their examples, and their gradients
// in the rows with finite differences, in float64.
func TestLinkLosses(t *testing.T) {
	d := pairs(t)
	const cols = 3
	for i, o := range []LinkOptions{
		{Negatives: "uniform:3"}, {Negatives: "uniform:2", Corrupt: "both"}, {Negatives: "shared:4", Chunk: 3, Loss: CE},
		{Negatives: "shared:4", Chunk: 3}, {Negatives: "shared:4", Corrupt: "both"}, {Negatives: "shared:3", Chunk: 2, Corrupt: "both", Loss: CE},
		{Negatives: "in-batch", Chunk: 3, Corrupt: "both", Loss: CE}, {Negatives: "in-batch", Chunk: 3}, {Negatives: "in-batch", Chunk: 1},
	} {
		be := kernels.NewReference()
		c := model.Config{Kind: model.MLP, Layers: 1, Hidden: 4, Norm: "none", Decoder: model.Dot}
		kind := []metric.Kind{metric.MRR, metric.Hits(2)}[i%2]
		k, err := NewLinks(d, Options{Batch: 7, Seed: 3, Metric: kind}, o, model.Dot)
		require.NoError(t, err)
		s := step.New(be, model.New(be, c, model.Shape{In: []int{3}, Out: cols}, 1), k, optim.Options{})
		k.Attach(s)
		k.Begin(1)
		var x examples
		k.of(&x, 1)
		var out model.Rows
		var values, grads []kernels.Tensor
		at := make([][]float64, 2)
		for n, seeds := range x.seeds {
			matrix := func() kernels.Tensor {
				return kernels.Tensor{Buf: be.Alloc(kernels.F32, len(seeds)*cols), Rows: len(seeds), Cols: cols}
			}
			values, grads = append(values, matrix()), append(grads, matrix())
			for i := range len(seeds) * cols {
				at[n] = append(at[n], math.Sin(float64(7*i+n)))
			}
		}
		var tally step.Tally
		loss := func(record bool) float64 {
			s.Tape.Reset(record)
			out = out[:0]
			for n := range values {
				be.UploadF64(values[n], at[n])
				out = append(out, tape.NewParam(values[n], grads[n]))
			}
			a, err := lossOf(k, s.Tape, s.Feed, out, step.Input{Step: 1})
			require.NoError(t, err)
			require.EqualValues(t, len(x.links), a.Weight)
			tally = a
			return a.Mean()
		}
		got := loss(true)
		s.Tape.Backward()

		score := func(u, v uint32) (sum float64) {
			for i := range cols {
				sum += at[1][int(u)*cols+i] * at[0][int(v)*cols+i]
			}
			return sum
		}
		soft := func(x float64) float64 { return math.Log1p(math.Exp(x)) }
		want, positive, negative, negatives := 0.0, 0.0, 0.0, 0.0
		measure, err := metric.NewLists(kind)
		require.NoError(t, err)
		for i := range x.links {
			own := score(x.src[i], x.dst[i])
			positive += soft(-own) / float64(len(x.links))
			for _, side := range x.sides {
				all := math.Exp(own)
				var others []float32
				for _, row := range side.list(i) {
					u, v := row, x.dst[i]
					if side.dst {
						u, v = x.src[i], row
					}
					other := score(u, v)
					negative += soft(other)
					negatives++
					others = append(others, float32(other))
					all += math.Exp(other)
				}
				if kind == metric.MRR || len(others) >= 2 { // else the link is among the first two anyway
					measure.Add([]float32{float32(own)}, others)
				}
				want += (math.Log(all) - own) / float64(len(x.links)*len(x.sides))
			}
		}
		if k.links.Loss == BCE {
			want = positive + negative/max(negatives, 1)
		}
		require.InDelta(t, want, got, 1e-6, "%+v", o)
		if value, err := measure.Value(); err == nil {
			require.InDelta(t, value, k.Trained(tally), 1e-6, "%+v", o)
		} else {
			require.Zero(t, tally.Rows)
		}

		for n := range values {
			grad := make([]float64, values[n].Len())
			be.DownloadF64(grad, grads[n])
			for i, v := range at[n] {
				const h = 1e-4 // losses are downloaded as float32
				at[n][i] = v + h
				above := loss(false)
				at[n][i] = v - h
				below := loss(false)
				at[n][i] = v
				require.InDelta(t, (above-below)/(2*h), grad[i], 3e-3, "%+v: type %d, element %d", o, n, i)
			}
		}
		s.Close()
	}
}

// lossOf returns the tally of a batch.
func lossOf(k step.Task, t *tape.Tape, f *step.Feed, out model.Rows, in step.Input) (step.Tally, error) {
	tally, err := k.Loss(t, f, out, in)
	if err != nil {
		return step.Tally{}, err
	}
	return tally(), nil
}
