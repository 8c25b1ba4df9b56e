package temporal

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/gnnstore/gnnstore/kernels"
)

// writer puts changes of records together, on the host. Tables are gathered on the backend first:
// of all rows of a batch few are written.
type writer struct {
	be       kernels.Backend
	record   Record
	changes  []byte // of the nodes that feed has places of
	gathered room
	pieces   []piece
}

// piece is rows of a table on their way to changes: row i goes to change(i), from a column on.
type piece struct {
	rows   []float32
	cols   int
	change func(i int) int
	column int
}

// write makes what a batch changes, from the memory of its rows.
func (w *writer) write(f *feed, in Input, memory kernels.Tensor) {
	r := w.record
	w.changes = append(w.changes[:0], make([]byte, len(f.places)*r.ChangeBytes())...)
	mine := func(i int) int { return i }
	mails := func(i int) int { return int(f.mailRecord[i]) }
	mail := r.changedMail()
	w.pieces = w.pieces[:0]
	if r.ring {
		w.fetch(memory, f.rows, mine, 0)
	}
	w.fetch(memory, f.mailRows, mails, mail)
	w.fetch(memory, f.mailOthers, mails, mail+r.memory)
	if r.mail > 2*r.memory {
		w.fetch(in.Features, f.mailEvents, mails, mail+2*r.memory)
	}
	w.be.Mark()()
	for i := range w.pieces {
		w.put(&w.pieces[i])
	}
	for i, x := range in.Writes {
		r.setMemory(w.at(i), in.RowTime[x.Row])
	}
	for i, m := range in.mails() {
		r.setMail(w.at(mails(i)), in.RowTime[m.Row])
	}
}

// at is change i.
func (w *writer) at(i int) []byte {
	n := w.record.ChangeBytes()
	return w.changes[i*n:][:n]
}

// fetch begins to copy rows of a table to the host, as the next piece.
func (w *writer) fetch(table, rows kernels.Tensor, change func(i int) int, column int) {
	w.pieces = slices.Grow(w.pieces, 1)[:len(w.pieces)+1] // with the memory of an earlier one
	p := &w.pieces[len(w.pieces)-1]
	p.rows = append(p.rows[:0], make([]float32, rows.Rows*table.Cols)...)
	p.cols, p.change, p.column = table.Cols, change, column
	t := w.gathered.tensor(w.be, kernels.F32, rows.Rows, table.Cols)
	w.be.GatherRows(t, table, rows)
	w.be.FetchF32(p.rows, t)
}

// put copies a piece to changes.
func (w *writer) put(p *piece) {
	for i := 0; i*p.cols < len(p.rows); i++ {
		to := w.at(p.change(i))[4*p.column:]
		for c, x := range p.rows[i*p.cols:][:p.cols] {
			binary.LittleEndian.PutUint32(to[4*c:], math.Float32bits(x))
		}
	}
}

func (w *writer) close() { w.gathered.free(w.be) }
