package temporal

import (
	"fmt"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/train/model"
)

// feed brings batches to the backend. What it made of one is invalid once it takes the next.
type feed struct {
	be      kernels.Backend
	staging *kernels.Staging
	kind    model.Kind
	record  Record
	keep    float64 // of memories that are blended
	// remember keeps the memories as they were before blending.
	remember bool
	ids      IDs // of nodes, for identity columns in place of features; nil: none
	columns  int // how many identity columns

	moments model.Moments
	// Pairs to score, by roots: the ends of each event, and its source with each of its negatives.
	src, dst, sources, negatives kernels.Tensor
	past, negativesPast          kernels.Tensor // pair features of these pairs
	// What changes of records are made of: the rows of Writes; of each mail the row it is of, that
	// of the other end, and the event.
	rows, mailRows, mailOthers, mailEvents kernels.Tensor
	places, mailRecord                     []uint32 // the node of each change, and the change that each mail is in

	ints   parts[uint32]
	floats parts[float32]
	room   struct{ ints, floats, count, memory, mail, bits, mixed, memories, identity room }

	// Lists that batches do not have, on the host.
	repeated, starts, ends, slots, slotRows []uint32
	written, sent, others, events, recordOf []uint32
	rowNode, mixed                          []uint32
	blended, unblended                      []float32
	similar                                 [][]float32
	nodeIDs                                 []uint64
	age, mailAge, since, away               []float32
}

// take brings a batch, its state and its events' features to the backend. Its error comes from
// looking up ids of nodes.
func (f *feed) take(in Input) (err error) {
	b, m := in.Batch, &f.moments
	*m = model.Moments{Events: in.Features, Features: in.NodeFeatures}
	f.blended, f.unblended = f.blended[:0], f.unblended[:0]
	if f.ids != nil && len(b.Roots) > 0 {
		if m.Features, err = f.takeIdentity(b, f.columns); err != nil {
			return err
		}
	}
	f.ints.reset()
	f.floats.reset()
	f.ints.add(&m.Node, f.takeNodes(b), 1)
	if len(f.blends(b)) > 0 && m.Features.Rows > 0 {
		f.ints.add(&m.Described, b.RowNode, 1)
	}
	f.ints.add(&m.Root, b.Roots, 1)
	f.ints.add(&m.Near.Start, b.NearStart, 1)
	f.ints.add(&m.Near.End, b.NearEnd, 1)
	f.ints.add(&m.Near.At, b.NearRow, 1)
	f.ints.add(&m.Near.Of, b.NearRoot, 1)
	f.ints.add(&m.Event, b.NearEvent, 1)
	f.takePairs(b)
	f.since = f.since[:0]
	for _, t := range b.Since {
		f.since = appendTime(f.since, t)
	}
	f.floats.add(&m.Since, f.since, 2)
	if f.record.Cols() > 0 {
		f.takeState(b, in.State, in.Times)
		f.takeWrites(b)
	}
	f.ints.upload(f.be, &f.room.ints, kernels.U32, f.staging.JoinU32)
	f.floats.upload(f.be, &f.room.floats, kernels.F32, f.staging.JoinF32)
	m.Count = f.counting(1 + max(len(b.RowNode), len(f.slots), len(b.NearRow), len(b.Roots)))
	return nil
}

// takeNodes lists the node of each row. A blended row has a node of its own, behind the nodes of
// the batch.
func (f *feed) takeNodes(b *Batch) []uint32 {
	f.rowNode = append(f.rowNode[:0], b.RowNode...)
	for i, row := range f.blends(b) {
		f.rowNode[row] = uint32(len(b.Nodes) + i)
	}
	return f.rowNode
}

// blends returns the rows that are blended.
func (f *feed) blends(b *Batch) []uint32 {
	if f.keep == 0 || f.keep == 1 || f.record.Cols() == 0 {
		return nil
	}
	return b.Blended
}

// takePairs lists the pairs to score.
func (f *feed) takePairs(b *Batch) {
	f.repeated = f.repeated[:0]
	for _, root := range b.Src {
		for range b.Each {
			f.repeated = append(f.repeated, root)
		}
	}
	f.ints.add(&f.src, b.Src, 1)
	f.ints.add(&f.dst, b.Dst, 1)
	f.ints.add(&f.sources, f.repeated, 1)
	f.ints.add(&f.negatives, b.Negatives, 1)
	if cut := PairColumns * len(b.Src); len(b.Pairs) > 0 {
		f.floats.add(&f.past, b.Pairs[:cut], PairColumns)
		f.floats.add(&f.negativesPast, b.Pairs[cut:], PairColumns)
	}
}

// takeState parts records: numbers stay on the backend, times are read on the host, since ages are
// differences of float64.
func (f *feed) takeState(b *Batch, state kernels.Tensor, times []byte) {
	r, m := f.record, &f.moments
	if state.Rows != len(b.Nodes) || state.Cols != r.Cols() {
		panic(fmt.Sprintf("temporal: records of %d nodes, %d columns each; want %d and %d", state.Rows, state.Cols, len(b.Nodes), r.Cols()))
	}
	n, blends := len(b.Nodes), len(f.blends(b))
	columns := func(to *room, from, cols int) kernels.Tensor {
		t := to.tensor(f.be, kernels.F32, n+blends, cols)
		f.be.Columns(t.Slice(0, n), state, from)
		return t
	}
	m.Memory = columns(&f.room.memory, 0, r.memory)
	m.Mail = columns(&f.room.mail, r.mailColumn(0), r.mails*r.mail)
	take := func(all []byte) error {
		f.takeTimes(b, func(node uint32) []byte { return all[4*int(node)*r.bits():][:4*r.bits()] })
		return nil
	}
	if times != nil {
		_ = take(times)
	} else {
		_ = f.staging.Read(columns(&f.room.bits, r.numbers(), r.bits()).Slice(0, n), take)
	}
	if blends > 0 {
		f.blend(b)
	}
	f.ints.add(&m.Slots.Start, f.starts, 1)
	f.ints.add(&m.Slots.End, f.ends, 1)
	f.ints.add(&m.Slots.At, f.slots, 1)
	f.ints.add(&m.Slots.Of, f.slotRows, 1)
	f.floats.add(&m.Age, f.age, 2)
	f.floats.add(&m.MailAge, f.mailAge, 2)
	f.floats.add(&m.Away, f.away, 1)
}

// blend fills in the extra nodes that blended rows have for themselves: with the same mail as the
// row's node, and the blended memory.
func (f *feed) blend(b *Batch) {
	m, n, blends := &f.moments, len(b.Nodes), len(b.Blended)
	f.mixed = f.mixed[:0]
	for _, row := range b.Blended {
		f.mixed = append(f.mixed, b.RowNode[row])
	}
	f.mixed = append(f.mixed, b.Similar...)
	nodes := f.room.mixed.tensor(f.be, kernels.U32, len(f.mixed), 1)
	f.be.UploadU32(nodes, f.mixed)
	f.be.GatherRows(m.Mail.Slice(n, n+blends), m.Mail.Slice(0, n), nodes.Slice(0, blends))
	memories, cols := f.room.memories.tensor(f.be, kernels.F32, len(f.mixed), m.Memory.Cols), m.Memory.Cols
	f.be.GatherRows(memories, m.Memory.Slice(0, n), nodes)
	f.blended = append(f.blended[:0], make([]float32, memories.Len())...)
	f.be.DownloadF32(f.blended, memories)
	memory := func(i int) []float32 { return f.blended[i*cols:][:cols] }
	if f.remember {
		f.unblended = append(f.unblended[:0], f.blended[:blends*cols]...)
	}
	for i := range b.Blended {
		f.similar = f.similar[:0]
		for j := b.BlendStart[i]; j < b.BlendStart[i+1]; j++ {
			f.similar = append(f.similar, memory(blends+int(j)))
		}
		Blend(memory(i), f.similar, f.keep)
	}
	f.blended = f.blended[:blends*cols]
	f.be.UploadF32(m.Memory.Slice(n, n+blends), f.blended)
}

// takeTimes makes ages of times, which are among the bits of nodes.
func (f *feed) takeTimes(b *Batch, bits func(node uint32) []byte) {
	r := f.record
	f.starts, f.ends, f.slots, f.slotRows = f.starts[:0], f.ends[:0], f.slots[:0], f.slotRows[:0]
	f.age, f.mailAge, f.away = f.age[:0], f.mailAge[:0], f.away[:0]
	for row, node := range b.RowNode {
		own, t := bits(node), b.RowTime[row]
		f.age = appendTime(f.age, t-timeAt(own, r.timeBits()))
		if !r.ring {
			continue
		}
		f.starts = append(f.starts, uint32(len(f.slots)))
		for slot := range r.mails {
			f.mailAge = appendTime(f.mailAge, t-timeAt(own, r.mailTimeBits(slot)))
			f.slots, f.slotRows = append(f.slots, f.rowNode[row]*uint32(r.mails)+uint32(slot)), append(f.slotRows, uint32(row))
		}
		f.ends = append(f.ends, uint32(len(f.slots)))
	}
	if !f.kind.Drifts() {
		return
	}
	for _, row := range b.Roots {
		t := b.RowTime[row]
		f.away = append(f.away, float32((t-timeAt(bits(b.RowNode[row]), r.timeBits()))/(t+1)))
	}
}

// takeWrites lists what changes of records are made of. Nodes of Writes have the first ones.
func (f *feed) takeWrites(b *Batch) {
	f.places, f.mailRecord, f.written = f.places[:0], f.mailRecord[:0], f.written[:0]
	f.sent, f.others, f.events, f.recordOf = f.sent[:0], f.others[:0], f.events[:0], f.recordOf[:0]
	const none = ^uint32(0)
	for range b.Nodes {
		f.recordOf = append(f.recordOf, none)
	}
	record := func(node uint32) uint32 {
		if f.recordOf[node] == none {
			f.recordOf[node] = uint32(len(f.places))
			f.places = append(f.places, node)
		}
		return f.recordOf[node]
	}
	for _, w := range b.Writes {
		record(w.Node)
		f.written = append(f.written, w.Row)
	}
	for _, w := range b.mails() {
		f.mailRecord = append(f.mailRecord, record(w.Node))
		f.sent, f.others, f.events = append(f.sent, w.Row), append(f.others, w.Other), append(f.events, w.Event)
	}
	f.ints.add(&f.rows, f.written, 1)
	f.ints.add(&f.mailRows, f.sent, 1)
	f.ints.add(&f.mailOthers, f.others, 1)
	f.ints.add(&f.mailEvents, f.events, 1)
}

// counting is 0 to n-1 on the backend.
func (f *feed) counting(n int) kernels.Tensor {
	if f.room.count.buf == nil || f.room.count.buf.Len() < n {
		all := f.room.count.tensor(f.be, kernels.U32, n, 1)
		all.Rows = all.Buf.Len()
		count := make([]uint32, all.Rows)
		for i := range count {
			count[i] = uint32(i)
		}
		f.be.UploadU32(all, count)
	}
	return f.room.count.tensor(f.be, kernels.U32, n, 1)
}

func (f *feed) close() {
	for _, r := range []*room{
		&f.room.ints, &f.room.floats, &f.room.count, &f.room.memory, &f.room.mail, &f.room.bits, &f.room.mixed, &f.room.memories, &f.room.identity,
	} {
		r.free(f.be)
	}
	f.staging.Close()
}

// appendTime adds a time as kernels take it.
func appendTime(pairs []float32, t float64) []float32 {
	high, low := kernels.SplitTime(t)
	return append(pairs, high, low)
}

// room is a buffer of the backend that grows to the largest tensor so far, and stays.
type room struct{ buf kernels.Buffer }

// tensor is a tensor in the room. What it held is lost where it grows.
func (r *room) tensor(be kernels.Backend, t kernels.DType, rows, cols int) kernels.Tensor {
	n := rows * cols
	kernels.GrowBuffer(be, &r.buf, t, n, n+n/8)
	return kernels.Tensor{Buf: r.buf, Type: t, Rows: rows, Cols: cols}
}

func (r *room) free(be kernels.Backend) { kernels.FreeBuffers(be, &r.buf) }

// parts are lists that are uploaded at once, and where their tensors go.
type parts[T any] struct {
	from [][]T
	to   []*kernels.Tensor
	cols []int
}

func (p *parts[T]) reset() { p.from, p.to, p.cols = p.from[:0], p.to[:0], p.cols[:0] }

func (p *parts[T]) add(to *kernels.Tensor, from []T, cols int) {
	p.from, p.to, p.cols = append(p.from, from), append(p.to, to), append(p.cols, cols)
}

// upload joins the lists in a room, and sets their tensors.
func (p *parts[T]) upload(be kernels.Backend, r *room, t kernels.DType, join func(dst kernels.Tensor, parts ...[]T)) {
	n := 0
	for _, list := range p.from {
		n += len(list)
	}
	all := r.tensor(be, t, n, 1)
	join(all, p.from...)
	for i, list := range p.from {
		all.Rows, all.Cols = len(list)/p.cols[i], p.cols[i]
		*p.to[i] = all
		all.Off += len(list)
	}
}
