package task

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
	"github.com/gnnstore/gnnstore/train/data"
	"github.com/gnnstore/gnnstore/train/metric"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/optim"
	"github.com/gnnstore/gnnstore/train/step"
	"github.com/gnnstore/gnnstore/train/tape"
)

// knows is nodes of one type with two relations and the reverse of one of them, and all their
// triples: trained on first, then held out.
func knows(t *testing.T) (*data.Data, [3][]triple) {
	const nodes = 12
	rng := rand.New(rand.NewPCG(1, 2))
	spec := storetest.TypedSpec{
		Types:  []storetest.TypedNodes{{Name: "node", Nodes: nodes, Dim: 2, Row: func(int) []float32 { return []float32{1, 2} }}},
		Target: "node", Classes: 1, Class: func(int) int32 { return 0 },
	}
	var all [3][]triple
	for n, name := range []string{"a", "b"} {
		lists, back := make([][]store.NodeID, nodes), make([][]store.NodeID, nodes)
		var held [2]storetest.HeldEdges
		for range 40 {
			l := triple{uint32(n), rng.Uint32N(nodes), rng.Uint32N(nodes)}
			p := max(0, rng.IntN(6)-3)
			all[p] = append(all[p], l)
			if p > 0 {
				held[p-1].Src, held[p-1].Dst = append(held[p-1].Src, l.src), append(held[p-1].Dst, l.dst)
				continue
			}
			lists[l.dst], back[l.src] = append(lists[l.dst], l.src), append(back[l.src], l.dst)
		}
		for v := range nodes {
			slices.Sort(lists[v])
			slices.Sort(back[v])
		}
		spec.Relations = append(spec.Relations, storetest.TypedRelation{Src: "node", Name: name, Dst: "node", Neighbors: lists,
			EdgeSplit: &storetest.EdgeSplit{Valid: held[0], Test: held[1]}})
		if n == 0 {
			spec.Relations = append(spec.Relations, storetest.TypedRelation{Src: "node", Name: "back", Dst: "node", Neighbors: back, ReverseOf: "node__a__node"})
		}
	}
	ds, err := store.Open(storetest.BuildTyped(t, spec))
	require.NoError(t, err)
	t.Cleanup(func() { ds.Close() })
	d, err := data.Open(ds, data.Options{Links: true, Together: true})
	require.NoError(t, err)
	require.Len(t, d.Links.All, 2)
	return d, all
}

// scoreOf is the score of a triple, by the formulas of the decoders.
func scoreOf(decoder model.Decoder, u, w, v []float64) (sum float64) {
	if decoder == model.DistMult {
		for i := range u {
			sum += u[i] * w[i] * v[i]
		}
		return sum
	}
	half := len(u) / 2
	at := func(x []float64, i int) complex128 { return complex(x[i], x[half+i]) }
	for i := range half {
		z := at(u, i) * at(w, i) * complex(v[i], -v[half+i])
		sum += real(z)
	}
	return sum
}

// TestAmongAll compares the loss of steps with loops over all nodes, and its gradients in rows and
// relations with finite differences of these, in float64.
func TestAmongAll(t *testing.T) {
	d, _ := knows(t)
	const cols = 4
	nodes := d.Types[0].Nodes
	for _, decoder := range []model.Decoder{model.DistMult, model.ComplEx} {
		for _, o := range []LinkOptions{
			{Negatives: All}, {Negatives: All, Corrupt: CorruptBoth}, {Negatives: All, Corrupt: CorruptSrc, N3: 0.3},
			{Negatives: "uniform:3", Loss: CE, Corrupt: CorruptBoth, N3: 0.2}, {Negatives: "shared:2", Corrupt: CorruptSrc},
			{Negatives: "shared:3", Corrupt: CorruptBoth, Chunk: 4, N3: 0.1}, {Negatives: "shared:5", Loss: CE, Corrupt: CorruptBoth, Chunk: 2},
		} {
			be := kernels.NewReference()
			k, err := NewLinks(d, Options{Batch: 9, Seed: 3, NoLayers: true}, o, decoder)
			require.NoError(t, err)
			require.Equal(t, metric.MRR, k.Kind())
			require.Equal(t, All, k.Options().EvalNegatives)
			s := step.New(be, model.New(be, model.Config{Kind: model.SAGE, Norm: "none", Hidden: 1, Decoder: decoder},
				model.Shape{In: []int{cols}, Out: cols, Decoded: 2}, 1), k, optim.Options{})
			k.Attach(s)
			k.Begin(1)
			require.Nil(t, k.Without(0))
			var x examples
			k.of(&x, 1)
			seeds := x.seeds[0]
			if k.negatives.Way == All {
				require.Len(t, seeds, nodes)
			}
			weights := s.Model.Params[0]
			tensor := func(n int) kernels.Tensor {
				return kernels.Tensor{Buf: be.Alloc(kernels.F32, n*cols), Rows: n, Cols: cols}
			}
			points := [][]float64{make([]float64, len(seeds)*cols), make([]float64, 2*cols)}
			for n, p := range points {
				for i := range p {
					p[i] = math.Sin(float64(7*i + n + 1))
				}
			}
			values, grads := []kernels.Tensor{tensor(len(seeds)), weights.Value}, []kernels.Tensor{tensor(len(seeds)), weights.Grad}
			for n := range points {
				be.UploadF64(values[n], points[n])
			}
			s.Tape.Reset(true)
			a, err := lossOf(k, s.Tape, s.Feed, model.Rows{tape.NewParam(values[0], grads[0])}, step.Input{Step: 1})
			require.NoError(t, err)
			s.Tape.Backward()

			loss := func() (sum float64) {
				row := func(v uint32) []float64 { return points[0][int(v)*cols:][:cols] }
				absolute := func(x []float64) (sum float64) {
					if decoder == model.DistMult {
						for _, x := range x {
							sum += math.Pow(math.Abs(x), 3)
						}
						return sum
					}
					for i := range cols / 2 {
						sum += math.Pow(math.Hypot(x[i], x[cols/2+i]), 3)
					}
					return sum
				}
				sides := corrupted(k.links.Corrupt)
				n := float64(len(x.links))
				for i := range x.links {
					w := points[1][int(x.of[i])*cols:][:cols]
					own := scoreOf(decoder, row(x.src[i]), w, row(x.dst[i]))
					for side, isDst := range sides {
						others := k.everyone
						if k.negatives.Way != All {
							other := x.sides[side]
							others = other.list(i)
						}
						all, soft := 0.0, 0.0
						if k.negatives.Way != All {
							all = math.Exp(own)
						}
						for _, v := range others {
							y := 0.0
							if isDst {
								y = scoreOf(decoder, row(x.src[i]), w, row(v))
							} else {
								y = scoreOf(decoder, row(v), w, row(x.dst[i]))
							}
							all += math.Exp(y)
							soft += math.Log1p(math.Exp(y))
						}
						if k.links.Loss == CE {
							sum += (math.Log(all) - own) / n / float64(len(sides))
						} else {
							sum += soft/n/float64(len(others)*len(sides)) + math.Log1p(math.Exp(-own))/n/float64(len(sides))
						}
					}
					sum += k.links.N3 / n * (absolute(row(x.src[i])) + absolute(row(x.dst[i])) + absolute(w))
				}
				return sum
			}
			require.InDelta(t, loss(), a.Mean(), 1e-5, "%s %+v", decoder, o)
			for n, p := range points {
				got := make([]float64, len(p))
				be.DownloadF64(got, grads[n])
				for i, v := range p {
					const h = 1e-5
					p[i] = v + h
					above := loss()
					p[i] = v - h
					below := loss()
					p[i] = v
					require.InDelta(t, (above-below)/(2*h), got[i], 1e-5, "%s %+v, matrix %d, element %d", decoder, o, n, i)
				}
			}
			s.Close()
		}
	}
}

// TestRanks compares filtered ranks with loops over all triples, where many scores are alike.
func TestRanks(t *testing.T) {
	d, all := knows(t)
	const cols = 4
	nodes := d.Types[0].Nodes
	for _, decoder := range []model.Decoder{model.DistMult, model.ComplEx} {
		for _, corrupt := range []string{CorruptDst, CorruptSrc, CorruptBoth} {
			for _, kind := range []metric.Kind{metric.MRR, metric.Hits(2)} {
				be := kernels.NewCPU(kernels.CPUOptions{})
				k, err := NewLinks(d, Options{Metric: kind, Batch: 9, Seed: 3, NoLayers: true}, LinkOptions{Negatives: All, Corrupt: corrupt}, decoder)
				require.NoError(t, err)
				s := step.New(be, model.New(be, model.Config{Kind: model.SAGE, Norm: "none", Hidden: 1, Decoder: decoder},
					model.Shape{In: []int{cols}, Out: cols, Decoded: 2}, 1), k, optim.Options{})
				k.Attach(s)
				rng := rand.New(rand.NewPCG(3, 4))
				small := func(n int) []float32 {
					x := make([]float32, n)
					for i := range x {
						x[i] = float32(rng.IntN(3) - 1)
					}
					return x
				}
				rows, weights := small(nodes*cols), small(2*cols)
				be.UploadF32(s.Model.Params[0].Value, weights)
				out := kernels.Tensor{Buf: be.Alloc(kernels.F32, nodes*cols), Rows: nodes, Cols: cols}
				be.UploadF32(out, rows)
				wide := func(x []float32, i uint32) (y []float64) {
					for _, v := range x[int(i)*cols:][:cols] {
						y = append(y, float64(v))
					}
					return y
				}
				score := func(l triple) float64 {
					return scoreOf(decoder, wide(rows, l.src), wide(weights, l.of), wide(rows, l.dst))
				}
				known := slices.Concat(all[0], all[1], all[2])
				for p := range 2 {
					want, n := 0.0, 0.0
					for _, isDst := range corrupted(corrupt) {
						for _, l := range all[p+1] {
							rank := 1.0
							for v := range uint32(nodes) {
								other := triple{l.of, v, l.dst}
								if isDst {
									other = triple{l.of, l.src, v}
								}
								switch {
								case slices.Contains(known, other):
								case score(other) > score(l):
									rank++
								case score(other) == score(l):
									rank += 0.5
								}
							}
							n++
							if kind == metric.MRR {
								want += 1 / rank
							} else if rank <= 2 {
								want++
							}
						}
					}
					seeds, err := k.Part(t.Context(), Part(p))
					require.NoError(t, err)
					require.Len(t, seeds[0], nodes)
					require.NoError(t, k.Measure(s.Feed, 0, out, seeds[0]))
					got, err := k.Value()
					require.NoError(t, err)
					require.InDelta(t, want/n, got, 1e-12, "%s, %s, %s, part %d", decoder, corrupt, kind, p)
				}
				be.Free(out.Buf)
				s.Close()
			}
		}
	}
}

// TestUniformOfSeveral compares links of several relations among nodes in the place of an end with
// loops, on validation, test and trained links.
func TestUniformOfSeveral(t *testing.T) {
	d, all := knows(t)
	const cols = 4
	be := kernels.NewReference()
	k, err := NewLinks(d, Options{Batch: 9, Seed: 3, NoLayers: true, Width: cols}, LinkOptions{EvalNegatives: "uniform:5", Corrupt: CorruptBoth}, model.ComplEx)
	require.NoError(t, err)
	require.Equal(t, metric.MRR, k.Kind())
	s := step.New(be, model.New(be, model.Config{Kind: model.SAGE, Norm: "none", Hidden: 1, Decoder: model.ComplEx},
		model.Shape{In: []int{cols}, Out: cols, Decoded: 2}, 1), k, optim.Options{})
	k.Attach(s)
	defer s.Close()
	values := func(n int) (x []float64) {
		for i := range n {
			x = append(x, math.Sin(float64(5*i+1)))
		}
		return x
	}
	rows, weights := values(d.Types[0].Nodes*cols), values(2*cols)
	be.UploadF64(s.Model.Params[0].Value, weights)
	score := func(of, u, v uint32) float64 {
		return scoreOf(model.ComplEx, rows[int(u)*cols:][:cols], weights[int(of)*cols:][:cols], rows[int(v)*cols:][:cols])
	}
	for _, p := range []Part{Valid, Test, Train} {
		seeds, err := k.Part(t.Context(), p)
		require.NoError(t, err)
		var links []triple
		for _, i := range k.used {
			links = append(links, triple{k.which[i], k.ends[0][i], k.ends[1][i]})
		}
		if p == Train {
			require.Subset(t, all[0], links)
		} else {
			require.ElementsMatch(t, all[p+1], links)
		}
		want, n := 0.0, 0.0
		for at, i := range k.used {
			l, instead := links[at], k.replacing(i)
			require.Len(t, instead.src, 5)
			for _, isDst := range []bool{true, false} {
				rank := 1.0
				for j := range 5 {
					other := score(l.of, instead.src[j], l.dst)
					if isDst {
						other = score(l.of, l.src, instead.dst[j])
					}
					switch own := score(l.of, l.src, l.dst); {
					case math.Abs(other-own) < 1e-6:
						rank += 0.5
					case other > own:
						rank++
					}
				}
				want, n = want+1/rank, n+1
			}
		}
		var some []float64
		for _, v := range seeds[0] {
			some = append(some, rows[int(v)*cols:][:cols]...)
		}
		out := kernels.Tensor{Buf: be.Alloc(kernels.F32, len(some)), Rows: len(seeds[0]), Cols: cols}
		be.UploadF64(out, some)
		require.NoError(t, k.Measure(s.Feed, 0, out, seeds[0]))
		got, err := k.Value()
		require.NoError(t, err)
		require.InDelta(t, want/n, got, 1e-9, "%v", p)
	}
}

// TestManyNodesAreNotAllRanked: unless told so, links are ranked among all nodes where their rows
// take up to a GiB.
func TestManyNodesAreNotAllRanked(t *testing.T) {
	d, _ := knows(t)
	wide := mostRows / 4 / d.Types[0].Nodes
	for width, want := range map[int]LinkOptions{wide: {EvalNegatives: All}, wide + 1: {EvalNegatives: "uniform:1000", EvalEdges: fewEdges}} {
		k, err := NewLinks(d, Options{Batch: 9, NoLayers: true, Width: width}, LinkOptions{}, model.DistMult)
		require.NoError(t, err)
		require.Equal(t, want.EvalNegatives, k.Options().EvalNegatives)
		require.Equal(t, want.EvalEdges, k.Options().EvalEdges)
	}
	k, err := NewLinks(d, Options{Batch: 9, NoLayers: true, Width: wide + 1}, LinkOptions{EvalEdges: 7}, model.DistMult)
	require.NoError(t, err)
	require.Equal(t, 7, k.Options().EvalEdges)
}

// TestRanksOfFew: a part of more links than are asked for is measured on some, the same ones each
// time; a row that is NaN has no rank.
func TestRanksOfFew(t *testing.T) {
	d, all := knows(t)
	be := kernels.NewCPU(kernels.CPUOptions{})
	k, err := NewLinks(d, Options{Batch: 9, NoLayers: true}, LinkOptions{EvalEdges: 3}, model.DistMult)
	require.NoError(t, err)
	s := step.New(be, model.New(be, model.Config{Kind: model.SAGE, Norm: "none", Hidden: 1, Decoder: model.DistMult},
		model.Shape{In: []int{2}, Out: 2, Decoded: 2}, 1), k, optim.Options{})
	k.Attach(s)
	defer s.Close()
	seeds, err := k.Part(t.Context(), Valid)
	require.NoError(t, err)
	require.Len(t, k.parts[Valid], 3)
	require.Subset(t, all[1], k.parts[Valid])
	out := kernels.Tensor{Buf: be.Alloc(kernels.F32, 2*len(seeds[0])), Rows: len(seeds[0]), Cols: 2}
	be.Fill(out, float32(math.NaN()))
	require.NoError(t, k.Measure(s.Feed, 0, out, seeds[0]))
	_, err = k.Value()
	require.ErrorIs(t, err, metric.ErrUndefined)
}

// TestNotAmongAll: what all nodes, or several relations, cannot be had with.
func TestNotAmongAll(t *testing.T) {
	d, _ := knows(t)
	for want, c := range map[string]struct {
		o       LinkOptions
		layers  bool
		decoder model.Decoder
	}{
		"{negatives} all: every step would draw":  {LinkOptions{Negatives: All}, true, model.DistMult},
		"{decoder} mlp scores pair by pair":       {LinkOptions{Negatives: All}, false, model.PairMLP},
		"{decoder} dot knows one relation":        {LinkOptions{}, false, model.Dot},
		"links of several relations are measured": {LinkOptions{EvalNegatives: "pairs:5"}, false, model.DistMult},
		"MiB of memory are available; take fewer": {LinkOptions{Negatives: "shared:2000000000"}, false, model.DistMult},
	} {
		_, err := NewLinks(d, Options{Batch: 1000, NoLayers: !c.layers}, c.o, c.decoder)
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "\n")
	}
	_, err := NewLinks(d, Options{Batch: 9, Metric: metric.AP}, LinkOptions{EvalNegatives: All}, model.DistMult)
	require.ErrorContains(t, err, "of ranks there are mrr and hits@K")
}
