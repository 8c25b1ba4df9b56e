package tape

import "github.com/gnnstore/gnnstore/kernels"

// Halo lists where the rows of a matrix come from, if workers compute them together: see
// sample.Halo. All lists are U32, N×1.
type Halo struct {
	Own  kernels.Tensor // the place in the result of each of the first rows of x; they differ
	Send kernels.Tensor // rows of x that go to other workers, in the order of workers
	Take kernels.Tensor // the place in the result of each row that comes, in the order of workers
	At   kernels.Tensor // of each row of the result: its row of x, or kernels.InSlot|n for Take[n]
}

// Swap sends rows to other workers and fills come with what they send, a matrix of each type. All
// workers call it at the same time. Matrices of types without rows are zero Tensors.
type Swap func(send, come []kernels.Tensor)

// Exchange returns rows of several types, each from x or from another worker: row At[i] of x or, if
// At[i] has kernels.InSlot, of what comes. cols has the columns by type, 0 for types without rows.
// x is nil for a type that has no row here.
//
// In Backward each worker gets the gradients of the rows that it has sent. It adds up its own
// gradient of a row and then the others', in the order of workers. All workers call Exchange in the
// same order, even those without rows, so that each Swap meets the others'.
func (t *Tape) Exchange(x []*Var, halos []Halo, cols []int, swap Swap) []*Var {
	y, send, come := make([]*Var, len(cols)), make([]kernels.Tensor, len(cols)), make([]kernels.Tensor, len(cols))
	for n, c := range cols {
		if c == 0 {
			continue
		}
		send[n], come[n] = t.arena.alloc(halos[n].Send.Rows, c), t.arena.alloc(halos[n].Take.Rows, c)
		if x[n] != nil {
			t.be.GatherRows(send[n], x[n].Value, halos[n].Send)
		}
	}
	swap(send, come)
	for n, c := range cols {
		if c == 0 {
			continue
		}
		own := kernels.Tensor{}
		if x[n] != nil {
			own = x[n].Value
		}
		y[n] = t.result(halos[n].At.Rows, c)
		y[n].needsGrad = !t.off
		t.be.RowsOf(y[n].Value, own, come[n], halos[n].At)
		t.arena.give(send[n])
		t.arena.give(come[n])
		t.record(y[n], func() {}) // it is given up once the operation below has gone back
	}
	t.record(&Var{needsGrad: !t.off}, func() { t.exchangeGrad(x, y, halos, cols, swap) })
	return y
}

// exchangeGrad is the backward of Exchange.
func (t *Tape) exchangeGrad(x, y []*Var, halos []Halo, cols []int, swap Swap) {
	back, come := make([]kernels.Tensor, len(cols)), make([]kernels.Tensor, len(cols))
	for n, c := range cols {
		if c > 0 {
			back[n], come[n] = t.arena.alloc(halos[n].Take.Rows, c), t.arena.alloc(halos[n].Send.Rows, c)
			t.be.GatherRows(back[n], t.grad(y[n]), halos[n].Take)
		}
	}
	swap(back, come)
	for n, c := range cols {
		t.arena.give(back[n])
		if c == 0 || x[n] == nil || !x[n].needsGrad {
			continue
		}
		own := halos[n].Own
		dx, fresh := t.into(x[n])
		sum := dx
		if !fresh {
			sum = t.arena.alloc(dx.Rows, c)
		}
		t.be.GatherRows(sum.Slice(0, own.Rows), t.grad(y[n]), own)
		t.be.Fill(sum.Slice(own.Rows, sum.Rows), 0)
		t.be.GatherRowsGrad(sum, come[n], halos[n].Send)
		t.arena.give(come[n])
		if !fresh {
			t.be.Add(dx, sum)
			t.arena.give(sum)
		}
	}
}
