package task

import (
	"fmt"
	"math/bits"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/train/data"
	"github.com/gnnstore/gnnstore/train/step"
)

// measuredRows has, by type, the output rows of the nodes that an evaluation asks for.
type measuredRows []nodeRow

// nodeRow numbers some nodes of a type in ascending order, and has a row for each.
type nodeRow struct {
	set    []uint64
	before []uint32
	rows   kernels.Tensor
	be     kernels.Backend // of the rows
}

// newMeasuredRows returns measuredRows without nodes.
func newMeasuredRows(d *data.Data) measuredRows {
	m := make(measuredRows, len(d.Types))
	for _, t := range d.SeedTypes() {
		m[t].set = make([]uint64, (d.Types[t].Nodes+63)/64)
	}
	return m
}

// add asks for node v of type t.
func (m measuredRows) add(t int, v uint32) { m[t].set[v/64] |= 1 << (v % 64) }

// nodes numbers the added nodes, and returns them by type.
func (m measuredRows) nodes() [][]uint32 {
	nodes := make([][]uint32, len(m))
	for t := range m {
		x := &m[t]
		for w, set := range x.set {
			x.before = append(x.before, uint32(len(nodes[t])))
			for ; set != 0; set &= set - 1 {
				nodes[t] = append(nodes[t], uint32(w*64+bits.TrailingZeros64(set)))
			}
		}
	}
	return nodes
}

// keep copies the rows of some nodes of type t.
func (m measuredRows) keep(be kernels.Backend, f *step.Feed, t int, out kernels.Tensor, nodes []uint32) {
	x := &m[t]
	if x.rows.Buf == nil {
		n := x.count()
		x.be, x.rows = be, kernels.NewTensor(be, kernels.F32, n, out.Cols)
	}
	at := make([]uint32, len(nodes))
	for i, v := range nodes {
		at[i] = x.number(v)
	}
	be.ScatterRows(x.rows, out, f.Ints(at)[0])
}

// check returns an error if an evaluation was cut short and rows are missing.
func (m measuredRows) check(d *data.Data) error {
	for t := range m {
		if m[t].set != nil && m[t].rows.Buf == nil {
			return fmt.Errorf("no rows of type %s", d.Types[t].Name)
		}
	}
	return nil
}

// free gives the rows back.
func (m measuredRows) free() {
	for t := range m {
		if b := m[t].rows.Buf; b != nil {
			m[t].be.Free(b)
			m[t].rows = kernels.Tensor{}
		}
	}
}

// number returns the row of node v, which has one.
func (x *nodeRow) number(v uint32) uint32 {
	return x.before[v/64] + uint32(bits.OnesCount64(x.set[v/64]&(1<<(v%64)-1)))
}

// count returns the number of nodes that have rows.
func (x *nodeRow) count() int {
	last := len(x.set) - 1
	return int(x.before[last]) + bits.OnesCount64(x.set[last])
}
