package graph

import (
	"cmp"
	"math"
	"math/cmplx"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
	"github.com/gnnstore/gnnstore/train/checkpoint"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/run"
	tasks "github.com/gnnstore/gnnstore/train/task"
)

// scored is the scores of pairs, given some at a time.
func scored(t *testing.T, n *Network, src, dst []uint32, atOnce int) (scores []float32) {
	return scoredOf(t, n, Pairs{Src: src, Dst: dst}, atOnce)
}

// scoredOf is scored, of several relations too.
func scoredOf(t *testing.T, n *Network, all Pairs, atOnce int) (scores []float32) {
	at, src, dst := 0, all.Src, all.Dst
	err := n.Scores(t.Context(), func(use func(Pairs) error) error {
		for rest := all; len(rest.Src) > 0; {
			if err := use(rest.cut(min(atOnce, len(rest.Src)))); err != nil {
				return err
			}
		}
		return nil
	}, func(p Pairs, some []float32) error {
		require.Equal(t, src[at:at+len(p.Src)], p.Src)
		require.Equal(t, dst[at:at+len(p.Src)], p.Dst)
		at += len(p.Src)
		scores = append(scores, some...)
		return nil
	})
	require.NoError(t, err)
	require.Len(t, scores, len(src))
	return scores
}

// reference is the scores of a decoder in float64, from the rows of both ends and the weights that
// are in a file of the run.
func reference(weights map[string][]float32, kind model.Decoder, x, y []float32) (sum float64) {
	row := func(name string, i int) float64 { return float64(weights["decoder."+name][i]) }
	if kind == model.ComplEx {
		half := len(x) / 2
		at := func(x []float32, i int) complex128 { return complex(float64(x[i]), float64(x[half+i])) }
		for i := range half {
			sum += real(at(x, i) * at(weights["decoder.weight"], i) * cmplx.Conj(at(y, i)))
		}
		return sum
	}
	switch kind {
	case model.TransE:
		for i, a := range x {
			sum -= math.Abs(float64(a) + row("weight", i) - float64(y[i]))
		}
		return run.DefaultMargin + sum
	case model.RotatE:
		half := len(x) / 2
		at := func(x []float32, i int) complex128 { return complex(float64(x[i]), float64(x[half+i])) }
		for i := range half {
			sum -= cmplx.Abs(at(x, i)*cmplx.Rect(1, row("phase", i)) - at(y, i))
		}
		return run.DefaultMargin + sum
	}
	for i, a := range x {
		p := float64(a) * float64(y[i])
		if kind == model.DistMult {
			p *= row("weight", i)
		}
		sum += p
	}
	if kind != model.PairMLP {
		return sum
	}
	sum = row("lins.1.bias", 0)
	for h := range x {
		hidden := row("lins.0.bias", h)
		for i, a := range x {
			hidden += row("lins.0.weight", h*len(x)+i) * float64(a) * float64(y[i])
		}
		sum += row("lins.1.weight", h) * max(hidden, 0)
	}
	return sum
}

// decoders are runs of links by each decoder, of nodes of one type and of two.
func decoders(t *testing.T, check func(t *testing.T, ds *store.Dataset, o run.Options, dir string)) {
	single, between := open(t, linked(300)), openTyped(t, shop(rand.New(rand.NewPCG(3, 4))))
	for _, kind := range model.Decoders {
		for name, ds := range map[string]*store.Dataset{"one type": single, "two types": between} {
			t.Run(string(kind)+" "+name, func(t *testing.T) {
				o := linkOptions()
				o.Decoder, o.Epochs = kind, 1
				if ds == between {
					o.Kind, o.Target = model.RSAGE, "user,buys,item"
				}
				dir, _ := runIn(t, ds, o)
				check(t, ds, o, dir)
			})
		}
	}
}

// TestScores: pairs in any order, some of them twice, score what the decoder makes of the
// embeddings, by the weights in the run's file, and the same bits however many come at a time and
// wherever rows are kept.
func TestScores(t *testing.T) {
	decoders(t, func(t *testing.T, ds *store.Dataset, o run.Options, dir string) {
		n := network(t, ds, dir, NetworkOptions{Use: run.Use{Scratch: filepath.Join(t.TempDir(), "layers")}})
		defer n.Close()
		_, from, to := n.Relation()
		types := n.Data().Types
		every := func(kind int) map[uint32][]float32 {
			var nodes []uint32
			for v := range types[kind].Nodes {
				nodes = append(nodes, uint32(v))
			}
			rows, _ := predictionsOf(t, n, types[kind].Name, Embeddings, DefaultLayer, nodes)
			return rows
		}
		x, y := every(from), every(to)
		rng := rand.New(rand.NewPCG(7, 8))
		var src, dst []uint32
		for range 500 {
			src, dst = append(src, uint32(rng.IntN(types[from].Nodes/2))), append(dst, uint32(rng.IntN(types[to].Nodes)))
		}
		src, dst = append(src, src[0]), append(dst, dst[0])
		got := scored(t, n, src, dst, len(src))
		require.Equal(t, got[0], got[500])
		tensors, _, err := checkpoint.Load(n.c.Dir.FS(), n.c.Dir.File(run.LastFile))
		require.NoError(t, err)
		weights := map[string][]float32{}
		for _, w := range tensors {
			weights[w.Name] = w.Data
		}
		for i, u := range src {
			require.InDelta(t, reference(weights, o.Decoder, x[u], y[dst[i]]), got[i], 1e-4)
		}
		require.Equal(t, got, scored(t, n, src, dst, 7))
		readings := 0
		err = n.Scores(t.Context(), func(use func(Pairs) error) error {
			readings++
			return use(Pairs{Src: src[:2], Dst: dst[2*(readings-1):][:2], Of: make([]uint32, 2)})
		}, func(Pairs, []float32) error { return nil })
		require.ErrorIs(t, err, errPairsChanged)
		n.rowBytes, n.c.eval.Bytes, n.c.eval.ChunkBytes = 0, 0, 1<<12 // a file, layers on disk, and few pairs together
		require.Equal(t, got, scored(t, n, src, dst, 100))
		left, err := filepath.Glob(filepath.Join(filepath.Dir(n.c.eval.Dir), "*"))
		require.NoError(t, err)
		require.Empty(t, slices.DeleteFunc(left, func(name string) bool { return filepath.Base(name) == "layers" }))
	})
}

// TestTop: the best K equal the first of all scores sorted, bit for bit and with the first of
// equals, in blocks of any size, with known links and without.
func TestTop(t *testing.T) {
	storetest.Long(t)
	decoders(t, func(t *testing.T, ds *store.Dataset, o run.Options, dir string) {
		n := network(t, ds, dir, NetworkOptions{Use: run.Use{Scratch: filepath.Join(t.TempDir(), "layers")}})
		defer n.Close()
		number, from, to := n.Relation()
		sources, targets, g := n.Data().Types[from].Nodes, n.Data().Types[to].Nodes, n.Data().Relations[number]
		known := map[[2]uint32]bool{}
		for v := range uint32(targets) {
			for _, u := range g.Neighbors(v) {
				known[[2]uint32{u, v}] = true
			}
			if from == to {
				known[[2]uint32{v, v}] = true
			}
		}
		for _, part := range []store.HeldPart{store.HeldValid, store.HeldTest} {
			h, _ := ds.HeldEdges(number, part)
			src, dst := h.Ends()
			for i := range src {
				known[[2]uint32{src[i], dst[i]}] = true
				if g.Relation.Symmetric {
					known[[2]uint32{dst[i], src[i]}] = true
				}
			}
		}
		var all, few, src, dst []uint32
		for u := range uint32(sources) {
			all = append(all, u)
			if u%37 == 5 {
				few = append(few, u)
			}
			for v := range uint32(targets) {
				src, dst = append(src, u), append(dst, v)
			}
		}
		scores := scored(t, n, src, dst, len(src))
		check := func(k int, exclude bool, bytes int64, asked []uint32) {
			t.Helper()
			n.c.eval.Bytes = bytes
			var came []uint32
			err := n.Top(t.Context(), tasks.TopOptions{K: k, ExcludeKnown: exclude}, asked, func(u uint32, best []uint32, got []float32) error {
				came = append(came, u)
				own := scores[int(u)*targets : (int(u)+1)*targets]
				var want []uint32
				for v := range uint32(targets) {
					if !exclude || !known[[2]uint32{u, v}] {
						want = append(want, v)
					}
				}
				slices.SortStableFunc(want, func(a, b uint32) int { return cmp.Compare(own[b], own[a]) })
				want = want[:min(k, len(want))]
				require.Equal(t, want, best, "node %d", u)
				for i, v := range best {
					require.Equal(t, own[v], got[i])
				}
				return nil
			})
			require.NoError(t, err)
			require.Equal(t, asked, came)
		}
		check(10, true, 1<<30, all)
		check(1, false, 1<<30, all)
		check(7, true, 20_000, few)
		check(targets+5, true, 1<<30, few)
		n.rowBytes = 0
		check(3, false, 0, few[:2])
	})
}

// TestScoresInLittleMemory: what a step would take need not be there to use a network, nor what
// measuring would to predict.
func TestScoresInLittleMemory(t *testing.T) {
	storetest.Long(t)
	ds := open(t, linked(300))
	o := linkOptions()
	o.Negatives, o.Batch, o.Epochs = "uniform:600", 5000, 1
	dir, _ := runIn(t, ds, o)
	looked, err := run.Look(dir)
	require.NoError(t, err)
	little := NetworkOptions{Use: run.Use{MemoryBytes: 64 << 20, Scratch: filepath.Join(t.TempDir(), "layers")}}
	with := little.of(looked.Record())
	_, err = newTrainer(t.Context(), ds, with, run.Hooks{}, internal{})
	require.ErrorContains(t, err, "{negatives} uniform:600: a step of ")
	n := network(t, ds, dir, little)
	require.Positive(t, measure(t, n, "test"))
	require.NoError(t, n.Close())
	little.EvalNegatives = "uniform:10000000"
	_, err = OpenNetwork(t.Context(), ds, looked, little, run.Hooks{})
	require.ErrorContains(t, err, "{eval_negatives} uniform:10000000: scoring the links of a part among them takes ")
	little.Predicts = true
	n = network(t, ds, dir, little)
	defer n.Close()
	src, dst := []uint32{1, 2, 3}, []uint32{4, 5, 6}
	whole := network(t, ds, dir, NetworkOptions{})
	defer whole.Close()
	require.Equal(t, scored(t, whole, src, dst, 3), scored(t, n, src, dst, 3))
	best := func(n *Network) (all []uint32) {
		err := n.Top(t.Context(), tasks.TopOptions{K: 4, ExcludeKnown: true}, src, func(_ uint32, best []uint32, _ []float32) error {
			all = append(all, best...)
			return nil
		})
		require.NoError(t, err)
		return all
	}
	require.Equal(t, best(whole), best(n))
	require.Panics(t, func() { _, _ = n.Measure(t.Context(), "test") })
}

// TestScoresOfSeveral: the decoder scores pairs of several relations with each relation's own
// vector. The best of a relation equal the first of all its scores sorted, without its known links
// and with the known links of the others.
func TestScoresOfSeveral(t *testing.T) {
	ds := openTyped(t, clock(60, 1, 2, 3))
	for _, c := range []struct {
		kind       model.Decoder
		reciprocal bool
	}{
		{model.DistMult, false}, {model.ComplEx, false}, {model.ComplEx, true},
		{model.TransE, false}, {model.RotatE, true},
	} {
		kind, weights := c.kind, "weight"
		o := tripleOptions()
		if o.Decoder, o.Epochs, o.Reciprocal = kind, 2, c.reciprocal; kind.Distance() {
			o.Negatives, o.Loss = "shared:20", "bce"
		}
		if kind == model.RotatE {
			weights = "phase"
		}
		dir, _ := runIn(t, ds, o)
		n := network(t, ds, dir, NetworkOptions{Use: run.Use{Scratch: filepath.Join(t.TempDir(), "layers")}})
		defer n.Close()
		const nodes, relations = 60, 3
		rows, _ := predictionsOf(t, n, "hour", Embeddings, DefaultLayer, everyNode(n))
		tensors, _, err := checkpoint.Load(n.c.Dir.FS(), n.c.Dir.File(run.BestFile))
		require.NoError(t, err)
		named := func(w checkpoint.Tensor) bool { return w.Name == "decoder."+weights }
		vectors := tensors[slices.IndexFunc(tensors, named)].Data
		var all Pairs
		for i := range relations * nodes * nodes {
			i = i * 7 % (relations * nodes * nodes) // in no order
			all.Of, all.Src, all.Dst = append(all.Of, uint32(i%relations)), append(all.Src, uint32(i/relations%nodes)), append(all.Dst, uint32(i/relations/nodes))
		}
		got := scoredOf(t, n, all, 500)
		scores := map[[3]uint32]float32{}
		for i, of := range all.Of {
			u, v := all.Src[i], all.Dst[i]
			cols := len(rows[u])
			if kind == model.RotatE {
				cols /= 2
			}
			own := map[string][]float32{"decoder." + weights: vectors[int(of)*cols : int(of+1)*cols]}
			want := reference(own, kind, rows[u], rows[v])
			require.InDelta(t, want, got[i], 1e-4)
			scores[[3]uint32{of, u, v}] = got[i]
		}
		n.rowBytes, n.c.eval.ChunkBytes = 0, 1<<10
		require.Equal(t, got, scoredOf(t, n, all, len(all.Src)))
		for of, on := range []uint32{1, 2, 3} {
			for _, exclude := range []bool{false, true} {
				err := n.Top(t.Context(), tasks.TopOptions{K: 5, Of: of, ExcludeKnown: exclude}, []uint32{3, 17, 59}, func(u uint32, best []uint32, got []float32) error {
					var want []uint32
					for v := range uint32(nodes) {
						if !exclude || v != u && v != (u+on)%nodes { // the one link of the relation, trained on or held out
							want = append(want, v)
						}
					}
					slices.SortStableFunc(want, func(a, b uint32) int {
						return cmp.Compare(scores[[3]uint32{uint32(of), u, b}], scores[[3]uint32{uint32(of), u, a}])
					})
					require.Equal(t, want[:5], best)
					for i, v := range best {
						require.Equal(t, scores[[3]uint32{uint32(of), u, v}], got[i])
					}
					return nil
				})
				require.NoError(t, err)
			}
		}
		require.EqualError(t, n.Top(t.Context(), tasks.TopOptions{K: 5, Of: 3}, []uint32{3}, nil), "{relation} 3: the run learns the links of 3")
	}
	o := tripleOptions()
	o.Epochs = 1
	dir, _ := runIn(t, ds, o)
	d, err := run.Look(dir)
	require.NoError(t, err)
	turned := clock(60, 1, 2, 3)
	slices.Reverse(turned.Relations)
	_, err = OpenNetwork(t.Context(), openTyped(t, turned), d, NetworkOptions{}, run.Hooks{})
	require.ErrorContains(t, err, "has its relations in another order: hour__b__hour comes too early; ingest them in the same one")
}
