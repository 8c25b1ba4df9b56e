package graph

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/x448/float16"

	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
	"github.com/gnnstore/gnnstore/train/data"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/run"
	"github.com/gnnstore/gnnstore/train/sample"
	"github.com/gnnstore/gnnstore/train/step"
	tasks "github.com/gnnstore/gnnstore/train/task"
)

// predictions are rows by node, and the nodes in the order in which they came.
func predictions(t *testing.T, n *Network, what string, asked int, nodes []uint32) (rows map[uint32][]float32, order []uint32) {
	return predictionsOf(t, n, "", what, asked, nodes)
}

// predictionsOf is predictions of nodes of a type.
func predictionsOf(t *testing.T, n *Network, kind, what string, asked int, nodes []uint32) (rows map[uint32][]float32, order []uint32) {
	layer, err := n.Layer(what, asked)
	require.NoError(t, err)
	typ, err := n.TypeOf(kind, what, layer)
	require.NoError(t, err)
	rows = map[uint32][]float32{}
	cols := n.Columns(what, layer, typ)
	err = n.Predict(context.Background(), what, layer, typ, nodes, func(chunk []uint32, values []float32) error {
		require.Len(t, values, len(chunk)*cols)
		for i, v := range chunk {
			require.Nil(t, rows[v])
			rows[v] = slices.Clone(values[i*cols : (i+1)*cols])
			order = append(order, v)
		}
		return nil
	})
	require.NoError(t, err)
	require.Len(t, rows, len(nodes))
	return rows, order
}

func everyNode(n *Network) (nodes []uint32) {
	for v := range n.Data().Types[n.Data().Target].Nodes {
		nodes = append(nodes, uint32(v))
	}
	return nodes
}

// TestPredict: what is predicted agrees with itself, with what is measured, with budgets and with
// other nodes beside.
func TestPredict(t *testing.T) {
	labels := small()
	labels.LabelInput, labels.Batch = 4, 32
	one := small()
	one.Layers, one.Fanouts = 1, []int{5}
	learnt := learning()
	several := storetest.Communities(400, 4, 6, 8, 3)
	several.Bits = func(v int) []uint8 { return []uint8{uint8(v % 2), uint8(v % 3 / 2), 1} }
	several.Classes = 3
	single, library := open(t, storetest.Communities(600, 4, 6, 16, 2)), openTyped(t, storetest.Library(400, 3, 2))
	for name, c := range map[string]struct {
		ds *store.Dataset
		o  run.Options
	}{
		"plain": {single, small()}, "one layer": {single, one}, "labels": {single, labels}, "several": {open(t, several), small()},
		"rgat": {library, typed(model.RGAT)}, "learnt": {library, learnt},
	} {
		t.Run(name, func(t *testing.T) {
			c.o.Epochs = 2
			dir, _ := runIn(t, c.ds, c.o)
			n := network(t, c.ds, dir, NetworkOptions{})
			all := everyNode(n)
			logits, order := predictions(t, n, Logits, DefaultLayer, all)
			if c.o.LabelInput == 0 {
				require.True(t, slices.IsSorted(order))
			} else {
				require.True(t, slices.IsSorted(order[:len(order)-len(n.Data().Train)]))
				require.Equal(t, n.Data().Train, order[len(order)-len(n.Data().Train):])
			}

			classes, _ := predictions(t, n, Classes, DefaultLayer, all)
			probabilities, _ := predictions(t, n, Probabilities, DefaultLayer, all)
			right, of := 0, 0
			for v, row := range logits {
				if n.Several() {
					for i, x := range row {
						require.Equal(t, x > 0, classes[v][i] == 1)
						require.Equal(t, x > 0, probabilities[v][i] > 0.5)
					}
					continue
				}
				class := slices.Index(row, slices.Max(row))
				require.EqualValues(t, class, classes[v][0])
				sum := 0.0
				for i, p := range probabilities[v] {
					require.InDelta(t, float64(p), float64(p/probabilities[v][class])*float64(probabilities[v][class]), 1e-6)
					require.LessOrEqual(t, p, probabilities[v][class])
					require.InDelta(t, math.Exp(float64(row[i]-row[class])), float64(p/probabilities[v][class]), 1e-5)
					sum += float64(p)
				}
				require.InDelta(t, 1, sum, 1e-6)
				if _, tested := slices.BinarySearch(n.Data().Test, v); tested {
					of++
					if int32(class) == n.Data().Labels.Class(v) {
						right++
					}
				}
			}
			if !n.Several() {
				require.Equal(t, measure(t, n, "test"), float64(right)/float64(of))
			}

			// The last layer's embeddings are the logits; those below have the width of the
			// network.
			same, _ := predictions(t, n, Embeddings, c.o.Layers, all)
			require.Equal(t, logits, same)
			hidden, _ := predictions(t, n, Embeddings, DefaultLayer, all)
			if c.o.Layers == 1 {
				require.Equal(t, logits, hidden)
			} else {
				require.Len(t, hidden[0], c.o.Hidden)
			}

			// Few nodes alone, and little memory.
			few := []uint32{0, 3, 17, all[len(all)-1]}
			alone, _ := predictions(t, n, Logits, DefaultLayer, few)
			for _, v := range few {
				require.Equal(t, logits[v], alone[v], "node %d", v)
			}
			require.NoError(t, n.Close())
			n = network(t, c.ds, dir, NetworkOptions{Use: run.Use{MemoryBytes: 100 << 20}})
			again, _ := predictions(t, n, Logits, DefaultLayer, all)
			require.Equal(t, logits, again)
			require.NoError(t, n.Close())

			// Hidden rows on disk, for a pass that is cut short first.
			scratch := filepath.Join(t.TempDir(), "layers")
			n = network(t, c.ds, dir, NetworkOptions{Use: run.Use{Scratch: scratch}, GoesOn: true})
			n.c.eval.Bytes = 0
			enough := errors.New("enough")
			err := n.Predict(context.Background(), Logits, c.o.Layers, n.Data().Target, all, func([]uint32, []float32) error { return enough })
			require.ErrorIs(t, err, enough)
			if c.o.Layers > 1 {
				require.DirExists(t, scratch)
			}
			again, _ = predictions(t, n, Logits, DefaultLayer, all)
			require.Equal(t, logits, again)
			require.NoDirExists(t, scratch)
			require.NoError(t, n.Close())
		})
	}
}

// TestPredictFewNodes: few nodes are computed from their neighbourhoods alone, to the same bits as
// with all others beside.
func TestPredictFewNodes(t *testing.T) {
	s := storetest.Communities(2000, 4, 3, 8, 3)
	ds := open(t, s)
	dir, _ := runIn(t, ds, small())
	n := network(t, ds, dir, NetworkOptions{})
	defer n.Close()
	all, _ := predictions(t, n, Logits, DefaultLayer, everyNode(n))
	computed := map[int]int{}
	n.Follow(func(layer, _ int, _ string, _, nodes int) { computed[layer] = nodes })
	few := []uint32{4, 1700}
	got, _ := predictions(t, n, Logits, DefaultLayer, few)
	near := map[uint32]bool{}
	for _, v := range few {
		require.Equal(t, all[v], got[v])
		near[v] = true
		for _, u := range ds.Graph(0).Neighbors(v) {
			near[u] = true
		}
	}
	require.Equal(t, map[int]int{1: len(near), 2: len(few)}, computed)
}

// TestPredictIsThePlainPass: one batch of all nodes, with all their neighbours, gives the same
// logits but for the last bits. It adds up equal rows in other chunks.
func TestPredictIsThePlainPass(t *testing.T) {
	ds := open(t, storetest.Communities(300, 3, 6, 8, 3))
	o := small()
	o.Fanouts = []int{sample.All, sample.All}
	dir, _ := runIn(t, ds, o)
	n := network(t, ds, dir, NetworkOptions{})
	defer n.Close()
	all := everyNode(n)
	got, _ := predictions(t, n, Logits, DefaultLayer, all)
	m := n.c
	b := &sample.Batch{}
	sampler := sample.NewTyped(m.data.Schema(), []sample.Topology{m.data.Relations[0].AtHand(false)}, m.draws, 1)
	require.NoError(t, sampler.SampleOne(context.Background(), b, sample.BatchSeed{}, m.data.Seeds(all)...))
	rows := m.tiers.Zeros(0, len(b.Inputs()[0]))
	defer m.Backend.Free(rows.Buf)
	f := m.data.Types[0].Features
	halves := make([]uint16, 0, rows.Len())
	for _, v := range b.Inputs()[0] {
		row := f.Row(v)
		for i := 0; i < len(row); i += 2 {
			halves = append(halves, uint16(row[i])|uint16(row[i+1])<<8)
		}
	}
	m.Backend.UploadHalf(rows, halves)
	want := m.step.Feed.Download(m.step.Predict(step.InputOf(b, rows))[0].Value)
	for i, v := range all {
		require.InDeltaSlice(t, want[i*3:i*3+3], got[v], 1e-5)
	}
}

// TestPredictOnAnotherDataset: a network says the same of the same nodes where there are others
// beside them, and of a new node that is like an old one what it says of that.
func TestPredictOnAnotherDataset(t *testing.T) {
	s := storetest.Communities(300, 3, 6, 8, 3)
	ds := open(t, s)
	dir, _ := runIn(t, ds, small())
	own := network(t, ds, dir, NetworkOptions{})
	defer own.Close()
	want, _ := predictions(t, own, Logits, DefaultLayer, everyNode(own))

	like := func(v int) int { return v % 300 } // node 300 is like node 0
	row, class := s.Row, s.Class
	s.Nodes, s.Neighbors = 301, append(slices.Clone(s.Neighbors), s.Neighbors[0])
	s.Row, s.Class = func(v int) []float32 { return row(like(v)) }, func(v int) int32 { return class(like(v)) }
	s.Train, s.Valid = s.Train[:40], nil
	grown := open(t, s)
	n := network(t, grown, dir, NetworkOptions{})
	defer n.Close()
	require.Equal(t, own.Checkpoint, n.Checkpoint)
	require.Equal(t, own.Epoch, n.Epoch)
	require.Equal(t, own.Updates, n.Updates)
	got, _ := predictions(t, n, Logits, DefaultLayer, everyNode(n))
	for v, logits := range want {
		require.Equal(t, logits, got[v], "node %d", v)
	}
	require.Equal(t, want[0], got[300])
	require.Equal(t, measure(t, own, "test"), measure(t, n, "test"))
}

// TestPredictOnAnUnlabelledDataset: neither labels nor a split are needed to predict, classes have
// the names that they were trained by, and there is nothing to measure.
func TestPredictOnAnUnlabelledDataset(t *testing.T) {
	several := storetest.Communities(300, 3, 6, 8, 3)
	several.Bits = func(v int) []uint8 { return []uint8{uint8(v % 2), uint8(v % 3 / 2), 1} }
	for name, s := range map[string]storetest.Spec{"one class": storetest.Communities(300, 3, 6, 8, 3), "several": several} {
		t.Run(name, func(t *testing.T) {
			ds := open(t, s)
			o := small()
			o.ClassWeights = "none"
			if name == "one class" {
				o.ClassWeights = "balanced"
			}
			dir, _ := runIn(t, ds, o)
			own := network(t, ds, dir, NetworkOptions{})
			defer own.Close()
			want, _ := predictions(t, own, Classes, DefaultLayer, everyNode(own))
			s.Unlabelled = true
			n := network(t, open(t, s), dir, NetworkOptions{})
			defer n.Close()
			require.Equal(t, own.Several(), n.Several())
			require.Equal(t, own.Data().Labels.Label.Classes, n.Data().Labels.Label.Classes)
			got, _ := predictions(t, n, Classes, DefaultLayer, everyNode(n))
			require.Equal(t, want, got)
			for _, part := range LabelledParts {
				m, err := n.Measure(t.Context(), part)
				require.NoError(t, err)
				require.Nil(t, m.Value)
				require.Equal(t, "no node of it has a label", m.Why)
			}
			_, err := n.Data().Part("test")
			require.ErrorContains(t, err, "{nodes} test: nodes of type node have no split")
		})
	}
	s := storetest.Communities(300, 3, 6, 8, 3)
	o := small()
	o.LabelInput, o.Batch = 4, 32
	dir, _ := runIn(t, open(t, s), o)
	d, err := run.Look(dir)
	require.NoError(t, err)
	s.Unlabelled = true
	_, err = OpenNetwork(t.Context(), open(t, s), d, NetworkOptions{}, run.Hooks{})
	require.ErrorContains(t, err, "{label_input} 4: the network reads labels of training nodes, and no node here is one with a label")
}

// TestLinksOnAnotherDataset: what a run of links has learnt scores pairs of a dataset whose edges
// are not split, the same ones the same where they have the same neighbours.
func TestLinksOnAnotherDataset(t *testing.T) {
	s := linked(300)
	ds := open(t, s)
	dir, _ := runIn(t, ds, linkOptions())
	own := network(t, ds, dir, NetworkOptions{})
	defer own.Close()
	src, dst := []uint32{1, 2, 3, 250}, []uint32{5, 1, 299, 3}
	want := scored(t, own, src, dst, 4)
	s.EdgeSplit, s.Unlabelled = nil, true
	n := network(t, open(t, s), dir, NetworkOptions{})
	defer n.Close()
	require.Equal(t, want, scored(t, n, src, dst, 4))
	m, err := n.Measure(t.Context(), "test")
	require.NoError(t, err)
	require.Nil(t, m.Value)
	require.NoError(t, n.Top(t.Context(), tasks.TopOptions{K: 2, ExcludeKnown: true}, src[:1], func(uint32, []uint32, []float32) error { return nil }))
}

// TestPredictUnlabelled: nodes of a part are predicted whether or not they have a label, and
// measured where they have one.
func TestPredictUnlabelled(t *testing.T) {
	s := storetest.Communities(300, 3, 6, 8, 3)
	class := s.Class
	s.Class = func(v int) int32 {
		if v%3 == 0 {
			return -1
		}
		return class(v)
	}
	ds := open(t, s)
	dir, _ := runIn(t, ds, small())
	n := network(t, ds, dir, NetworkOptions{})
	defer n.Close()
	for part, labelled := range map[string][]uint32{"train": n.Data().Train, "valid": n.Data().Valid, "test": n.Data().Test} {
		all, err := n.Data().Part(part)
		require.NoError(t, err)
		require.Greater(t, len(all), len(labelled))
		predictions(t, n, Classes, DefaultLayer, all)
		m, err := n.Measure(context.Background(), part)
		require.NoError(t, err)
		require.Equal(t, len(labelled), m.Count)
	}
	m, err := n.Measure(context.Background(), "all-labelled")
	require.NoError(t, err)
	require.Equal(t, 200, m.Count)
	_, err = n.Measure(context.Background(), "all")
	require.ErrorContains(t, err, "{nodes} all: there are train, valid, test and all-labelled")
}

// TestPredictRefusals: each in one line.
func TestPredictRefusals(t *testing.T) {
	ds := open(t, storetest.Communities(300, 3, 6, 8, 3))
	o := small()
	o.Epochs, o.Sampler = 1, sample.RW
	dir, _ := runIn(t, ds, o)
	n := network(t, ds, dir, NetworkOptions{})
	defer n.Close()
	err := n.Predict(context.Background(), Logits, 2, 0, []uint32{1}, nil)
	require.ErrorContains(t, err, "{sampler} rw weighs the nodes")
	m, err := n.Measure(context.Background(), "test")
	require.NoError(t, err)
	require.Equal(t, "sampled", m.Method)
	for _, c := range []struct {
		what  string
		layer int
		want  string
	}{
		{"colours", DefaultLayer, "{what} colours: there are"}, {Embeddings, 3, "{layer} 3: the network has 2 layers"},
		{Embeddings, -2, "{layer} -2: "}, {Logits, 1, "{layer} 1: of embeddings alone"},
	} {
		_, err := n.Layer(c.what, c.layer)
		require.ErrorContains(t, err, c.want)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	o.Sampler = sample.NS
	dir, _ = runIn(t, ds, o)
	n = network(t, ds, dir, NetworkOptions{})
	defer n.Close()
	require.ErrorIs(t, n.Predict(ctx, Logits, 2, 0, []uint32{1}, nil), context.Canceled)
}

// TestEmbeddingsOfLinks: the embeddings, of either type, are the rows by which links are measured.
// Layer 0 is the input of nodes: features as they are stored, and learnt rows as the checkpoint has
// them.
func TestEmbeddingsOfLinks(t *testing.T) {
	spec := shop(rand.New(rand.NewPCG(3, 4)))
	for _, h := range []*storetest.HeldEdges{&spec.Relations[0].EdgeSplit.Valid, &spec.Relations[0].EdgeSplit.Test} {
		h.PoolSrc, h.PoolDst = h.Src[1:], h.Dst[:len(h.Dst)-1]
	}
	ds := openTyped(t, spec)
	o := linkOptions()
	o.Kind, o.Target, o.Epochs, o.Inputs = model.RSAGE, "user,buys,item", 3, map[string]string{"item": "embed:8"}
	dir, r := runIn(t, ds, o)
	n := network(t, ds, dir, NetworkOptions{})
	defer n.Close()
	all := func(kind int) (nodes []uint32) {
		for v := range n.Data().Types[kind].Nodes {
			nodes = append(nodes, uint32(v))
		}
		return nodes
	}
	users, order := predictionsOf(t, n, "user", Embeddings, DefaultLayer, all(0))
	require.True(t, slices.IsSorted(order))
	items, _ := predictionsOf(t, n, "item", Embeddings, DefaultLayer, all(1))
	require.Len(t, items[0], o.Hidden)

	// ROC-AUC among the pairs that are given.
	score := func(u, v uint32) (sum float64) {
		for i, x := range users[u] {
			sum += float64(x) * float64(items[v][i])
		}
		return sum
	}
	held, above := spec.Relations[0].EdgeSplit.Test, 0.0
	for i, u := range held.Src {
		for j, other := range held.PoolSrc {
			if score(u, held.Dst[i]) > score(other, held.PoolDst[j]) {
				above++
			}
		}
	}
	require.InDelta(t, *r.Best.TestAcc, above/float64(len(held.Src)*len(held.PoolSrc)), 1e-3)

	features, _ := predictionsOf(t, n, "user", Embeddings, 0, all(0))
	for v, row := range features {
		for i, x := range spec.Types[0].Row(int(v)) {
			require.Equal(t, float16.Fromfloat32(x).Float32(), row[i])
		}
	}
	learnt, _ := predictionsOf(t, n, "item", Embeddings, 0, all(1))
	touched := 0
	require.NoError(t, n.c.tiers.Learnt[0].Each(t.Context(), func(row uint32, record []byte) error {
		touched++
		for i, x := range learnt[row] {
			require.Equal(t, math.Float32bits(x), binary.LittleEndian.Uint32(record[4*i:]))
		}
		return nil
	}))
	require.Positive(t, touched)

	for want, c := range map[string]struct {
		kind, what string
		layer      int
	}{
		"say by {type} which of them to predict":   {"", Embeddings, 2},
		"{type} shelf: no such type of nodes":      {"shelf", Embeddings, 2},
		"{type} user: the network predicts logits": {"user", Logits, 2},
	} {
		_, err := n.TypeOf(c.kind, c.what, c.layer)
		require.ErrorContains(t, err, want)
	}
	_, err := n.Layer(Classes, DefaultLayer)
	require.ErrorContains(t, err, "{what} classes: the run learns links")
}

// TestEmbeddingsOfOtherTypes: nodes that are not the target have rows in the layers that the
// network computes of them.
func TestEmbeddingsOfOtherTypes(t *testing.T) {
	ds := openTyped(t, storetest.Library(400, 3, 2))
	dir, _ := runIn(t, ds, learning())
	n := network(t, ds, dir, NetworkOptions{})
	defer n.Close()
	author := slices.IndexFunc(n.Data().Types, func(t data.Type) bool { return t.Name == "author" })
	rows, _ := predictionsOf(t, n, "author", Embeddings, 1, []uint32{0, 5})
	require.Len(t, rows[5], n.c.Hidden)
	rows, _ = predictionsOf(t, n, "author", Embeddings, 0, []uint32{0, 5})
	require.Len(t, rows[5], n.Data().Types[author].Embed)
	_, err := n.TypeOf("author", Embeddings, n.Layers())
	require.ErrorContains(t, err, "{type} author: layer 2 makes no rows of such nodes")
}

// TestLearntRowsOnAnotherDataset: nodes have the rows that were learnt under their ids, whatever
// their place in the other dataset, and new ones the mean of all where that is asked for; so
// predictions are the same where all else is. Rows are as wide as hidden ones, too.
func TestLearntRowsOnAnotherDataset(t *testing.T) {
	spec := storetest.Library(400, 3, 2)
	ds := openTyped(t, spec)
	for name, cols := range map[string]string{"narrow": "embed:8", "as hidden rows": "embed:16"} {
		t.Run(name, func(t *testing.T) {
			o := learning()
			o.Kind, o.Inputs["author"] = model.RGCN, cols
			dir, _ := runIn(t, ds, o)
			own := network(t, ds, dir, NetworkOptions{})
			want, _ := predictions(t, own, Logits, DefaultLayer, everyNode(own))
			rows, _ := predictionsOf(t, own, "author", Embeddings, 0, []uint32{0, 7, 199})
			mean, err := own.meanLearnt(t.Context(), 0)
			require.NoError(t, err)
			require.NoError(t, own.Close())

			grown := spec
			grown.Types = slices.Clone(spec.Types)
			require.Equal(t, "author", grown.Types[0].Name)
			grown.Types[0].Nodes += 2
			scratch := filepath.Join(t.TempDir(), "out.layers")
			n := network(t, openTyped(t, grown), dir, NetworkOptions{Use: run.Use{Scratch: scratch}, Unseen: MeanOfLearnt})
			got, _ := predictions(t, n, Logits, DefaultLayer, everyNode(n))
			require.Equal(t, want, got)
			there, _ := predictionsOf(t, n, "author", Embeddings, 0, []uint32{0, 7, 199, 200, 201})
			require.Equal(t, mean, there[200])
			require.Equal(t, mean, there[201])
			delete(there, 200)
			delete(there, 201)
			require.Equal(t, rows, there)
			require.DirExists(t, scratch+".learnt")

			looked, err := run.Look(dir)
			require.NoError(t, err)
			_, err = OpenNetwork(t.Context(), n.c.data.Set, looked, NetworkOptions{Use: run.Use{Scratch: scratch}, Unseen: MeanOfLearnt}, run.Hooks{})
			require.ErrorContains(t, err, scratch+".learnt: somebody else keeps learnt rows there; wait for the end of that, or name another place")
			require.DirExists(t, scratch+".learnt")
			require.NoError(t, n.Close())
			left, err := filepath.Glob(scratch + "*")
			require.NoError(t, err)
			require.Empty(t, left)

			// What is there by chance is no leftover.
			require.NoError(t, os.Mkdir(scratch+".learnt", 0o777))
			_, err = OpenNetwork(t.Context(), n.c.data.Set, looked, NetworkOptions{Use: run.Use{Scratch: scratch}, Unseen: MeanOfLearnt}, run.Hooks{})
			require.ErrorIs(t, err, fs.ErrExist)
			require.DirExists(t, scratch+".learnt")
		})
	}
}

// TestLearntRowsGoByIDs: the same nodes in another order, known by the same texts.
func TestLearntRowsGoByIDs(t *testing.T) {
	s := linked(120)
	names := func(turn int) func(v int) string {
		return func(v int) string { return fmt.Sprintf("node %d", (v+turn)%120) }
	}
	s.Name = names(0)
	ds := open(t, s)
	o := linkOptions()
	o.Kind, o.Inputs = model.RSAGE, map[string]string{"node": "embed:4"}
	dir, _ := runIn(t, ds, o)
	own := network(t, ds, dir, NetworkOptions{})
	want, _ := predictionsOf(t, own, "", Embeddings, 0, []uint32{10})
	require.NoError(t, own.Close())
	s.Name = names(7)
	n := network(t, open(t, s), dir, NetworkOptions{})
	defer n.Close()
	got, _ := predictionsOf(t, n, "", Embeddings, 0, []uint32{3})
	require.Equal(t, want[10], got[3])
}

// TestLeastMemory: the least that a refusal names is enough, also where chunks and buffers are
// larger in more memory.
func TestLeastMemory(t *testing.T) {
	ds := openTyped(t, storetest.Library(6000, 3, 2))
	o := learning()
	o.Kind, o.Epochs, o.Hidden, o.Inputs["author"] = model.RSAGE, 1, 64, "embed:256"
	dir, _ := runIn(t, ds, o)
	looked, err := run.Look(dir)
	require.NoError(t, err)
	for _, memory := range []int64{1 << 20, 50 << 20} {
		little := NetworkOptions{Use: run.Use{MemoryBytes: memory, Scratch: filepath.Join(t.TempDir(), "layers")}}
		_, err = OpenNetwork(t.Context(), ds, looked, little, run.Hooks{})
		require.Error(t, err)
		least, err := strconv.ParseInt(regexp.MustCompile(`works is (\d+) MiB`).FindStringSubmatch(err.Error())[1], 10, 64)
		require.NoError(t, err)
		little.MemoryBytes = (least - 1) << 20
		_, err = OpenNetwork(t.Context(), ds, looked, little, run.Hooks{})
		require.ErrorContains(t, err, fmt.Sprintf("works is %d MiB", least))
		little.MemoryBytes = least << 20
		require.NoError(t, network(t, ds, dir, little).Close())
	}
}

// TestPredictInLittleMemory: what the refusal names as the least does, 64 MiB are more than that,
// and rows are the same.
func TestPredictInLittleMemory(t *testing.T) {
	ds := open(t, storetest.Communities(3000, 3, 12, 32, 3))
	o := small()
	o.Layers, o.Fanouts, o.Epochs = 3, []int{3, 3, 3}, 1
	dir, _ := runIn(t, ds, o)
	n := network(t, ds, dir, NetworkOptions{})
	all := everyNode(n)
	want, _ := predictions(t, n, Logits, DefaultLayer, all)
	require.NoError(t, n.Close())
	looked, err := run.Look(dir)
	require.NoError(t, err)
	_, err = OpenNetwork(context.Background(), ds, looked, NetworkOptions{Use: run.Use{MemoryBytes: 1 << 20, Scratch: "layers"}}, run.Hooks{})
	require.ErrorContains(t, err, "{memory_bytes} 1 MiB is not enough: with this dataset and network the least that works is ")
	least, err := strconv.ParseInt(regexp.MustCompile(`works is (\d+) MiB`).FindStringSubmatch(err.Error())[1], 10, 64)
	require.NoError(t, err)
	require.Less(t, least, int64(64))
	// Hidden rows take 400 KB.
	for memory, budgets := range map[int64][]int64{least << 20: {-1}, 64 << 20: {0, 100_000}} {
		scratch := filepath.Join(t.TempDir(), "layers")
		n := network(t, ds, dir, NetworkOptions{Use: run.Use{MemoryBytes: memory, Scratch: scratch}})
		for _, bytes := range budgets {
			if bytes >= 0 {
				n.c.eval.Bytes = bytes
			}
			got, _ := predictions(t, n, Logits, DefaultLayer, all)
			require.Equal(t, want, got)
		}
		require.NoError(t, n.Close())
	}
}
