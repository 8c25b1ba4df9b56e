package temporal

import (
	"github.com/gnnstore/gnnstore/kernels"
)

// writer puts records together, on the host. Tables are gathered on the backend first: of all rows of a batch few are written.
type writer struct {
	be       kernels.Backend
	staging  *kernels.Staging
	record   Record
	records  []byte // of the nodes that feed has places of
	gathered room
}

// write makes the records that a batch leaves, from the memory of its rows.
func (w *writer) write(f *feed, in Input, memory kernels.Tensor) {
	r := w.record
	w.records = append(w.records[:0], make([]byte, len(f.places)*r.Bytes())...)
	mine := func(i int) int { return i }
	mails := func(i int) int { return int(f.mailRecord[i]) }
	if r.ring {
		w.put(in.State, f.nodes, mine, func([]byte) int { return 0 })
		w.put(memory, f.rows, mine, func([]byte) int { return 0 })
	}
	part := func(from int) func([]byte) int {
		return func(record []byte) int { return r.mailColumn(r.Slot(record)) + from }
	}
	w.put(memory, f.mailRows, mails, part(0))
	w.put(memory, f.mailOthers, mails, part(r.memory))
	if r.mail > 2*r.memory {
		w.put(in.Features, f.mailEvents, mails, part(2*r.memory))
	}
	for i, m := range in.mails() {
		record := w.at(mails(i))
		slot := r.Slot(record)
		r.SetMailTime(record, slot, in.RowTime[m.Row])
		r.SetSlot(record, (slot+1)%r.mails)
	}
	for i, x := range in.Writes {
		r.SetTime(w.at(i), in.RowTime[x.Row])
	}
}

// at is record i.
func (w *writer) at(i int) []byte {
	n := w.record.Bytes()
	return w.records[i*n:][:n]
}

// put copies rows of a table to records, each from a column on.
func (w *writer) put(table, rows kernels.Tensor, record func(i int) int, column func(record []byte) int) {
	t := w.gathered.tensor(w.be, kernels.F32, rows.Rows, table.Cols)
	w.be.GatherRows(t, table, rows)
	_ = w.staging.Read(t, func(all []byte) error {
		n := 4 * t.Cols
		for i := range t.Rows {
			to := w.at(record(i))
			copy(to[4*column(to):], all[i*n:][:n])
		}
		return nil
	})
}

func (w *writer) close() { w.gathered.free(w.be) }
