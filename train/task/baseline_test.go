package task

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
	"github.com/gnnstore/gnnstore/train/data"
	"github.com/gnnstore/gnnstore/train/metric"
	"github.com/gnnstore/gnnstore/train/model"
)

func nodesOf(t *testing.T, s storetest.Spec, kind metric.Kind) *Nodes {
	ds, err := store.Open(storetest.Build(t, s))
	require.NoError(t, err)
	t.Cleanup(func() { ds.Close() })
	d, err := data.Open(ds, data.Options{})
	require.NoError(t, err)
	k, err := NewNodes(d, Options{Batch: 10, Metric: kind})
	require.NoError(t, err)
	return k
}

// f1Of returns the micro-F1 and macro-F1 of one answer for all nodes, which has a bit for each
// class.
func f1Of(s storetest.Spec, nodes []store.NodeID, answer int) (micro, macro float64) {
	var hits, taken, named int
	for c := range s.Classes {
		h, n := 0, 0
		for _, v := range nodes {
			bit := s.Bits(int(v))[c]
			if bit == store.MissingBit {
				continue
			}
			n += int(bit)
			if answer>>c&1 == 1 {
				n, h = n+1, h+int(bit)
			}
		}
		if n > 0 {
			macro, named = macro+2*float64(h)/float64(n), named+1
		}
		hits, taken = hits+h, taken+n
	}
	return 2 * float64(hits) / float64(max(taken, 1)), macro / float64(max(named, 1))
}

// TestBaselineOfNodes compares the baseline with a loop over all possible answers.
func TestBaselineOfNodes(t *testing.T) {
	one := storetest.Communities(200, 3, 2, 4, 1)
	one.Class = func(v int) int32 { return []int32{2, 1, 1, 0, 1, 2, 1}[v%7] }
	several := storetest.Communities(200, 4, 2, 4, 1)
	several.Bits = func(v int) []uint8 {
		row := make([]uint8, 4)
		for c, every := range []int{7, 2, 1, 3} {
			if v%every == 0 {
				row[c] = 1
			}
		}
		if v%5 > 0 { // known of few nodes, and of those mostly there
			row[0] = store.MissingBit
		}
		return row
	}
	numbers := storetest.Communities(200, 3, 2, 4, 1)
	numbers.Number = func(v int) float32 { return float32(v%10) - 3 }
	for _, c := range []struct {
		name string
		spec storetest.Spec
		kind metric.Kind
		what string
		want func(s storetest.Spec, part []store.NodeID) float64
	}{
		{"one class", one, "", "the largest class", func(s storetest.Spec, part []store.NodeID) float64 {
			n := 0
			for _, v := range part {
				if s.Class(int(v)) == 1 {
					n++
				}
			}
			return float64(n) / float64(len(part))
		}},
		{"several classes", several, "", "the same classes for all", func(s storetest.Spec, part []store.NodeID) float64 {
			best, answer := 0.0, 0
			for a := range 1 << s.Classes {
				if micro, _ := f1Of(s, s.Train, a); micro > best {
					best, answer = micro, a
				}
			}
			require.NotContains(t, []int{0, 15}, answer)
			micro, _ := f1Of(s, part, answer)
			return micro
		}},
		{"several classes", several, metric.MacroF1, "the same classes for all", func(s storetest.Spec, part []store.NodeID) float64 {
			_, macro := f1Of(s, part, 15)
			return macro
		}},
		{"several classes", several, metric.ROCAUC, "the same classes for all", func(storetest.Spec, []store.NodeID) float64 { return 0.5 }},
		{"numbers", numbers, "", "the mean of training nodes", func(s storetest.Spec, part []store.NodeID) float64 {
			mean, squares := 0.0, 0.0
			for _, v := range s.Train {
				mean += float64(s.Number(int(v))) / float64(len(s.Train))
			}
			for _, v := range part {
				off := float64(s.Number(int(v))) - mean
				squares += off * off / float64(len(part))
			}
			return math.Sqrt(squares)
		}},
	} {
		k := nodesOf(t, c.spec, c.kind)
		for part, nodes := range [][]store.NodeID{c.spec.Valid, c.spec.Test} {
			seeds, err := k.Part(t.Context(), Part(part))
			require.NoError(t, err)
			b, err := k.Baseline(t.Context(), seeds)
			require.NoError(t, err)
			require.Equal(t, c.what, b.What)
			require.InDelta(t, c.want(c.spec, nodes), b.Value, 1e-6, "%s, %s", c.name, c.kind)
		}
		b, err := k.Baseline(t.Context(), [][]uint32{nil})
		require.NoError(t, err)
		require.Nil(t, b)
	}
}

// TestBaselineOfEdges: the largest class of the training edges, or their mean.
func TestBaselineOfEdges(t *testing.T) {
	for _, label := range []string{"mark", "mark:sign", "price:value"} {
		d := marks(t, label)
		k, err := NewEdges(d, Options{Batch: 20}, LinkOptions{})
		require.NoError(t, err)
		mean, counts, r := 0.0, map[uint32]int{}, d.Relations[0]
		for e := range r.Edges() {
			if y := d.EdgeLabel.Column.At(e); d.EdgeLabel.Numbers() {
				mean += y / float64(r.Edges())
			} else {
				counts[d.EdgeLabel.Class(y)]++
			}
		}
		best := uint32(0)
		for class, n := range counts {
			if n > counts[best] {
				best = class
			}
		}
		for part, h := range []store.HeldEdges{d.Links.Valid, d.Links.Test} {
			_, err := k.Part(t.Context(), Part(part))
			require.NoError(t, err)
			b, err := k.Baseline(t.Context(), nil)
			require.NoError(t, err)
			want := 0.0
			for i := range h.Len() {
				y := d.EdgeLabel.Column.Number(h.Column(d.EdgeLabel.Name), i)
				switch {
				case d.EdgeLabel.Numbers():
					want += (y - mean) * (y - mean) / float64(h.Len())
				case d.EdgeLabel.Class(y) == best:
					want += 1 / float64(h.Len())
				}
			}
			what := "the largest class"
			if d.EdgeLabel.Numbers() {
				what, want = "the mean of training edges", math.Sqrt(want)
			}
			require.Equal(t, what, b.What)
			require.InDelta(t, want, b.Value, 1e-6, "%s, %v", label, Part(part))
		}
	}
}

// TestBaselineOfLinks: by how many edges both ends have, among the same negatives as the network.
func TestBaselineOfLinks(t *testing.T) {
	d := pairs(t)
	buys, back := d.Relations[1], d.Relations[0]
	popular := func(src, dst uint32) float32 {
		return float32((1 + len(buys.Neighbors(dst))) * (1 + len(back.Neighbors(src))))
	}
	for _, c := range []struct {
		negatives, corrupt string
		kind               metric.Kind
	}{{"pairs:40", "", ""}, {"uniform:9", "", metric.MRR}, {"uniform:9", "both", metric.Hits(3)}, {"uniform:9", "both", metric.MRR}} {
		k, err := NewLinks(d, Options{Batch: 7, Seed: 3, Metric: c.kind}, LinkOptions{EvalNegatives: c.negatives, Corrupt: c.corrupt}, model.Dot)
		require.NoError(t, err)
		for _, part := range []Part{Valid, Test} {
			_, err := k.Part(t.Context(), part)
			require.NoError(t, err)
			m, err := metric.NewLinks(k.Kind())
			if c.kind != "" { // a link is ranked among its own negatives
				m, err = metric.NewLists(c.kind)
			}
			require.NoError(t, err)
			src, dst := k.held[part].Ends()
			for i, u := range src {
				positive, instead := []float32{popular(u, dst[i])}, k.replacing(i)
				var byDst, bySrc []float32
				for _, v := range instead.dst {
					byDst = append(byDst, popular(u, v))
				}
				for _, w := range instead.src {
					bySrc = append(bySrc, popular(w, dst[i]))
				}
				m.Add(positive, byDst)
				if len(bySrc) > 0 {
					m.Add(positive, bySrc)
				}
			}
			for _, p := range pairsOf(t, k) {
				m.Add(nil, []float32{popular(p[0], p[1])})
			}
			want, err := m.Value()
			require.NoError(t, err)
			b, err := k.Baseline(t.Context(), nil)
			require.NoError(t, err)
			require.Equal(t, "the popularity of ends", b.What)
			require.InDelta(t, want, b.Value, 1e-12, "%s, %s", c.negatives, k.Kind())
		}
	}
	all, _ := knows(t)
	k, err := NewLinks(all, Options{Batch: 9, NoLayers: true}, LinkOptions{EvalNegatives: All}, model.DistMult)
	require.NoError(t, err)
	_, err = k.Part(t.Context(), Valid)
	require.NoError(t, err)
	b, err := k.Baseline(t.Context(), nil)
	require.NoError(t, err)
	require.Nil(t, b, "among all nodes")
}

// TestSameness: whether answers are the same depends on what the metric reads of them.
func TestSameness(t *testing.T) {
	names := []string{"red", "blue"}
	nan := float32(math.NaN())
	for _, c := range []struct {
		by   answerKind
		rows []float32
		cols int
		want string
	}{
		{byLargest, []float32{1, 2, 3, 9, -2, -1}, 2, "class blue"},
		{byLargest, []float32{1, 2, 3, 2}, 2, ""},
		{byLargest, []float32{0, 0, 1, 0, 0, 1}, 3, "class 2"},
		{byLargest, []float32{1, 2}, 2, ""}, // one node has one answer always
		{bySign, []float32{1, -2, 3, 0}, 2, "the same classes"},
		{bySign, []float32{1, -2, 3, 1}, 2, ""},
		{byMargin, []float32{1, 2, 3, 4, -5, -4}, 2, "the same score"},
		{byMargin, []float32{1, 2, 3, 4.5}, 2, ""},
		{byMargin, []float32{1, 2, 1.0000001, 2}, 2, "the same score"},
		{byScores, []float32{1, 2, 1, 2}, 2, "the same score"},
		{byScores, []float32{1, 2, 2, 3}, 2, ""},
		{byScores, []float32{0, 1e-9}, 1, ""},
		{byNumber, []float32{2.5, 2.5, 2.5000001}, 1, "2.5"},
		{byNumber, []float32{2.5, 2.501}, 1, ""},
		{byNumber, []float32{nan, nan}, 1, ""},
		{byNumber, nil, 0, ""},
	} {
		var s sameness
		for range 2 { // the second measurement knows nothing of the first
			if c.cols > 0 {
				for row := range slices.Chunk(c.rows, c.cols) {
					s.add(row, c.cols, c.by)
				}
			}
			require.Equal(t, c.want, s.take(names, c.by), fmt.Sprint(c.by, c.rows))
		}
	}
}

// TestConstantOfNodes: Constant is about the measurement that ended last.
func TestConstantOfNodes(t *testing.T) {
	s := storetest.Communities(100, 2, 2, 4, 1)
	k := nodesOf(t, s, "")
	for _, rows := range [][]float32{{0, 1}, {1, 0}} {
		for _, v := range s.Valid {
			k.answers.add(rows, 2, k.answersBy())
			require.NoError(t, k.count(rows, []uint32{v}))
		}
		_, err := k.Value()
		require.NoError(t, err)
		require.Equal(t, fmt.Sprintf("class %d", metric.Predicted(rows)), k.Constant())
	}
	for _, v := range s.Valid {
		row := []float32{float32(v % 20), 9}
		k.answers.add(row, 2, k.answersBy())
		require.NoError(t, k.count(row, []uint32{v}))
	}
	_, err := k.Value()
	require.NoError(t, err)
	require.Empty(t, k.Constant())
}

// TestScale: numbers that are large have a large loss before anything is learnt.
func TestScale(t *testing.T) {
	s := storetest.Communities(100, 2, 2, 4, 1)
	scale, err := nodesOf(t, s, "").Scale()
	require.NoError(t, err)
	require.Equal(t, 1.0, scale)
	s.Number = func(v int) float32 { return float32(1000 * (1 + v%2)) }
	scale, err = nodesOf(t, s, "").Scale()
	require.NoError(t, err)
	require.InDelta(t, 2.5e6, scale, 1e6)
	k, err := NewEdges(marks(t, "mark:value"), Options{Batch: 20}, LinkOptions{})
	require.NoError(t, err)
	scale, err = k.Scale()
	require.NoError(t, err)
	require.Equal(t, 4.0, scale)
}

// TestReportsAreBudgeted: the bytes of a task have the scores of a metric, and a report unless
// there is none. A network that learns no more measures any labelled node.
func TestReportsAreBudgeted(t *testing.T) {
	const memory, little = 1 << 30, 1 << 10
	s := storetest.Communities(60, 3, 3, 4, 1)
	k := nodesOf(t, s, metric.Accuracy)
	most := max(len(k.data.Valid), len(k.data.Test))
	require.Less(t, most, s.Nodes)
	require.Equal(t, metric.ReportBytes(int64(most), 3, false, memory), k.Bytes(memory))
	require.Equal(t, metric.ReportBytes(int64(s.Nodes), 3, false, memory), k.FixedBytes(memory, true))
	require.Less(t, k.Bytes(little), k.Bytes(memory))
	require.Zero(t, k.FixedBytes(memory, false))
	k.options.Share = func(n int) (lo, hi int) { return 0, n }
	require.Zero(t, k.Bytes(memory))
	k.kind = metric.ROCAUC
	require.Equal(t, metric.ROCAUC.Bytes(int64(most), 3, false), k.Bytes(memory))
	split := int64(len(k.data.Train) + len(k.data.Valid) + len(k.data.Test))
	require.Equal(t, metric.ROCAUC.Bytes(split, 3, false), k.FixedBytes(memory, true))

	d := marks(t, "mark")
	e, err := NewEdges(d, Options{Batch: 5}, LinkOptions{})
	require.NoError(t, err)
	most = max(e.Count(Valid), e.Count(Test))
	want := metric.ReportBytes(int64(most), len(e.label.Classes), false, memory)
	require.Equal(t, want, e.FixedBytes(memory, true)-e.FixedBytes(memory, false))
	e.kind = metric.ROCAUC
	want += metric.ROCAUC.Bytes(int64(most), len(e.label.Classes), false)
	require.Equal(t, want, e.FixedBytes(memory, true)-e.FixedBytes(memory, false))
}
