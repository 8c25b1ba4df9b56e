package tape

import "github.com/gnnstore/gnnstore/kernels"

// Halo lists, for one type, the rows that Exchange sends, gets and returns: see sample.Halo. All
// lists are U32, N×1.
type Halo struct {
	Own  kernels.Tensor // row i of x is row Own[i] of the result; x may have more rows
	Send kernels.Tensor // rows of x that go to other workers: to worker 0, then to worker 1, …
	Take kernels.Tensor // places in the result of the rows that come from worker 0, then 1, …
	// At has the source of each row of the result: a row of x, or kernels.InSlot|n for the n-th row
	// that comes.
	At kernels.Tensor
}

// Swap sends the rows in send to other workers, and fills come with the rows that they send. Both
// have a matrix for each type, a zero Tensor for a type without columns. All workers call it at the
// same time.
type Swap func(send, come []kernels.Tensor)

// Exchange returns the rows of each type that this worker reads. A row is one of x, or comes from
// another worker: see Halo. cols has the columns of each type, 0 for a type that no worker has rows
// of. x[n] is nil if this worker has no row of type n.
//
// In Backward each worker gets the gradients of the rows that it sent. It adds them to its own
// gradient of the row, in the order of workers. All workers call Exchange in the same order, also
// workers without rows, since each Swap needs all of them.
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
		t.record(y[n], func() {}) // gives y's memory back, after the exchange below has read its gradient
	}
	t.record(&Var{needsGrad: !t.off}, func() { t.exchangeGrad(x, y, halos, cols, swap) })
	return y
}

// exchangeGrad sends back the gradients of the rows that came. It gets the gradients of the rows
// that were sent, and adds them up.
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
			t.arena.give(come[n])
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
