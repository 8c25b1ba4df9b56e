package task

import (
	"fmt"
	"math"
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

// marks is a graph of one type with parallel edges and edges in both directions, whose edges have a
// mark of three, -1, 0 and 2, and a price; and the reverse of its relation, and one more relation
// that edges are nothing of.
func marks(t *testing.T, label string, inputs ...string) *data.Data {
	const nodes = 25
	mark := func(u, v, i int) float64 { return []float64{-1, 0, 2}[(u+2*v+i)%3] }
	price := func(u, v, i int) float64 { return float64(u) - float64(v)/4 }
	lists, turned, other := make([][]store.NodeID, nodes), make([][]store.NodeID, nodes), make([][]store.NodeID, nodes)
	for u := range nodes {
		for j := range 1 + u%5 {
			v := (u*3 + j/2*11) % nodes // every other one twice
			lists[v], turned[u] = append(lists[v], store.NodeID(u)), append(turned[u], store.NodeID(v))
		}
		other[u] = []store.NodeID{store.NodeID((u + 1) % nodes)}
	}
	for _, l := range slices.Concat(lists, turned) {
		slices.Sort(l)
	}
	columns := func(lists [][]store.NodeID) []storetest.Column {
		return []storetest.Column{
			{Name: "mark", Elem: store.I32, Value: func(v, i int) float64 { return mark(int(lists[v][i]), v, i) }},
			{Name: "price", Elem: store.F32, Value: func(v, i int) float64 { return price(int(lists[v][i]), v, i) }},
		}
	}
	part := func(ends ...uint32) (h storetest.HeldEdges) {
		h.Values = make([][]float64, 2)
		for i := 0; i < len(ends); i += 2 {
			u, v := ends[i], ends[i+1]
			h.Src, h.Dst = append(h.Src, u), append(h.Dst, v)
			h.Values[0] = append(h.Values[0], mark(int(u), int(v), 0))
			h.Values[1] = append(h.Values[1], price(int(u), int(v), 0))
		}
		return h
	}
	ds, err := store.Open(storetest.BuildTyped(t, storetest.TypedSpec{
		Types: []storetest.TypedNodes{{Name: "node", Nodes: nodes, Dim: 2, Row: func(v int) []float32 { return []float32{float32(v % 3), 2} }}},
		Relations: []storetest.TypedRelation{
			{Src: "node", Name: "to", Dst: "node", Neighbors: lists, Columns: columns(lists),
				EdgeSplit: &storetest.EdgeSplit{Valid: part(0, 19, 1, 18, 4, 4), Test: part(2, 3, 7, 8)}},
			{Src: "node", Name: "rev_to", Dst: "node", Neighbors: turned, ReverseOf: "node__to__node"},
			{Src: "node", Name: "sees", Dst: "node", Neighbors: other},
		},
		Target: "node", Classes: 1, Class: func(int) int32 { return 0 },
	}))
	require.NoError(t, err)
	t.Cleanup(func() { ds.Close() })
	o := data.Options{Links: true, EdgeLabel: label}
	if len(inputs) > 0 {
		o.EdgeInputs = map[string][]string{"to": inputs}
	}
	d, err := data.Open(ds, o)
	require.NoError(t, err)
	return d
}

// TestStepsOfEdges: an epoch has every edge once, in another order than the next; the seeds of a
// step are the ends of its edges, in the order in which they first come; and its draws are without
// every edge between the two ends of one, in either direction and in both relations, and with all
// others.
func TestStepsOfEdges(t *testing.T) {
	d := marks(t, "mark")
	require.Equal(t, []string{"-1", "0", "2"}, d.EdgeLabel.Classes)
	to, back := d.Relations[0], d.Relations[1]
	k, err := NewEdges(d, Options{Batch: 7, Seed: 3}, LinkOptions{})
	require.NoError(t, err)
	require.EqualValues(t, (to.Edges()+6)/7, k.Steps())
	var orders []string
	for epoch := 1; epoch <= 2; epoch++ {
		k.Begin(epoch)
		seen := map[int64]int{}
		for i := range k.Steps() {
			var x examples
			k.of(&x, i)
			orders = append(orders, fmt.Sprint(x.edges))
			var want []uint32
			between := map[[2]uint32]bool{}
			for n, e := range x.edges {
				seen[e]++
				u, v := to.Edge(e)
				require.Equal(t, [2]uint32{u, v}, x.links[n])
				for _, w := range []uint32{u, v} {
					if !slices.Contains(want, w) {
						want = append(want, w)
					}
				}
				require.Equal(t, [2]uint32{u, v}, [2]uint32{want[x.src[n]], want[x.dst[n]]})
				between[[2]uint32{u, v}], between[[2]uint32{v, u}] = true, true
			}
			require.Equal(t, [][]uint32{want}, k.Seeds(i))
			without := k.Without(i)
			require.Empty(t, without[2].Start)
			for r, g := range []data.Relation{to, back} {
				for n, v := range want {
					for _, u := range g.Neighbors(v) {
						require.Equal(t, between[[2]uint32{u, v}], slices.Contains(without[r].Of(n), u), "relation %d, %d→%d", r, u, v)
					}
				}
			}
		}
		require.Len(t, seen, int(to.Edges()))
		for _, n := range seen {
			require.Equal(t, 1, n)
		}
	}
	require.NotEqual(t, orders[:len(orders)/2], orders[len(orders)/2:])
	kept, err := NewEdges(d, Options{Batch: 7, Seed: 3}, LinkOptions{KeepTargets: true})
	require.NoError(t, err)
	kept.Begin(1)
	require.Nil(t, kept.Without(0))
	alone, err := NewEdges(d, Options{Batch: 6, NoMessages: true}, LinkOptions{})
	require.NoError(t, err)
	alone.Begin(1)
	require.Nil(t, alone.Without(0))
}

// TestLossesOfEdges compares the loss and the metric of a step, and the metric of an evaluation,
// with loops over its edges.
func TestLossesOfEdges(t *testing.T) {
	for _, c := range []struct {
		label, weights string
		inputs         []string
		metric         metric.Kind
	}{
		{"mark", "", nil, ""}, {"mark:sign", "balanced", []string{"price"}, metric.ROCAUC}, {"mark", "1,0.5,2", []string{"mark", "price"}, metric.MacroF1},
		{"price:value", "", []string{"mark"}, ""}, {"mark:value", "", nil, metric.MAE},
	} {
		d := marks(t, c.label, c.inputs...)
		k, err := NewEdges(d, Options{Batch: 20, Seed: 3, Metric: c.metric, ClassWeights: c.weights}, LinkOptions{})
		require.NoError(t, err)
		be := kernels.NewReference()
		columns := max(len(d.EdgeLabel.Classes), 1)
		m := model.New(be, model.Config{Kind: model.MLP, Layers: 1, Hidden: 4, Norm: "none", Decoder: model.Linear},
			model.Shape{In: []int{2}, Out: 3, EdgeOut: columns, EdgeIn: len(d.Given())}, 1)
		s := step.New(be, m, k, optim.Options{})
		k.Attach(s)
		k.Begin(1)
		seeds := k.Seeds(1)
		rows := func(n int) kernels.Tensor {
			x := kernels.Tensor{Buf: be.Alloc(kernels.F32, 3*n), Type: kernels.F32, Rows: n, Cols: 3}
			values := make([]float64, 3*n)
			for i := range values {
				values[i] = float64(i%7)/3 - 1
			}
			be.UploadF64(x, values)
			return x
		}
		z := rows(len(seeds[0]))
		s.Tape.Reset(true)
		grad := kernels.Tensor{Buf: be.Alloc(kernels.F32, z.Len()), Type: kernels.F32, Rows: z.Rows, Cols: 3}
		a, err := lossOf(k, s.Tape, s.Feed, model.Rows{tape.NewParam(z, grad)}, step.Input{Seeds: seeds, Step: 1})
		require.NoError(t, err)

		weight := map[string][]float64{}
		for _, p := range m.Params {
			w := make([]float64, p.Value.Len())
			be.DownloadF64(w, p.Value)
			weight[p.Name] = w
		}
		predict := func(u, v uint32, row func(uint32) []float64, given []float64) (logits []float64) {
			for o := range columns {
				sum := weight["decoder.lin.bias"][o]
				for i := range 3 {
					sum += weight["decoder.lin.src.weight"][3*o+i]*row(u)[i] + weight["decoder.lin.dst.weight"][3*o+i]*row(v)[i]
				}
				for i, x := range given {
					sum += weight["decoder.lin.edge.weight"][len(given)*o+i] * x
				}
				logits = append(logits, sum)
			}
			return logits
		}
		given := func(value func(c *store.EdgeColumn) float64) (all []float64) {
			for _, c := range d.Given() {
				all = append(all, value(c))
			}
			return all
		}
		require.Len(t, d.Given(), map[string]int{"mark:sign": 1, "mark": min(len(c.inputs), 1), "price:value": 1}[c.label])
		values := make([]float64, z.Len())
		be.DownloadF64(values, z)
		var want, total, hits, squares float64
		var x examples
		k.of(&x, 1)
		for i, e := range x.edges {
			u, v := x.src[i], x.dst[i]
			logits := predict(u, v, func(n uint32) []float64 { return values[3*n : 3*n+3] }, given(func(c *store.EdgeColumn) float64 { return c.At(e) }))
			y := d.EdgeLabel.Column.At(e)
			if d.EdgeLabel.Numbers() {
				off := logits[0] - y
				want, total, squares = want+off*off, total+1, squares+off*off
				continue
			}
			class, w := d.EdgeLabel.Class(y), 1.0
			if k.weights != nil {
				w = float64(k.weights[class])
			}
			sum := 0.0
			for _, l := range logits {
				sum += math.Exp(l)
			}
			want, total = want+w*(math.Log(sum)-logits[class]), total+w
			if slices.Max(logits) == logits[class] {
				hits++
			}
		}
		require.InDelta(t, want/total, a.Mean(), 1e-5, c.label)
		switch c.metric {
		case "":
			if d.EdgeLabel.Numbers() {
				require.InDelta(t, math.Sqrt(squares/total), k.Trained(a), 1e-5)
			} else {
				require.InDelta(t, hits/float64(len(x.edges)), k.Trained(a), 1e-9)
			}
		}
		s.Tape.Backward()

		// The evaluation, in the rows of its nodes.
		nodes, err := k.Part(t.Context(), Valid)
		require.NoError(t, err)
		require.Equal(t, []uint32{0, 1, 4, 18, 19}, nodes[0])
		all := rows(5)
		require.NoError(t, k.Measure(s.Feed, 0, all, nodes[0]))
		got, err := k.Value()
		src, dst := d.Links.Valid.Ends()
		values = make([]float64, all.Len())
		be.DownloadF64(values, all)
		var logits, targets []float32
		var classes []uint32
		for i, u := range src {
			number := func(c *store.EdgeColumn) float64 { return c.Number(d.Links.Valid.Column(c.Column.Name), i) }
			row := func(v uint32) []float64 {
				n := slices.Index(nodes[0], v)
				return values[3*n : 3*n+3]
			}
			for _, l := range predict(u, dst[i], row, given(number)) {
				logits = append(logits, float32(l))
			}
			if y := number(d.EdgeLabel.Column); d.EdgeLabel.Numbers() {
				targets = append(targets, float32(y))
			} else {
				classes = append(classes, d.EdgeLabel.Class(y))
			}
		}
		var wanted float64
		var werr error
		if d.EdgeLabel.Numbers() {
			m, _ := metric.NewNumbers(k.Kind())
			m.Add(logits, targets)
			wanted, werr = m.Value()
		} else {
			m, _ := metric.NewSingle(k.Kind(), columns)
			m.Add(logits, classes)
			wanted, werr = m.Value()
		}
		require.Equal(t, werr == nil, err == nil)
		require.InDelta(t, wanted, got, 1e-5, c.label)
		s.Close()
	}
}

// TestFewerEdgesAreMeasured: as many as the limit says, the same ones each time.
func TestFewerEdgesAreMeasured(t *testing.T) {
	k, err := NewEdges(marks(t, "mark"), Options{Batch: 20, Seed: 3}, LinkOptions{EvalEdges: 2})
	require.NoError(t, err)
	part := func() []uint32 {
		nodes, err := k.Part(t.Context(), Valid)
		require.NoError(t, err)
		return nodes[0]
	}
	first := slices.Clone(part())
	require.Len(t, k.used, 2)
	require.Equal(t, first, part())
	require.NoError(t, k.Limit(0))
	part()
	require.Len(t, k.used, 3)
}
