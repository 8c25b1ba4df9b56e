package temporal

import (
	"github.com/gnnstore/gnnstore/kernels"
)

// writer puts changes of records together, on the host. Tables are gathered on the backend first:
// of all rows of a batch few are written.
type writer struct {
	be       kernels.Backend
	staging  *kernels.Staging
	record   Record
	changes  []byte // of the nodes that feed has places of
	gathered room
}

// write makes what a batch changes, from the memory of its rows.
func (w *writer) write(f *feed, in Input, memory kernels.Tensor) {
	r := w.record
	w.changes = append(w.changes[:0], make([]byte, len(f.places)*r.ChangeBytes())...)
	mine := func(i int) int { return i }
	mails := func(i int) int { return int(f.mailRecord[i]) }
	mail := r.changedMail()
	if r.ring {
		w.put(memory, f.rows, mine, 0)
	}
	w.put(memory, f.mailRows, mails, mail)
	w.put(memory, f.mailOthers, mails, mail+r.memory)
	if r.mail > 2*r.memory {
		w.put(in.Features, f.mailEvents, mails, mail+2*r.memory)
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

// put copies rows of a table to changes, each from a column on.
func (w *writer) put(table, rows kernels.Tensor, change func(i int) int, column int) {
	t := w.gathered.tensor(w.be, kernels.F32, rows.Rows, table.Cols)
	w.be.GatherRows(t, table, rows)
	_ = w.staging.Read(t, func(all []byte) error {
		n := 4 * t.Cols
		for i := range t.Rows {
			copy(w.at(change(i))[4*column:], all[i*n:][:n])
		}
		return nil
	})
}

func (w *writer) close() { w.gathered.free(w.be) }
