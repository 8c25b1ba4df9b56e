package bench

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/sample"
)

// TestCasesRun runs every case but the large ones once, on every set but Go's, which is slow: their
// shapes fit.
func TestCasesRun(t *testing.T) {
	for i, set := range kernels.Sets() {
		if i > 0 && testing.Short() {
			break
		}
		for _, c := range Cases(set, kernels.Float32, 2) {
			if strings.Contains(c.Name, "table=cold") || strings.Contains(c.Name, "rows=65536") || strings.HasPrefix(c.Name, "Sample") || strings.HasPrefix(c.Name, "Step") || set == kernels.Portable {
				continue
			}
			job := c.Prepare()
			job.Run()
			job.Free()
			require.NotZero(t, job.Work, c.Name)
		}
	}
}

func TestRun(t *testing.T) {
	o := Options{Set: kernels.Portable, Threads: 2, Time: time.Millisecond, Filter: regexp.MustCompile("^Adam|rows=16/")}
	var results []Result
	require.NoError(t, Run(context.Background(), o, func(c Ceilings) {
		require.Positive(t, c.Flops)
		require.Positive(t, c.Bytes)
	}, func(r Result) { results = append(results, r) }))
	require.Len(t, results, 4)
	require.Regexp(t, `^BenchmarkMatMul/product=x·wT/rows=16/in=256/out=256/kernels=portable/threads=2\t +\d+\t +\d+ ns/op\t`+
		` +[\d.]+ GFLOP/s\t +[\d.]+ %peak\t +[\d.]+ products-ms\t +[\d.]+ bytes-ms\t +[\d.]+ %bound$`, results[0])
	require.Regexp(t, `GB/s\t +[\d.]+ %read$`, results[3])

	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	require.ErrorIs(t, Run(ctx, o, func(Ceilings) {}, func(Result) { t.Error("went on") }), context.Canceled)
	o.Filter = regexp.MustCompile("nosuch")
	require.ErrorContains(t, Run(t.Context(), o, nil, nil), "no benchmark matches nosuch; names are like MatMul/")
	o.Set = "abacus"
	require.ErrorContains(t, Run(ctx, o, nil, nil), "does not run here")
}

func TestRates(t *testing.T) {
	w := Work{Flops: 3e9, Bytes: 1e9, Seeds: 10}
	require.Equal(t, []Metric{{6, "GFLOP/s"}, {50, "%peak"}, {2, "GB/s"}, {20, "seeds/s"}}, w.Rates(time.Second/2, Ceilings{Flops: 12e9}))
	require.Empty(t, Work{}.Rates(time.Second, Ceilings{}))

	w = Work{Flops: 3e9, Moved: 2e9} // a quarter of a second of products, and half a second of bytes
	require.Equal(t, []Metric{
		{3, "GFLOP/s"}, {25, "%peak"}, {250, "products-ms"}, {500, "bytes-ms"}, {50, "%bound"},
	}, w.Rates(time.Second, Ceilings{Flops: 12e9, Bytes: 4e9}))
}

func TestGenerate(t *testing.T) {
	g := generate(2000, 10, 1)
	for v := range uint32(2000) {
		require.True(t, slices.IsSorted(g.Neighbors(v)))
		require.InDelta(t, 10, len(g.Neighbors(v)), 5)
		for _, u := range g.Neighbors(v) {
			require.Less(t, u, uint32(2000))
		}
	}
	require.InDelta(t, 10, float64(len(g.nbr))/2000, 0.5)
}

// TestTrainer: steps on one batch lower its loss, and starting over takes the same way.
func TestTrainer(t *testing.T) {
	g := generate(500, 8, 1)
	var b sample.Batch
	require.NoError(t, sample.NewSampler(sample.AtHand(g), sample.Config{Fanouts: []int{5, 3}}, 1).SampleOne(context.Background(), &b, sample.BatchSeed{First: 1}, g.seedsOf(40, 1)))
	labels := make([]uint32, 40)
	for i := range labels {
		labels[i] = uint32(i % 3)
	}
	var first []float64
	for range 2 {
		be := kernels.NewCPU(kernels.CPUOptions{})
		tr := NewTrainer(be, model.Config{Kind: model.SAGE, Layers: 2, Hidden: 32, Norm: "none"}, model.Shape{In: []int{16}, Out: 3}, 1)
		rows := []kernels.Tensor{halves(be, len(b.Inputs()[0]), 16)}
		var losses []float64
		for range 30 {
			losses = append(losses, tr.Step(&b, rows, labels, 0.01, 1))
		}
		require.Less(t, losses[29], losses[0]/2)
		if first == nil {
			first = losses
		}
		require.Equal(t, first, losses)
		tr.Close()
		be.Free(rows[0].Buf)
	}
}
