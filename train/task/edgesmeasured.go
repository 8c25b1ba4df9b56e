package task

import (
	"context"
	"fmt"
	"math/bits"
	"slices"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/sample"
	"github.com/gnnstore/gnnstore/train/step"
)

// Attach has edges be computed by the network of s: before the first step.
func (k *Edges) Attach(s *step.Stepper) { k.net = s }

// Limit has parts of more than n edges be measured on n of them, the same ones each time; 0: on all.
func (k *Edges) Limit(n int) error {
	k.most = n
	return nil
}

// Count is how many edges of a part, Valid or Test, are measured.
func (k *Edges) Count(p Part) int {
	h := k.held[p]
	if k.most > 0 {
		return min(h.Len(), k.most)
	}
	return h.Len()
}

// edgesAtOnce is how many edges a measurement computes at once.
const edgesAtOnce = 1 << 13

// Bytes is what an evaluation takes at most beside that of the nodes' rows: a row for each node that edges name, and logits of some
// edges with what they are made of.
func (k *Edges) Bytes() (n int64) {
	most := 0
	for p := range k.held {
		most = max(most, k.Count(Part(p)))
	}
	cols := int64(k.net.Model.Out)
	for _, t := range k.data.SeedTypes() {
		nodes := int64(k.data.Types[t].Nodes)
		n += 4*cols*min(nodes, 2*int64(most)) + nodes/4
	}
	return n + 8*int64(most) + 4*(3*cols+int64(k.net.Model.EdgeOut+len(k.given)))*min(int64(most), edgesAtOnce)
}

// Part begins a measurement: of the nodes that edges of a part have for ends.
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
	k.free()
	k.rows = make([]nodeRow, len(k.data.Types))
	for _, t := range k.data.SeedTypes() {
		k.rows[t].set = make([]uint64, (k.data.Types[t].Nodes+63)/64)
	}
	add := func(t int, v uint32) { k.rows[t].set[v/64] |= 1 << (v % 64) }
	src, dst := h.Ends()
	for _, i := range k.used {
		add(k.relation.Src, src[i])
		add(k.relation.Dst, dst[i])
	}
	nodes := make([][]uint32, len(k.data.Types))
	for t := range k.rows {
		x := &k.rows[t]
		for w, set := range x.set {
			x.before = append(x.before, uint32(len(nodes[t])))
			for ; set != 0; set &= set - 1 {
				nodes[t] = append(nodes[t], uint32(w*64+bits.TrailingZeros64(set)))
			}
		}
	}
	return nodes, nil
}

// Measure keeps what the network made of nodes of type t.
func (k *Edges) Measure(f *step.Feed, t int, out kernels.Tensor, nodes []uint32) error {
	x, be := &k.rows[t], k.net.Tape.Backend()
	if x.rows.Buf == nil {
		n := x.count()
		x.rows = kernels.Tensor{Buf: be.Alloc(kernels.F32, n*out.Cols), Type: kernels.F32, Rows: n, Cols: out.Cols}
	}
	at := make([]uint32, len(nodes))
	for i, v := range nodes {
		at[i] = x.number(v)
	}
	be.ScatterRows(x.rows, out, f.Ints(at)[0])
	return nil
}

// Value is the metric of the part that Part began, whose rows Measure has taken.
func (k *Edges) Value() (v float64, err error) {
	defer k.free()
	_, _ = k.value() // what an evaluation that was cut short has left
	err = store.Guard(func() (err error) {
		for t := range k.rows {
			if k.rows[t].set != nil && k.rows[t].rows.Buf == nil {
				return fmt.Errorf("no rows of type %s", k.data.Types[t].Name) // the evaluation was cut short
			}
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
	x := &k.now
	for all := k.used; len(all) > 0; {
		n := min(len(all), edgesAtOnce)
		x.src, x.dst = x.src[:0], x.dst[:0]
		x.reset()
		for _, i := range all[:n] {
			x.src, x.dst = append(x.src, from.number(src[i])), append(x.dst, to.number(dst[i]))
			k.add(x, func(c *store.EdgeColumn) float64 { return c.Number(values[c], i) })
		}
		all = all[n:]
		k.net.Tape.Reset(false)
		logits, _, _ := k.logits(k.net.Tape, x, k.net.Tape.Leaf(from.rows), k.net.Tape.Leaf(to.rows))
		k.count(k.net.Feed.Download(logits.Value), x)
	}
	return nil
}

// free gives the rows back.
func (k *Edges) free() {
	for t := range k.rows {
		if b := k.rows[t].rows.Buf; b != nil {
			k.net.Tape.Backend().Free(b)
			k.rows[t].rows = kernels.Tensor{}
		}
	}
}

// Logits are what is predicted of edges by rows that the network made of nodes: of row from[i] of x, the source's, and row to[i] of y, and by the
// numbers given with each. They are what an evaluation computes of the same edges, or where numbers are learnt these, and valid until the
// next call.
func (k *Edges) Logits(x, y kernels.Tensor, from, to []uint32, given []float32) []float32 {
	e := &k.now
	e.src, e.dst = append(e.src[:0], from...), append(e.dst[:0], to...)
	e.reset()
	e.floats = append(e.floats, given...)
	k.net.Tape.Reset(false)
	logits, _, _ := k.logits(k.net.Tape, e, k.net.Tape.Leaf(x), k.net.Tape.Leaf(y))
	return k.net.Feed.Download(logits.Value)
}
