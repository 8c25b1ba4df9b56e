package graph

import (
	"context"
	"math"
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
)

// edgesPredicted returns the predictions of edges, and these edges in the order in which they came.
func edgesPredicted(t *testing.T, n *Network, what string, each EachPair) (of Pairs, rows []float32) {
	err := n.PredictEdges(context.Background(), what, each, func(p Pairs, some []float32) error {
		require.Len(t, some, len(p.Src)*n.EdgeColumns(what))
		of.Src, of.Dst, of.Given = append(of.Src, p.Src...), append(of.Dst, p.Dst...), append(of.Given, p.Given...)
		rows = append(rows, some...)
		return nil
	})
	require.NoError(t, err)
	return of, rows
}

func edgesOf(t *testing.T, n *Network, part string) EachPair {
	_, each, err := n.EdgesOf(part)
	require.NoError(t, err)
	return each
}

// logitsOf computes the logits of an edge in float64, by the weights in a file of the run.
func logitsOf(weights map[string][]float32, kind model.Decoder, classes int, x, y, given []float32) (logits []float64) {
	affine := func(name string, row int, bias string, parts map[string][]float32) float64 {
		sum := float64(weights[bias][row])
		for part, x := range parts {
			for i, v := range x {
				sum += float64(weights[name+part+"weight"][row*len(x)+i]) * float64(v)
			}
		}
		return sum
	}
	parts := map[string][]float32{"src.": x, "dst.": y, "edge.": given}
	var hidden []float32
	for h := range x {
		if kind == model.PairMLP {
			hidden = append(hidden, float32(max(0, affine("decoder.lins.0.", h, "decoder.lins.0.bias", parts))))
		}
	}
	for c := range classes {
		if kind == model.PairMLP {
			logits = append(logits, affine("decoder.lins.1.", c, "decoder.lins.1.bias", map[string][]float32{"": hidden}))
		} else {
			logits = append(logits, affine("decoder.lin.", c, "decoder.lin.bias", parts))
		}
	}
	return logits
}

// ratedShop is the shop with a number for each purchase, which its ends tell, and another one.
func ratedShop(spec storetest.TypedSpec) storetest.TypedSpec {
	rating := func(u, v store.NodeID) float64 { return float64(u%3)*float64(v%2) - 1 }
	number := func(u, v store.NodeID) float64 { return float64((u+v)%8) / 8 }
	for i := range spec.Relations {
		r := &spec.Relations[i]
		if r.EdgeSplit == nil {
			continue
		}
		lists := r.Neighbors
		r.Columns = []storetest.Column{
			{Name: "rating", Elem: store.I32, Value: func(v, j int) float64 { return rating(lists[v][j], store.NodeID(v)) }},
			{Name: "number", Elem: store.F32, Value: func(v, j int) float64 { return number(lists[v][j], store.NodeID(v)) }},
		}
		for _, h := range []*storetest.HeldEdges{&r.EdgeSplit.Valid, &r.EdgeSplit.Test} {
			h.Values = make([][]float64, 2)
			for j, u := range h.Src {
				h.Values[0], h.Values[1] = append(h.Values[0], rating(u, h.Dst[j])), append(h.Values[1], number(u, h.Dst[j]))
			}
		}
	}
	return spec
}

// TestPredictEdges: predictions of edges equal the decoder's output on the embeddings of their
// ends, and give the measured metric. They are the same bits in any order, beside any other edges,
// and wherever rows are kept.
func TestPredictEdges(t *testing.T) {
	storetest.Long(t)
	trust, between := openTyped(t, storetest.Trust(300, true, true)), openTyped(t, ratedShop(shop(rand.New(rand.NewPCG(3, 4)))))
	for name, c := range map[string]struct {
		ds     *store.Dataset
		change func(o *run.Options)
	}{
		"classes, mlp": {trust, func(o *run.Options) {
			o.EdgeInputs = map[string][]string{"rates": {"time", "rating"}, "rev_rates": {"rating"}}
		}},
		"classes, linear": {trust, func(o *run.Options) { o.EdgeLabel, o.Decoder = "rating", model.Linear }},
		"learnt rows":     {trust, func(o *run.Options) { o.Inputs = map[string]string{"user": "embed:8"} }},
		"numbers": {trust, func(o *run.Options) {
			o.EdgeLabel, o.EdgeInputs = "rating:value", map[string][]string{"rates": {"time"}}
		}},
		"two types": {between, func(o *run.Options) {
			o.EdgeLabel, o.Target, o.EdgeInputs = "rating", "user,buys,item", map[string][]string{"buys": {"number"}}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			o := edgeOptionsOf(model.RSAGE)
			o.Epochs = 2
			c.change(&o)
			dir, _ := runIn(t, c.ds, o)
			n := network(t, c.ds, dir, NetworkOptions{Use: run.Use{Scratch: filepath.Join(t.TempDir(), "layers")}})
			d := n.Data()
			number, from, to := n.Relation()
			every := func(kind int) map[uint32][]float32 {
				var nodes []uint32
				for v := range d.Types[kind].Nodes {
					nodes = append(nodes, uint32(v))
				}
				rows, _ := predictionsOf(t, n, d.Types[kind].Name, Embeddings, DefaultLayer, nodes)
				return rows
			}
			x, y := every(from), every(to)
			tensors, _, err := checkpoint.Load(n.c.Dir.FS(), n.c.Dir.File(run.BestFile))
			require.NoError(t, err)
			weights := map[string][]float32{}
			for _, w := range tensors {
				weights[w.Name] = w.Data
			}
			what, classes := Logits, len(d.EdgeLabel.Classes)
			if n.Numbers() {
				what, classes = Values, 1
			}
			for part, held := range map[string]store.HeldPart{"train": -1, "valid": store.HeldValid, "test": store.HeldTest} {
				count, each, err := n.EdgesOf(part)
				require.NoError(t, err)
				of, rows := edgesPredicted(t, n, what, each)
				require.Len(t, of.Src, int(count))
				require.Len(t, rows, len(of.Src)*classes)
				given := len(d.Given())
				for i, u := range of.Src {
					for j, want := range logitsOf(weights, n.c.Decoder, classes, x[u], y[of.Dst[i]], of.Given[i*given:(i+1)*given]) {
						require.InDelta(t, want, rows[i*classes+j], 1e-3)
					}
				}
				if part == "train" {
					at := 0
					for v := range uint32(d.Types[to].Nodes) {
						for _, u := range d.Relations[number].Neighbors(v) {
							require.Equal(t, [2]uint32{u, v}, [2]uint32{of.Src[at], of.Dst[at]})
							at++
						}
					}
					continue
				}
				h, _ := c.ds.HeldEdges(number, held)
				src, dst := h.Ends()
				require.Equal(t, src, of.Src)
				require.Equal(t, dst, of.Dst)
				values, err := d.HeldValues(h, held, d.EdgeLabel.Column)
				require.NoError(t, err)
				right, squares := 0, 0.0
				if n.Numbers() {
					for i, x := range rows {
						squares += math.Pow(float64(x)-d.EdgeLabel.Column.Number(values, i), 2)
					}
					require.InDelta(t, math.Sqrt(squares/float64(h.Len())), measure(t, n, part), 1e-6)
					continue
				}
				_, best := edgesPredicted(t, n, Classes, each)
				_, likely := edgesPredicted(t, n, Probabilities, each)
				for i, class := range best {
					row := rows[i*classes : (i+1)*classes]
					require.EqualValues(t, slices.Index(row, slices.Max(row)), class)
					sum := 0.0
					for j, p := range likely[i*classes : (i+1)*classes] {
						sum += float64(p)
						require.InDelta(t, math.Exp(float64(row[j]-slices.Max(row))), float64(p/slices.Max(likely[i*classes:(i+1)*classes])), 1e-5)
					}
					require.InDelta(t, 1, sum, 1e-6)
					if uint32(class) == d.EdgeLabel.Class(d.EdgeLabel.Column.Number(values, i)) {
						right++
					}
				}
				require.InDelta(t, float64(right)/float64(h.Len()), measure(t, n, part), 1e-9)
			}

			of, rows := edgesPredicted(t, n, what, edgesOf(t, n, "train"))
			order := rand.New(rand.NewPCG(7, 8)).Perm(len(of.Src))[:200]
			given := len(d.Given())
			var mixed Pairs
			var want []float32
			for _, i := range append(order, order[0]) {
				mixed.Src, mixed.Dst = append(mixed.Src, of.Src[i]), append(mixed.Dst, of.Dst[i])
				mixed.Given, want = append(mixed.Given, of.Given[i*given:(i+1)*given]...), append(want, rows[i*classes:(i+1)*classes]...)
			}
			some := func(atOnce int) EachPair {
				return func(use func(Pairs) error) error {
					for rest := mixed; len(rest.Src) > 0; {
						if err := use(rest.cut(min(atOnce, len(rest.Src)))); err != nil {
							return err
						}
					}
					return nil
				}
			}
			_, got := edgesPredicted(t, n, what, some(len(mixed.Src)))
			require.Equal(t, want, got)
			n.rowBytes, n.c.eval.Bytes, n.c.eval.ChunkBytes = 0, 0, 1<<12 // a file, layers on disk, and few edges together
			_, got = edgesPredicted(t, n, what, some(7))
			require.Equal(t, want, got)
			left, err := filepath.Glob(filepath.Join(filepath.Dir(n.c.eval.Dir), "*"))
			require.NoError(t, err)
			require.Empty(t, slices.DeleteFunc(left, func(name string) bool { return filepath.Base(name) == "layers" }))

			// One that is cut short behind the first layer goes on where it was, and leaves nothing
			// behind.
			scratch := filepath.Join(t.TempDir(), "layers")
			require.NoError(t, n.Close()) // it holds the run if rows are learnt
			again := network(t, c.ds, dir, NetworkOptions{Use: run.Use{Scratch: scratch}, GoesOn: true})
			defer again.Close()
			again.rowBytes, again.c.eval.Bytes, again.c.eval.ChunkBytes = 0, 0, 1<<12
			ctx, cut := context.WithCancel(t.Context())
			again.Follow(func(layer, layers int, _ string, done, nodes int) {
				if layer == layers-1 && done == nodes {
					cut()
				}
			})
			require.ErrorIs(t, again.PredictEdges(ctx, what, some(7), func(Pairs, []float32) error { return nil }), context.Canceled)
			require.DirExists(t, scratch)
			_, got = edgesPredicted(t, again, what, some(7))
			require.Equal(t, want, got)
			left, err = filepath.Glob(filepath.Join(filepath.Dir(scratch), "*"))
			require.NoError(t, err)
			require.Empty(t, left)
		})
	}
}

// TestPredictEdgesOfNothing: a prediction that the run does not make is refused, and the message
// names the ones that it makes.
func TestPredictEdgesOfNothing(t *testing.T) {
	ds := openTyped(t, storetest.Trust(100, true, false))
	o := edgeOptions()
	o.Epochs = 1
	dir, _ := runIn(t, ds, o)
	n := network(t, ds, dir, NetworkOptions{})
	defer n.Close()
	for what, want := range map[string]string{
		Values: "{what} values: the run learns classes of edges; take classes, probabilities or logits",
		Scores: "{what} scores: the run learns classes of edges, and scores are of links; take logits",
	} {
		_, err := n.Layer(what, DefaultLayer)
		require.EqualError(t, err, want)
	}
	_, _, err := n.EdgesOf("some")
	require.EqualError(t, err, "{edges} some: there are train, valid, test and all")
	o.EdgeLabel = "rating:value"
	dir, _ = runIn(t, ds, o)
	n = network(t, ds, dir, NetworkOptions{})
	defer n.Close()
	_, err = n.Layer(Classes, DefaultLayer)
	require.EqualError(t, err, "{what} classes: the run learns numbers of edges, which have no classes; take values")
	links := linkOptions()
	links.Epochs = 1
	dir, _ = runIn(t, ds, links)
	n = network(t, ds, dir, NetworkOptions{})
	defer n.Close()
	require.EqualError(t, n.PredictEdges(context.Background(), Classes, nil, nil), "{what} classes: the run learns no edges")
}

// TestEdgesOnAnotherDataset: a network predicts the edges of a dataset that has neither the learnt
// column nor an edge split, and predicts the same where ends have the same neighbours. The edge
// inputs of the network have to be there.
func TestEdgesOnAnotherDataset(t *testing.T) {
	for _, label := range []string{"rating", "rating:value"} {
		s := storetest.Trust(200, true, false)
		ds := openTyped(t, s)
		o := edgeOptionsOf(model.RSAGE)
		o.Epochs, o.EdgeLabel, o.EdgeInputs = 2, label, map[string][]string{"rates": {"time"}}
		dir, _ := runIn(t, ds, o)
		own := network(t, ds, dir, NetworkOptions{})
		defer own.Close()
		what := Values
		if label == "rating" {
			what = Logits
		}
		wantOf, want := edgesPredicted(t, own, what, edgesOf(t, own, "train"))
		s.Relations[0].EdgeSplit, s.Relations[0].Columns = nil, s.Relations[0].Columns[1:]
		n := network(t, openTyped(t, s), dir, NetworkOptions{})
		defer n.Close()
		of, got := edgesPredicted(t, n, what, edgesOf(t, n, "train"))
		require.Equal(t, wantOf, of)
		require.Equal(t, want, got)
		count, _, err := n.EdgesOf("test")
		require.NoError(t, err)
		require.Zero(t, count)
		m, err := n.Measure(context.Background(), "test")
		require.NoError(t, err)
		require.Nil(t, m.Value)
		require.Equal(t, "what is learnt of edges is measured on the dataset that the run trained on, and on no other one", m.Why)
		s.Relations[0].Columns = nil
		d, err := run.Look(dir)
		require.NoError(t, err)
		_, err = OpenNetwork(t.Context(), openTyped(t, s), d, NetworkOptions{}, run.Hooks{})
		require.ErrorContains(t, err, "{edge_input} rates=time: the edges of relation user__rates__user have no columns")
	}
}
