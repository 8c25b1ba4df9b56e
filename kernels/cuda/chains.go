//go:build cuda && linux

package cuda

import (
	"github.com/gnnstore/gnnstore/kernels"
)

// A meanGrad is a NeighborMeanGrad, and the operations behind it that it has taken up: the Dropout
// in place unless drop.ids is null, then a ReLUMask by y unless y is null.
type meanGrad struct {
	dsrc, ddst, start, end, revStart, revDst operand
	dsts, srcs, edges, cols                  int
	fresh                                    int // rows from here on are overwritten

	drop drop
	y    operand
}

func (m *meanGrad) windows() []operand {
	return []operand{m.dsrc, m.ddst, m.start, m.end, m.revStart, m.revDst, m.drop.ids, m.y}
}

// makes reports whether m is there and its result is the n elements from x on.
func (m *meanGrad) makes(x operand, n int) bool {
	return m != nil && m.dsrc.beginsWith(x) && m.srcs*m.cols == n
}

// args returns m's parameters of the kernels in chains.cu.
func (m *meanGrad) args(failures operand) []any {
	threshold, factor := uint32(0), float32(1)
	if m.drop.ids.at != 0 {
		threshold, factor = kernels.Dropping(m.drop.p)
	}
	return []any{
		m.dsrc, m.ddst, m.start, m.end, m.revStart, m.revDst, m.dsts, m.edges, m.fresh, failures,
		m.y, m.drop.ids, m.drop.key, threshold, factor,
	}
}

// deferMeanGrad has a NeighborMeanGrad wait.
func (b *Backend) deferMeanGrad(m meanGrad) {
	b.deferring(forMeanGrad, m.windows(), func(d *deferred) { d.meanGrad = &m })
}

// meanGradTakesDropout has the NeighborMeanGrad that waits take up a Dropout in place.
func (b *Backend) meanGradTakesDropout(of drop) bool {
	b.settle(of.ids)
	d := &b.deferred
	d.mu.Lock()
	defer d.mu.Unlock()
	m := d.meanGrad
	if !m.makes(of.x, of.rows*of.cols) || m.cols != of.cols || m.drop.ids.at != 0 || m.y.at != 0 {
		return false
	}
	m.drop = of
	mark(forMeanGrad, true, of.ids)
	return true
}

// meanGradTakesMask has the NeighborMeanGrad that waits take up a ReLUMask of n elements.
func (b *Backend) meanGradTakesMask(x, y operand, n int) bool {
	b.settle(y)
	d := &b.deferred
	d.mu.Lock()
	defer d.mu.Unlock()
	m := d.meanGrad
	if !m.makes(x, n) || m.y.at != 0 {
		return false
	}
	m.y = y
	mark(forMeanGrad, true, y)
	return true
}

// takesColumnSum has the gradient that waits take up a ColumnSumGrad of it, and launches both.
func (b *Backend) takesColumnSum(drow, src operand, rows, cols int) bool {
	b.settle(drow)
	d := &b.deferred
	d.mu.Lock()
	defer d.mu.Unlock()
	if m := d.meanGrad; m.makes(src, rows*cols) && m.cols == cols {
		b.launchMeanGrad(drow)
		return true
	}
	if n := d.normGrad; n != nil && n.dx.beginsWith(src) && n.rows == rows && n.cols == cols {
		b.launchNormGrad(drow)
		return true
	}
	return false
}

// launchMeanGrad launches the NeighborMeanGrad that waits. Unless drow is null, the sums of its
// columns are added to drow.
func (b *Backend) launchMeanGrad(drow operand) {
	m := b.deferred.meanGrad
	if m == nil {
		return
	}
	b.deferred.meanGrad = nil
	mark(forMeanGrad, false, m.windows()...)
	p, fits := b.deferred.params, m.cols%4 == 0
	if m.drop.ids.at == 0 && m.y.at == 0 && drow.at == 0 {
		grid, shift := b.lanes(m.srcs, m.cols, 4)
		b.launch(p, b.wide("neighbor_mean_grad", fits, m.dsrc, m.ddst), grid,
			m.dsrc, m.ddst, m.start, m.end, m.revStart, m.revDst, m.dsts, m.srcs, m.edges, m.cols,
			shift, b.failures, m.fresh)
		return
	}
	var into []operand
	if drow.at != 0 {
		into = []operand{drow}
	}
	name := b.wide("neighbor_mean_grad_chain", fits, m.dsrc, m.ddst, m.y)
	b.launchColumns(name, chainColumns, m.srcs, m.cols, into, append(m.args(b.failures), m.srcs, m.cols)...)
}

// chainColumns is the number of columns that a block of a kernel in chains.cu computes.
const chainColumns = 256

// A normGrad is a LayerNormGrad. mean is the NeighborMeanGrad that makes its dy, or nil if dy is
// made already.
type normGrad struct {
	dx, dgain, dbias, dy, x, stats, gain operand
	rows, cols, add                      int

	mean *meanGrad
}

func (n *normGrad) windows() []operand {
	all := []operand{n.dx, n.dgain, n.dbias, n.dy, n.x, n.stats, n.gain}
	if n.mean != nil {
		all = append(all, n.mean.windows()...)
	}
	return all
}

// deferNormGrad has a LayerNormGrad of at most chainColumns columns wait. It takes up the
// NeighborMeanGrad that makes its dy.
func (b *Backend) deferNormGrad(n normGrad) {
	for _, o := range []operand{n.dx, n.dgain, n.dbias, n.x, n.stats, n.gain} {
		b.settle(o)
	}
	d := &b.deferred
	d.mu.Lock()
	defer d.mu.Unlock()
	b.launchNormGrad(operand{})
	if m := d.meanGrad; m.makes(n.dy, n.rows*n.cols) && m.cols == n.cols {
		n.mean, d.meanGrad = m, nil
		mark(forMeanGrad, false, m.windows()...)
	} else {
		b.settleLocked(n.dy)
	}
	d.normGrad = &n
	mark(forNormGrad, true, n.windows()...)
}

// launchNormGrad launches the LayerNormGrad that waits. Unless drow is null, the sums of the
// columns of dx are added to drow.
func (b *Backend) launchNormGrad(drow operand) {
	n := b.deferred.normGrad
	if n == nil {
		return
	}
	b.deferred.normGrad = nil
	mark(forNormGrad, false, n.windows()...)
	into := []operand{n.dgain, n.dbias}
	if drow.at != 0 {
		into = append(into, drow)
	}
	name, first, wide := "layer_norm_grad_chain", []any{n.dy}, []operand{n.dx, n.dy, n.x, n.gain}
	if m := n.mean; m != nil {
		name, first, wide = "neighbor_mean_norm_grad", m.args(b.failures), append(wide, m.ddst, m.y)
	}
	b.launchColumns(b.wide(name, n.cols%4 == 0, wide...), chainColumns, n.rows, n.cols, into,
		append(first, n.dx, n.x, n.stats, n.gain, n.add, len(into), n.rows, n.cols)...)
}
