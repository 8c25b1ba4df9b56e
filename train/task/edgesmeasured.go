package task

import (
	"context"
	"slices"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/metric"
	"github.com/gnnstore/gnnstore/train/sample"
	"github.com/gnnstore/gnnstore/train/step"
)

// Examples returns "edges".
func (k *Edges) Examples() string { return "edges" }

// Attach makes the network of s compute edges. It is called before the first step.
func (k *Edges) Attach(s *step.Stepper) { k.net = s }

// Limit measures parts of more than n edges on n of them, the same ones each time; 0: on all.
func (k *Edges) Limit(n int) error {
	k.most = n
	return nil
}

// Count returns the number of edges of a part, Valid or Test, that are measured.
func (k *Edges) Count(p Part) int {
	h := k.held[p]
	if k.most > 0 {
		return min(h.Len(), k.most)
	}
	return h.Len()
}

// GivenEdges is the number of edges that are predicted together, with the values given for each. It
// is lower if each edge has many values: see data.Data.GivenAtOnce.
const GivenEdges = 1 << 14

// FixedBytes returns the memory of the values that are given with edges, four times over: as read,
// room to grow, as computed, and on the backend. If measures is set, it adds the memory of the
// metric and of a report.
func (k *Edges) FixedBytes(memory int64, measures bool) int64 {
	bytes := 4 * 4 * int64(k.data.GivenDim()) * int64(k.data.GivenAtOnce(GivenEdges))
	if measures {
		bytes += k.measuredBytes(memory)
	}
	return bytes
}

// measuredBytes returns the memory of the metric and of a report on a part.
func (k *Edges) measuredBytes(memory int64) int64 {
	most, classes := int64(max(k.Count(Valid), k.Count(Test))), len(k.label.Classes)
	bytes := k.kind.Bytes(most, classes, false)
	if k.reports() {
		bytes += metric.ReportBytes(most, classes, false, memory)
	}
	return bytes
}

// reports reports whether measurements can make a report: not of numbers, and not where workers
// share the edges.
func (k *Edges) reports() bool { return k.numbers == nil && k.options.Share == nil }

// edgesAtOnce is the most edges that a measurement computes at once. It computes fewer if much is
// given with each: see data.Data.GivenAtOnce.
const edgesAtOnce = 1 << 13

// Bytes returns the largest memory of an evaluation beside the rows of the layers: a row for each
// node that edges name, the logits of some edges with their inputs, the metric, and a report.
func (k *Edges) Bytes(memory int64) (n int64) {
	most := 0
	for p := range k.held {
		most = max(most, k.Count(Part(p)))
	}
	cols := int64(k.net.Model.Out)
	for _, t := range k.data.SeedTypes() {
		nodes := int64(k.data.Types[t].Nodes)
		n += 4*cols*min(nodes, 2*int64(most)) + nodes/4
	}
	n += k.measuredBytes(memory)
	return n + 8*int64(most) + 4*(3*cols+int64(k.net.Model.EdgeOut+k.data.GivenDim()))*int64(min(most, k.data.GivenAtOnce(edgesAtOnce)))
}

// Part begins a measurement. It returns by type the nodes that the part's edges have for ends.
func (k *Edges) Part(_ context.Context, p Part) ([][]uint32, error) {
	h := k.held[p]
	k.part, k.used = p, k.used[:0]
	order := newPermutation(uint64(max(h.Len(), 1)), sample.Hash(k.options.Seed, phaseEval, uint64(p), 1))
	for i := range k.Count(p) {
		if k.Count(p) < h.Len() {
			i = int(order.at(uint64(i)))
		}
		k.used = append(k.used, i)
	}
	slices.Sort(k.used)
	k.rows.free()
	k.rows = newMeasuredRows(k.data)
	src, dst := h.Ends()
	for _, i := range k.used {
		k.rows.add(k.relation.Src, src[i])
		k.rows.add(k.relation.Dst, dst[i])
	}
	return k.rows.nodes(), nil
}

// Measure keeps the output rows of nodes of type t.
func (k *Edges) Measure(f *step.Feed, t int, out kernels.Tensor, nodes []uint32) error {
	k.rows.keep(k.net.Tape.Backend(), f, t, out, nodes)
	return nil
}

// Value returns the metric of the part that Part began, after Measure has taken its rows.
func (k *Edges) Value() (v float64, err error) {
	defer k.rows.free()
	_, _ = k.value() // drops the counts of an evaluation that was cut short
	err = store.Guard(func() (err error) {
		if err = k.rows.check(k.data); err != nil {
			return err
		}
		if err = k.compute(); err == nil {
			v, err = k.value()
		}
		return err
	})
	return v, err
}

// compute adds the edges of the part to the metric.
func (k *Edges) compute() error {
	h, from, to := k.held[k.part], &k.rows[k.relation.Src], &k.rows[k.relation.Dst]
	src, dst := h.Ends()
	values := map[*store.EdgeColumn][]byte{}
	for _, c := range append([]*store.EdgeColumn{k.label.Column}, k.given...) {
		var err error
		if values[c], err = k.data.HeldValues(h, store.HeldPart(k.part), c); err != nil {
			return err
		}
	}
	by := byLargest
	switch {
	case k.numbers != nil:
		by = byNumber
	case k.Kind() == metric.ROCAUC:
		by = byMargin
	}
	k.answers = sameness{} // an evaluation that was cut short may have left some
	x, most := &k.now, k.data.GivenAtOnce(edgesAtOnce)
	for all := k.used; len(all) > 0; {
		n := min(len(all), most)
		x.src, x.dst = x.src[:0], x.dst[:0]
		x.reset()
		for _, i := range all[:n] {
			x.src, x.dst = append(x.src, from.number(src[i])), append(x.dst, to.number(dst[i]))
			k.add(x, func(c *store.EdgeColumn) float64 { return c.Number(values[c], i) })
		}
		all = all[n:]
		k.net.Tape.Reset(false)
		logits, _, _ := k.logits(k.net.Tape, x, k.net.Tape.Leaf(from.rows), k.net.Tape.Leaf(to.rows))
		rows := k.net.Feed.Download(logits.Value)
		k.answers.add(rows, logits.Value.Cols, by)
		k.measure(rows, x)
		if k.reporter != nil {
			k.reporter.Add(rows, x.classes)
		}
	}
	k.constant = k.answers.take(k.label.Classes, by)
	return nil
}

// Logits returns the predictions for edges from output rows of nodes: edge i has row from[i] of x,
// its source's, row to[i] of y, and the numbers given with it. Predictions are logits, or numbers
// where these are learnt. An evaluation computes the same for the same edges. They are valid until
// the next call.
func (k *Edges) Logits(x, y kernels.Tensor, from, to []uint32, given []float32) []float32 {
	e := &k.now
	e.src, e.dst = append(e.src[:0], from...), append(e.dst[:0], to...)
	e.reset()
	e.floats = append(e.floats, given...)
	k.net.Tape.Reset(false)
	logits, _, _ := k.logits(k.net.Tape, e, k.net.Tape.Leaf(x), k.net.Tape.Leaf(y))
	return k.net.Feed.Download(logits.Value)
}
