package bench

import (
	"context"
	"fmt"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/sample"
)

// Product is the shape of a layer: rows of in columns, and out×in weights.
type Product struct{ Rows, In, Out int }

// Products has the products of a three-layer network on 128 features, of its last layer, and a
// product that is too small to be fast.
var Products = []Product{{8192, 256, 256}, {65536, 128, 256}, {8192, 40, 256}, {8192, 256, 40}, {16, 256, 256}}

// Name returns the name that the cases and tools/bench/openblas.py use for one of the three
// products of a layer.
func (p Product) Name(product string) string {
	return fmt.Sprintf("product=%s/rows=%d/in=%d/out=%d", product, p.Rows, p.In, p.Out)
}

// Cases lists what there is to time on a kernel set that this machine runs, with products of a
// precision.
func Cases(set kernels.Set, products kernels.Precision, threads int) []Case {
	s := suite{set, products, threads}
	var cases []Case
	for _, p := range Products {
		cases = append(cases, s.products(p)...)
	}
	for _, table := range []struct {
		name string
		rows int
	}{{"warm", 1 << 10}, {"cold", 1 << 20}} {
		cases = append(cases, s.means(table.name, table.rows)...)
	}
	return append(append(cases, s.passes()...), s.sampling(), s.step())
}

type suite struct {
	set     kernels.Set
	matmul  kernels.Precision
	threads int
}

// on makes a Case of the work that the function it is given prepares, on a backend of its own.
func (s suite) on(name string, w Work, prepare func(m *memory) (run func())) Case {
	return Case{fmt.Sprintf("%s/kernels=%s/threads=%d", name, s.set, s.threads), func() Job {
		m := &memory{Backend: open(kernels.Options{Threads: s.threads, Set: s.set, Products: s.matmul})}
		return Job{Run: prepare(m), Free: m.freeAll, Work: w, be: m.Backend}
	}}
}

// open returns a backend of the CPU. It panics if this machine has no such kernel set.
func open(o kernels.Options) kernels.Backend {
	be, err := kernels.Open(o)
	if err != nil {
		panic("bench: " + err.Error())
	}
	return be
}

// memory is a backend that knows what it gave.
type memory struct {
	kernels.Backend
	given []kernels.Buffer
}

// Alloc implements kernels.Backend.
func (m *memory) Alloc(t kernels.DType, n int) kernels.Buffer {
	b := m.Backend.Alloc(t, n)
	m.given = append(m.given, b)
	return b
}

func (m *memory) freeAll() {
	for _, b := range m.given {
		m.Backend.Free(b)
	}
}

func (s suite) products(p Product) []Case {
	var cases []Case
	for _, product := range []string{"x·wT", "dy·w", "dyT·x"} {
		work := Work{Flops: 2 * float64(p.Rows) * float64(p.In) * float64(p.Out)}
		cases = append(cases, s.on("MatMul/"+p.Name(product), work, func(m *memory) func() {
			x, w, y := filled(m, p.Rows, p.In), filled(m, p.Out, p.In), filled(m, p.Rows, p.Out)
			switch product {
			case "x·wT":
				return func() { m.MatMul(y, x, w, false, true, false) }
			case "dy·w":
				return func() { m.MatMul(x, y, w, false, false, false) }
			}
			return func() { m.MatMul(w, y, x, true, false, false) }
		}))
	}
	return cases
}

// means have lists that name rows of a table: of 256 or 512 KiB, or a thousand times that. They are
// plain, or weighted sums.
func (s suite) means(table string, rows int) []Case {
	const dsts, degree, cols = 16384, 10, 128
	name := func(op, dtype string) string {
		return fmt.Sprintf("%s/dtype=%s/cols=%d/degree=%d/table=%s", op, dtype, cols, degree, table)
	}
	const read = float64(dsts * degree * cols)
	cases := []Case{
		s.on(name("NeighborMean", "f16"), Work{Bytes: 2 * read, Edges: dsts * degree}, func(m *memory) func() {
			dst, src, g := newMatrix(m, dsts, cols), halves(m, rows, cols), lists(m, dsts, degree, rows)
			return func() { m.NeighborMean(dst, src, g) }
		}),
		s.on(name("NeighborMean", "f32"), Work{Bytes: 4 * read, Edges: dsts * degree}, func(m *memory) func() {
			dst, src, g := newMatrix(m, dsts, cols), filled(m, rows, cols), lists(m, dsts, degree, rows)
			return func() { m.NeighborMean(dst, src, g) }
		}),
	}
	for _, c := range []struct {
		dtype    string
		cols     int
		elements func(be kernels.Backend, rows, cols int) kernels.Tensor
		size     float64
	}{{"f16", cols, halves, 2}, {"f32", 256, filled, 4}} { // of features, and of a hidden layer, by Hájek's weights
		name := fmt.Sprintf("WeightedSum/dtype=%s/cols=%d/degree=%d/table=%s", c.dtype, c.cols, degree, table)
		work := Work{Bytes: c.size * float64(dsts*degree*c.cols), Edges: dsts * degree}
		cases = append(cases, s.on(name, work, func(m *memory) func() {
			dst, src, g := newMatrix(m, dsts, c.cols), c.elements(m, rows*cols/c.cols, c.cols), lists(m, dsts, degree, rows*cols/c.cols)
			w := filled(m, dsts, degree)
			w.Rows, w.Cols = w.Len(), 1
			return func() { m.WeightedSum(dst, src, w, g) }
		}))
	}
	if table == "warm" { // gradients have only the rows of a batch
		cases = append(cases, s.on(fmt.Sprintf("NeighborMeanGrad/cols=256/degree=%d", degree), Work{Bytes: 4 * 2 * read, Edges: dsts * degree}, func(m *memory) func() {
			const sources = 4 * dsts
			dsrc, ddst, g := newMatrix(m, sources, 256), filled(m, dsts, 256), reverse(m, lists(m, dsts, degree, sources), sources)
			return func() { m.NeighborMeanGrad(dsrc, ddst, g, dsrc.Rows) }
		}))
	}
	return cases
}

// passes has the operations that read and write their rows once. Bytes counts the arrays' bytes.
func (s suite) passes() []Case {
	const rows, cols = 8192, 256
	const n = float64(rows * cols)
	name := func(op string) string { return fmt.Sprintf("%s/rows=%d/cols=%d", op, rows, cols) }
	ids := func(m *memory) kernels.Tensor {
		v := make([]uint32, rows)
		for i := range v {
			v[i] = uint32(i * 977)
		}
		return column(m, v)
	}
	return []Case{
		s.on(name("Convert"), Work{Bytes: 6 * n}, func(m *memory) func() {
			dst, src := newMatrix(m, rows, cols), halves(m, rows, cols)
			return func() { m.Convert(dst, src) }
		}),
		// A layer's sources, one in four of them in a slot, and their gradients' norms; then every
		// row is kept.
		s.on(name("AssembleRows"), Work{Bytes: 7.5 * n}, func(m *memory) func() {
			dst, x, slots := newMatrix(m, rows, cols), filled(m, rows, cols), halves(m, rows, cols)
			from := make([]uint32, rows)
			for i := range from {
				from[i] = uint32(i * 977 % rows)
				if i%4 == 0 {
					from[i] |= kernels.InSlot
				}
			}
			at := column(m, from)
			return func() { m.AssembleRows(dst, x, slots, at) }
		}),
		s.on(name("RowNorms"), Work{Bytes: 4 * n}, func(m *memory) func() {
			dst, src := newMatrix(m, rows, 1), filled(m, rows, cols)
			return func() { m.RowNorms(dst, src) }
		}),
		s.on(name("StoreRows"), Work{Bytes: 6 * n}, func(m *memory) func() {
			slots, lost, x := halves(m, rows, cols), ids(m), filled(m, rows, cols)
			order, to := make([]uint32, rows), make([]uint32, rows)
			for i := range order {
				order[i], to[i] = uint32(i), uint32(i*977%rows)
			}
			from, into := column(m, order), column(m, to)
			return func() { m.StoreRows(slots, lost, x, from, into, kernels.Tensor{}) }
		}),
		s.on(name("ReLU"), Work{Bytes: 8 * n}, func(m *memory) func() {
			dst, src := newMatrix(m, rows, cols), filled(m, rows, cols)
			return func() { m.ReLU(dst, src) }
		}),
		s.on(name("Dropout"), Work{Bytes: 8 * n}, func(m *memory) func() {
			dst, src, id := newMatrix(m, rows, cols), filled(m, rows, cols), ids(m)
			return func() { m.Dropout(dst, src, id, 42, 0.5) }
		}),
		s.on(name("DropoutGrad"), Work{Bytes: 12 * n}, func(m *memory) func() {
			dx, dy, id := newMatrix(m, rows, cols), filled(m, rows, cols), ids(m)
			return func() { m.DropoutGrad(dx, dy, id, 42, 0.5) }
		}),
		s.on(name("LayerNorm"), Work{Bytes: 8 * n}, func(m *memory) func() {
			dst, stats, x, gain, bias := newMatrix(m, rows, cols), newMatrix(m, rows, 2), filled(m, rows, cols), filled(m, 1, cols), filled(m, 1, cols)
			return func() { m.LayerNorm(dst, stats, x, gain, bias, 1e-5) }
		}),
		s.on(name("LayerNormGrad"), Work{Bytes: 16 * n}, func(m *memory) func() {
			dx, dy, x, y, stats := newMatrix(m, rows, cols), filled(m, rows, cols), filled(m, rows, cols), newMatrix(m, rows, cols), newMatrix(m, rows, 2)
			gain, bias, dgain, dbias := filled(m, 1, cols), filled(m, 1, cols), newMatrix(m, 1, cols), newMatrix(m, 1, cols)
			m.LayerNorm(y, stats, x, gain, bias, 1e-5)
			return func() { m.LayerNormGrad(dx, dgain, dbias, dy, x, stats, gain, false) }
		}),
		s.on("SoftmaxCrossEntropy/rows=1000/cols=40", Work{Bytes: 8 * 1000 * 40}, func(m *memory) func() {
			loss, dlogits, logits := newMatrix(m, 1000, 1), newMatrix(m, 1000, 40), filled(m, 1000, 40)
			labels := make([]uint32, 1000)
			for i := range labels {
				labels[i] = uint32(i % 40)
			}
			label := column(m, labels)
			return func() { m.SoftmaxCrossEntropy(loss, dlogits, logits, label, 1e-3) }
		}),
		s.on("Adam/rows=256/cols=256", Work{Bytes: 28 * 256 * 256}, func(m *memory) func() {
			w, g, first, second := filled(m, 256, 256), filled(m, 256, 256), newMatrix(m, 256, 256), newMatrix(m, 256, 256)
			step := kernels.AdamStep{LR: 1e-6, Beta1: 0.9, Beta2: 0.999, Eps: 1e-8, Correct1: 0.5, Correct2: 0.5}
			return func() {
				m.Adam([]kernels.AdamParam{{Value: w, Grad: g, M: first, V: second}}, 1, step, kernels.Guard{})
			}
		}),
	}
}

// The batch of DESIGN: a thousand seeds, three hops.
const seeds = 1000

var fanouts = []int{15, 10, 5}

// sampling draws batches on one core from a graph whose lists are in no cache: a million nodes, 60
// MB of edges.
func (s suite) sampling() Case {
	const nodes, degree, batches = 1 << 20, 15, 16
	return Case{fmt.Sprintf("Sample/fanout=15,10,5/batch=%d/nodes=%d", seeds, nodes), func() Job {
		topo := generate(nodes, degree, 1)
		sampler, all, step := sample.NewSampler(sample.AtHand(topo), sample.Config{Fanouts: fanouts}, 1), topo.seedsOf(batches*seeds, 1), 0
		var b sample.Batch
		draw := func() {
			at := step % batches
			step++
			if err := sampler.SampleOne(context.Background(), &b, sample.BatchSeed{First: uint64(at)}, all[at*seeds:(at+1)*seeds]); err != nil {
				panic(err) // generate names no node that is not there
			}
		}
		edges := 0
		for range batches {
			draw()
			for l := range b.Layers {
				edges += len(b.Layers[l].Blocks[0].Nbr)
			}
		}
		return Job{Run: draw, Free: func() {}, Work: Work{Edges: float64(edges) / batches, Seeds: seeds}}
	}}
}

// step trains on eight batches in turn, with the float16 rows of their inputs in memory.
func (s suite) step() Case {
	const nodes, degree, dim, hidden, classes, batches = 1 << 18, 15, 128, 256, 40, 8
	name := fmt.Sprintf("Step/model=sage/layers=3/hidden=%d/fanout=15,10,5/batch=%d", hidden, seeds)
	c := s.on(name, Work{Seeds: seeds}, func(m *memory) func() {
		g := generate(nodes, degree, 1)
		sampler, all := sample.NewSampler(sample.AtHand(g), sample.Config{Fanouts: fanouts}, 1), g.seedsOf(batches*seeds, 1)
		table := halves(m, nodes, dim)
		trainer := NewTrainer(m, model.Config{Kind: model.SAGE, Layers: 3, Hidden: hidden, Dropout: 0.5, Norm: "layer"}, model.Shape{In: []int{dim}, Out: classes}, 1)
		var drawn [batches]sample.Batch
		var rows [batches][]kernels.Tensor
		labels := make([]uint32, seeds)
		for i := range labels {
			labels[i] = uint32(i % classes)
		}
		for i := range drawn {
			if err := sampler.SampleOne(context.Background(), &drawn[i], sample.BatchSeed{First: uint64(i)}, all[i*seeds:(i+1)*seeds]); err != nil {
				panic(err) // generate names no node that is not there
			}
			rows[i] = []kernels.Tensor{table.Slice(0, len(drawn[i].Inputs()[0]))} // any rows do: a step's time does not depend on them
		}
		at := 0
		return func() {
			trainer.Step(&drawn[at%batches], rows[at%batches], labels, 0.003, uint64(at))
			at++
		}
	})
	prepare := c.Prepare
	c.Prepare = func() Job {
		j := prepare()
		j.cycle = batches
		return j
	}
	return c
}
