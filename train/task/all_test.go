package task

import (
	"math"
	"math/cmplx"
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

// ofRelations are the decoders that tell several relations apart.
var ofRelations = []model.Decoder{model.DistMult, model.ComplEx, model.TransE, model.RotatE}

const testMargin = 1.5 // of decoders with distances, in scoreOf and configOf

// scoreOf is the score of a triple, by the formulas of the decoders.
func scoreOf(decoder model.Decoder, u, w, v []float64) (sum float64) {
	half := len(u) / 2
	at := func(x []float64, i int) complex128 { return complex(x[i], x[half+i]) }
	switch decoder {
	case model.DistMult:
		for i := range u {
			sum += u[i] * w[i] * v[i]
		}
	case model.ComplEx:
		for i := range half {
			z := at(u, i) * at(w, i) * complex(v[i], -v[half+i])
			sum += real(z)
		}
	case model.TransE:
		sum = testMargin
		for i := range u {
			sum -= math.Abs(u[i] + w[i] - v[i])
		}
	case model.RotatE:
		sum = testMargin
		for i := range half {
			sum -= cmplx.Abs(at(u, i)*cmplx.Rect(1, w[i]) - at(v, i))
		}
	}
	return sum
}

// configOf is a network that scores rows as they are, by decoder.
func configOf(decoder model.Decoder) model.Config {
	c := model.Config{Kind: model.SAGE, Norm: "none", Hidden: 1, Decoder: decoder}
	if decoder.Distance() {
		c.Margin = testMargin
	}
	return c
}

// relationCols returns the columns of a relation's parameters where rows have cols.
func relationCols(decoder model.Decoder, cols int) int {
	if decoder == model.RotatE {
		return cols / 2
	}
	return cols
}

// TestAmongAll compares the loss of steps with loops over all nodes, and its gradients in rows and
// relations with finite differences of these, in float64.
func TestAmongAll(t *testing.T) {
	d, _ := knows(t)
	const cols = 4
	nodes := d.Types[0].Nodes
	for _, decoder := range ofRelations {
		for _, o := range []LinkOptions{
			{Negatives: All}, {Negatives: All, Corrupt: CorruptBoth}, {Negatives: All, Corrupt: CorruptSrc, N3: 0.3},
			{Negatives: All, Reciprocal: true, N3: 0.3}, {Negatives: All, Corrupt: CorruptSrc, Reciprocal: true},
			{Negatives: "uniform:3", Loss: CE, Corrupt: CorruptBoth, N3: 0.2}, {Negatives: "shared:2", Corrupt: CorruptSrc},
			{Negatives: "shared:3", Corrupt: CorruptBoth, Chunk: 4, N3: 0.1}, {Negatives: "shared:5", Loss: CE, Corrupt: CorruptBoth, Chunk: 2},
			{Negatives: "shared:5", Loss: CE, Reciprocal: true, Chunk: 2, N3: 0.1}, {Negatives: "shared:3", Reciprocal: true, Chunk: 4},
			{Negatives: "shared:3", Reciprocal: true, Chunk: 4, Adversarial: 0.7}, {Negatives: "shared:3", Chunk: 20, Adversarial: 2},
			{Negatives: "uniform:4", Corrupt: CorruptBoth, Adversarial: 1},
			{Negatives: "in-batch", Chunk: 4, Corrupt: CorruptBoth, Adversarial: 1},
			{Negatives: "uniform:3", Reciprocal: true}, {Negatives: "uniform:3", Reciprocal: true, Corrupt: CorruptSrc}, {Negatives: "uniform:3", Reciprocal: true, Loss: CE},
			{Negatives: "in-batch", Chunk: 4, Reciprocal: true},
		} {
			if decoder.Distance() && (o.Negatives == All || o.N3 > 0) {
				continue
			}
			be := kernels.NewReference()
			k, err := NewLinks(d, Options{Batch: 9, Seed: 3, NoLayers: true, NoMessages: true}, o, decoder)
			require.NoError(t, err)
			require.Equal(t, metric.MRR, k.Kind())
			require.Equal(t, All, k.Options().EvalNegatives)
			relations, width := 2, relationCols(decoder, cols)
			if o.Reciprocal {
				relations = 4
			}
			shape := model.Shape{In: []int{cols}, Out: cols, Decoded: relations}
			s := step.New(be, model.New(be, configOf(decoder), shape, 1), k, optim.Options{})
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
			rows := kernels.Tensor{Buf: be.Alloc(kernels.F32, len(seeds)*cols), Rows: len(seeds), Cols: cols}
			drows := kernels.Tensor{Buf: be.Alloc(kernels.F32, len(seeds)*cols), Rows: len(seeds), Cols: cols}
			points := [][]float64{make([]float64, len(seeds)*cols), make([]float64, relations*width)}
			for n, p := range points {
				for i := range p {
					p[i] = math.Sin(float64(7*i + n + 1))
				}
			}
			values, grads := []kernels.Tensor{rows, weights.Value}, []kernels.Tensor{drows, weights.Grad}
			for n := range points {
				be.UploadF64(values[n], points[n])
			}
			s.Tape.Reset(true)
			a, err := lossOf(k, s.Tape, s.Feed, model.Rows{tape.NewParam(values[0], grads[0])}, step.Input{Step: 1})
			require.NoError(t, err)
			s.Tape.Backward()

			measure, err := metric.NewLinks(k.Kind()) // of each positive among its negatives
			require.NoError(t, err)
			var softmax [][]float64 // of adversarial negatives: no gradient flows to these weights
			loss := func() (sum float64) {
				row := func(v uint32) []float64 { return points[0][int(v)*cols:][:cols] }
				relation := func(i int) []float64 { return points[1][i*width:][:width] }
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
				n, list := float64(len(x.links)), 0
				for i := range x.links {
					of := int(x.of[i])
					score := func(isDst bool, u, v uint32) float64 {
						if o.Reciprocal && !isDst {
							return scoreOf(decoder, row(v), relation(of+2), row(u))
						}
						return scoreOf(decoder, row(u), relation(of), row(v))
					}
					positives := []bool{true}
					if o.Reciprocal {
						positives = []bool{true, false}
					}
					for _, isDst := range positives {
						if k.links.Loss == BCE {
							sum += math.Log1p(math.Exp(-score(isDst, x.src[i], x.dst[i]))) / n / float64(len(positives))
						}
					}
					for side, isDst := range sides {
						own := score(isDst, x.src[i], x.dst[i])
						others := k.everyone
						if k.negatives.Way != All {
							other := x.sides[side]
							others = other.list(i)
						}
						all, soft := 0.0, 0.0
						if k.negatives.Way != All {
							all = math.Exp(own)
						}
						var by []float64
						var scores []float32
						for _, v := range others {
							y := score(isDst, v, x.dst[i])
							if isDst {
								y = score(isDst, x.src[i], v)
							}
							all += math.Exp(y)
							scores = append(scores, float32(y))
							by = append(by, math.Exp(o.Adversarial*y))
						}
						if list == len(softmax) {
							measure.Add([]float32{float32(own)}, scores)
							total := 0.0
							for _, b := range by {
								total += b
							}
							for j := range by {
								by[j] /= total
							}
							softmax = append(softmax, by)
						}
						for j, v := range others {
							y := score(isDst, v, x.dst[i])
							if isDst {
								y = score(isDst, x.src[i], v)
							}
							soft += softmax[list][j] * math.Log1p(math.Exp(y))
						}
						list++
						if k.links.Loss == CE {
							sum += (math.Log(all) - own) / n / float64(len(sides))
						} else {
							mean := n * float64(len(sides))
							if _, negatives := k.sizes(1, len(sides)); k.negatives.Way == InBatch && o.Adversarial == 0 {
								mean = float64(negatives) / float64(len(others)) // lists of a step may differ in length
							}
							sum += soft / mean
						}
					}
					if o.N3 > 0 {
						w := absolute(relation(of))
						if o.Reciprocal {
							w = (w + absolute(relation(of+2))) / 2
						}
						sum += o.N3 / n * (absolute(row(x.src[i])) + absolute(row(x.dst[i])) + w)
					}
				}
				return sum
			}
			require.InDelta(t, loss(), a.Mean(), 1e-5, "%s %+v", decoder, o)
			if k.negatives.Way != All {
				want, err := measure.Value()
				require.NoError(t, err)
				require.InDelta(t, want, k.Trained(a), 1e-5, "%s %+v", decoder, o)
			}
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
	for _, decoder := range ofRelations {
		for _, o := range []LinkOptions{
			{}, {Corrupt: CorruptSrc}, {Corrupt: CorruptBoth}, {Corrupt: CorruptBoth, Reciprocal: true},
		} {
			for _, kind := range []metric.Kind{metric.MRR, metric.Hits(2)} {
				be := kernels.NewCPU(kernels.CPUOptions{})
				k, err := NewLinks(d, Options{Metric: kind, Batch: 9, Seed: 3, NoLayers: true}, o, decoder)
				require.NoError(t, err)
				shape := model.Shape{In: []int{cols}, Out: cols, Decoded: 4}
				s := step.New(be, model.New(be, configOf(decoder), shape, 1), k, optim.Options{})
				corrupt := k.links.Corrupt
				k.Attach(s)
				rng := rand.New(rand.NewPCG(3, 4))
				small := func(n int) []float32 {
					x := make([]float32, n)
					for i := range x {
						x[i] = float32(rng.IntN(3) - 1)
					}
					return x
				}
				width := relationCols(decoder, cols)
				rows, weights := small(nodes*cols), small(4*width)
				for i := range weights {
					if decoder == model.RotatE { // so that a turn is exact
						weights[i] = 0
					}
				}
				be.UploadF32(s.Model.Params[0].Value, weights)
				out := kernels.Tensor{Buf: be.Alloc(kernels.F32, nodes*cols), Rows: nodes, Cols: cols}
				be.UploadF32(out, rows)
				wide := func(x []float32, i uint32, cols int) (y []float64) {
					for _, v := range x[int(i)*cols:][:cols] {
						y = append(y, float64(v))
					}
					return y
				}
				score := func(isDst bool, l triple) float64 {
					u, v := wide(rows, l.src, cols), wide(rows, l.dst, cols)
					sum := 0.0
					if o.Reciprocal && !isDst {
						sum = scoreOf(decoder, v, wide(weights, l.of+2, width), u)
					} else {
						sum = scoreOf(decoder, u, wide(weights, l.of, width), v)
					}
					return float64(float32(sum)) // roots are equal where they are in float32
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
								case score(isDst, other) > score(isDst, l):
									rank++
								case score(isDst, other) == score(isDst, l):
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
					require.InDelta(t, want/n, got, 1e-12, "%s, %+v, %s, part %d", decoder, o, kind, p)
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
	for _, decoder := range ofRelations {
		for _, reciprocal := range []bool{false, true} {
			uniformOfSeveral(t, d, all, decoder, reciprocal)
		}
	}
}

func uniformOfSeveral(t *testing.T, d *data.Data, all [3][]triple, decoder model.Decoder, reciprocal bool) {
	const cols = 4
	width := relationCols(decoder, cols)
	be := kernels.NewReference()
	k, err := NewLinks(d, Options{Batch: 9, Seed: 3, NoLayers: true, Width: cols},
		LinkOptions{EvalNegatives: "uniform:5", Corrupt: CorruptBoth, Reciprocal: reciprocal}, decoder)
	require.NoError(t, err)
	require.Equal(t, metric.MRR, k.Kind())
	shape := model.Shape{In: []int{cols}, Out: cols, Decoded: 4}
	s := step.New(be, model.New(be, configOf(decoder), shape, 1), k, optim.Options{})
	k.Attach(s)
	defer s.Close()
	values := func(n int) (x []float64) {
		for i := range n {
			x = append(x, math.Sin(float64(5*i+1)))
		}
		return x
	}
	rows, weights := values(d.Types[0].Nodes*cols), values(4*width)
	be.UploadF64(s.Model.Params[0].Value, weights)
	score := func(isDst bool, of, u, v uint32) float64 {
		if reciprocal && !isDst {
			of, u, v = of+2, v, u
		}
		return scoreOf(decoder, rows[int(u)*cols:][:cols], weights[int(of)*width:][:width], rows[int(v)*cols:][:cols])
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
					other := score(isDst, l.of, instead.src[j], l.dst)
					if isDst {
						other = score(isDst, l.of, l.src, instead.dst[j])
					}
					switch own := score(isDst, l.of, l.src, l.dst); {
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
		require.InDelta(t, want/n, got, 1e-9, "%v, %s, reciprocal %v", p, decoder, reciprocal)
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
		"{decoder} rotate scores by distances":    {LinkOptions{Negatives: All}, false, model.RotatE},
		"{decoder} transe scores by distances":    {LinkOptions{Negatives: All}, false, model.TransE},
		"{n3} 0.1: it goes with":                  {LinkOptions{N3: 0.1}, false, model.RotatE},
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
