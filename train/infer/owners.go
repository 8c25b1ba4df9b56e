package infer

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/sample"
)

// owners is a layer-wise pass of workers that each have a part of the dataset, or of the rows that
// are learnt. A worker computes the rows of the nodes that it owns, and keeps them in memory. It
// asks the owners of sources for their rows of the layer below, or for their features, a chunk at a
// time.
//
// Asking is a round of two exchanges, in which all workers take part: those that have no more to
// ask answer until all have none.
type owners struct {
	e      *Evaluator
	own    []store.Own // by input: rows that this worker owns
	layer  int
	tables []*cachetier.Stack // by type: features, or learnt rows, of own nodes
	below  []ownRows          // by type: rows of the layer below of own nodes
	out    []ownRows

	// Used again in each round.
	send, answers [][]byte
	rows          []uint32 // of own nodes in a table
	rest          [][]byte
}

// ownRows has the rows of some nodes in memory.
type ownRows struct {
	at     places
	cols   int
	memory *kernels.HostBuf // nil: no rows
}

func (r *ownRows) close() {
	if r.memory != nil {
		r.memory.Close()
	}
	*r = ownRows{}
}

// newOwnRows has room for the rows of nodes.
func newOwnRows(nodes nodeSet, cols int) (ownRows, error) {
	memory, err := kernels.NewHostBuf(4 * nodes.count() * cols)
	return ownRows{newPlaces(nodes), cols, memory}, err
}

// of returns the row of node v, which is one of the nodes, as little-endian bytes.
func (r *ownRows) of(v uint32) []byte {
	n := 4 * int(r.at.of(v)) * r.cols
	return r.memory.Bytes()[n : n+4*r.cols]
}

// has reports whether there is a row of node v.
func (r *ownRows) has(v uint32) bool {
	return r.memory != nil && int(v/64) < len(r.at.set) && r.at.set[v/64]>>(v%64)&1 == 1
}

// What a worker asks for: the first byte of a message.
const (
	asksNothing = iota // it has no more to ask in this layer
	asksRows
	asksDegrees
)

// byOwners is layerwise for workers that each have a part of the dataset. do gets the rows of layer
// top of all nodes, on every worker.
func (e *Evaluator) byOwners(
	ctx context.Context, top int, nodes [][]uint32, do func(t int, chunk []uint32, y kernels.Tensor) error,
) error {
	o, closed, err := e.openOwners(ctx)
	if err != nil {
		return err
	}
	defer closed()
	need, err := o.plan(ctx, top, nodes)
	if err != nil {
		return err
	}
	for l := range top {
		o.layer = l
		if err := o.compute(ctx, need[l]); err != nil {
			return err
		}
	}
	o.layer = top
	for t, ids := range nodes {
		if err := o.last(ctx, t, ids, do); err != nil {
			return err
		}
	}
	return nil
}

// own returns what this worker owns of the rows of an input: all, unless workers own rows.
func (e *Evaluator) own(input int) store.Own {
	if own := e.data.Own(input); !own.Whole() || e.Owned == nil {
		return own
	}
	return e.Owned.TableRows() // owners of a whole go by the rule
}

// mostOwned returns the number of nodes of type t of the worker that owns most.
func (e *Evaluator) mostOwned(t int) int64 {
	nodes := int64(e.data.Types[t].Nodes)
	if own := e.own(t); !own.Whole() {
		return own.Owners.Most(nodes)
	}
	return nodes
}

// openOwners begins a pass. closed ends it.
func (e *Evaluator) openOwners(ctx context.Context) (o *owners, closed func(), err error) {
	o = &owners{e: e, send: make([][]byte, e.Workers.Of), tables: slices.Clone(e.tables[:len(e.data.Types)])}
	for t := range len(e.data.Types) + len(e.data.EdgeTables) {
		o.own = append(o.own, e.own(t))
	}
	var opened []*cachetier.Stack
	all := int64(0) // bytes of the tables that are opened here
	opens := func(t int) bool {
		return e.reach.Types[0][t] && e.data.Types[t].Features != nil && o.tables[t] == nil
	}
	for t := range o.tables {
		if opens(t) {
			all += tableRows(e.data.Types[t].Features)
		}
	}
	closed = func() {
		for _, s := range opened {
			stats := s.Stats()
			e.read = e.read.Add(stats.Disk).Add(stats.Warmup)
			s.Close()
		}
		e.owners = nil
		o.closeRows()
	}
	for t := range o.tables {
		d := &e.data.Types[t]
		if !opens(t) {
			continue
		}
		// The first rows, which most others read, stay in memory: rows come in no order, so each
		// read from the disk takes a page.
		table := e.Tables
		table.DeviceBytes, table.StaticBytes, table.Prewarm, table.Policy = 0, 0, true, cachetier.Static
		table.HostBytes = int64(float64(min(e.Bytes, all)) * float64(tableRows(d.Features)) / float64(max(all, 1)))
		if o.tables[t], err = cachetier.Open(ctx, d.Features, table); err != nil {
			closed()
			return nil, nil, fmt.Errorf("the rows of type %s: %w", d.Name, err)
		}
		opened = append(opened, o.tables[t])
	}
	e.owners = o
	return o, closed, nil
}

// inputsByOwners is Inputs for workers that each have a part of the dataset.
func (e *Evaluator) inputsByOwners(
	ctx context.Context, t int, nodes []uint32, do func(chunk []uint32, y kernels.Tensor) error,
) error {
	o, closed, err := e.openOwners(ctx)
	if err != nil {
		return err
	}
	defer closed()
	done, rows := 0, max(1, e.ChunkBytes/int64(4*e.data.Types[t].Dim()))
	for chunk := range slices.Chunk(nodes, int(rows)) {
		if err := ctx.Err(); err != nil {
			return err
		}
		e.step.Tape.Reset(false)
		x, err := o.hidden(ctx)(t, chunk)
		if err != nil {
			return err
		}
		if err := do(chunk, e.step.Tape.Convert(e.step.Leaf(t, x)).Value); err != nil {
			return err
		}
		done += len(chunk)
		e.came(0, 0, t, done, len(nodes))
	}
	return o.serve(ctx)
}

// Originals returns the ids by which users know nodes of type t. Where each worker has a part of
// the dataset, each knows the ids of its own nodes, and all of them call it with the same nodes.
func (e *Evaluator) Originals(ctx context.Context, t int, nodes []uint32) ([]int64, error) {
	ids, has := e.data.IDs(t), e.data.Own(t)
	var own []byte
	for _, v := range nodes {
		if row, ok := has.Row(v); ok {
			own = binary.LittleEndian.AppendUint64(own, uint64(ids.Original(row)))
		}
	}
	joined := own
	if !has.Whole() {
		came, err := e.Workers.Gather(ctx, own)
		if err != nil {
			return nil, err
		}
		if joined, err = joinRows(has.Owners, nodes, 8, came); err != nil {
			return nil, err
		}
	}
	originals := make([]int64, len(nodes))
	for i := range originals {
		originals[i] = int64(binary.LittleEndian.Uint64(joined[8*i:]))
	}
	return originals, nil
}

func (o *owners) closeRows() {
	for _, all := range [][]ownRows{o.below, o.out} {
		for t := range all {
			all[t].close()
		}
	}
}

// plan returns, by layer and type, the own nodes whose rows other layers, or do, read. Layer top
// computes the given nodes.
func (o *owners) plan(ctx context.Context, top int, nodes [][]uint32) ([][]nodeSet, error) {
	e, types := o.e, o.e.data.Types
	sets := func() []nodeSet {
		all := make([]nodeSet, len(types))
		for t := range types {
			all[t] = newNodeSet(types[t].Nodes)
		}
		return all
	}
	need := make([][]nodeSet, top+1)
	need[top] = sets()
	for t, ids := range nodes {
		for _, v := range ids {
			if _, own := o.own[t].Row(v); own {
				need[top][t].add(v)
			}
		}
	}
	for l := top - 1; l >= 0; l-- {
		read := sets() // by own nodes of the next layer, whoever owns them
		for t := range types {
			copy(read[t], need[l+1][t])
		}
		for i, r := range e.data.Relations {
			if !e.reach.Relations[l+1][i] {
				continue
			}
			lists := r.Lists()
			for v := range need[l+1][r.Dst].all {
				for _, u := range lists.Neighbors(v) {
					if int(u) >= types[r.Src].Nodes {
						return nil, e.data.Place(&sample.NeighborError{Relation: i, Node: v, Neighbor: u})
					}
					read[r.Src].add(u)
				}
			}
		}
		need[l] = sets()
		for t, made := range e.reach.Types[l+1] {
			if !made {
				continue
			}
			if err := o.share(ctx, o.own[t], read[t], need[l][t]); err != nil {
				return nil, err
			}
		}
	}
	return need, nil
}

// share adds to own each node that some worker reads and this worker owns. read has the nodes that
// this worker reads, whoever owns them. All workers call it.
func (o *owners) share(ctx context.Context, has store.Own, read, own nodeSet) error {
	for q := range o.send {
		o.send[q] = o.send[q][:0]
	}
	bits := make([]nodeSet, len(o.send)) // of rows, by owner
	for q := range bits {
		bits[q] = newNodeSet(int(has.Owners.Count(int64(64*len(read)), q)))
	}
	for v := range read.all {
		bits[has.Owners.Owner(v)].add(has.Owners.RowOf(v))
	}
	for q, rows := range bits {
		for _, word := range rows {
			o.send[q] = binary.LittleEndian.AppendUint64(o.send[q], word)
		}
	}
	came, err := o.e.Workers.Exchange(ctx, o.send)
	if err != nil {
		return err
	}
	for q, b := range came {
		rows := make(nodeSet, len(bits[o.e.Workers.Rank]))
		if len(b) != 8*len(rows) {
			return fmt.Errorf("infer: worker %d sends %d bytes for the nodes that it reads; %d were expected", q, len(b), 8*len(rows))
		}
		for i := range rows {
			rows[i] = binary.LittleEndian.Uint64(b[8*i:])
		}
		for row := range rows.all {
			own.add(has.Node(row))
		}
	}
	return nil
}

// compute computes the rows of own nodes in the layer at hand. They become the rows of the layer
// below.
func (o *owners) compute(ctx context.Context, need []nodeSet) (err error) {
	o.out = make([]ownRows, len(need))
	width := o.e.step.Model.Width(o.layer)
	for t, nodes := range need {
		if o.out[t], err = newOwnRows(nodes, width); err != nil {
			return err
		}
	}
	for t, nodes := range need {
		rows := &o.out[t]
		err := o.chunks(ctx, t, nodes, func(chunk []uint32, y kernels.Tensor) error {
			copy(rows.memory.Float32s()[int(rows.at.of(chunk[0]))*width:], o.e.step.Feed.Download(y))
			return nil
		})
		if err != nil {
			return err
		}
	}
	if err := o.serve(ctx); err != nil {
		return err
	}
	for t := range o.below {
		o.below[t].close()
	}
	o.below, o.out = o.out, nil
	return nil
}

// chunks calls do with the rows of own nodes of type t in the layer at hand, in ascending order, a
// chunk at a time.
func (o *owners) chunks(
	ctx context.Context, t int, nodes nodeSet, do func(chunk []uint32, y kernels.Tensor) error,
) error {
	e := o.e
	done, count := 0, nodes.count()
	return e.chunks(nodes, t, o.layer, func(chunk []uint32) (err error) {
		if err := ctx.Err(); err != nil {
			return err
		}
		var y kernels.Tensor
		if e.hub(o.layer, t, chunk) {
			y, err = e.inParts(ctx, o.layer, t, chunk[0], o.hidden(ctx))
		} else if err = e.draw(ctx, &e.block, o.layer, t, chunk); err == nil {
			y, err = e.compute(ctx, &e.block, o.layer, t, o.hidden(ctx))
		}
		if err == nil {
			err = do(chunk, y)
		}
		if err != nil {
			return err
		}
		done += len(chunk)
		e.came(o.layer, e.step.Model.Layers-1, t, done, count)
		return nil
	})
}

// last calls do with the rows of the last layer of nodes of type t, in ascending order, on every
// worker. Each computes the rows of its own nodes.
func (o *owners) last(ctx context.Context, t int, ids []uint32, do func(t int, chunk []uint32, y kernels.Tensor) error) error {
	e, all := o.e, newNodeSet(o.e.data.Types[t].Nodes)
	for _, v := range ids {
		all.add(v)
	}
	width := e.step.Model.Width(o.layer)
	most := max(1, int(e.pieceBytes()/int64(4*width)))
	var piece []uint32
	own := newNodeSet(e.data.Types[t].Nodes)
	flush := func() error {
		clear(own)
		for _, v := range piece {
			if _, ok := o.own[t].Row(v); ok {
				own.add(v)
			}
		}
		var rows []byte
		err := o.chunks(ctx, t, own, func(_ []uint32, y kernels.Tensor) (err error) {
			rows, err = e.appendRows(rows, y)
			return err
		})
		if err == nil {
			err = o.serve(ctx)
		}
		if err != nil {
			return err
		}
		came, err := e.Workers.Gather(ctx, rows)
		if err != nil {
			return err
		}
		joined, err := joinRows(o.own[t].Owners, piece, 4*width, came)
		if err != nil {
			return err
		}
		y, err := e.rowsIn(t, len(piece), joined)
		if err == nil {
			err = do(t, piece, y)
		}
		piece = piece[:0]
		return err
	}
	for v := range all.all {
		if piece = append(piece, v); len(piece) == most {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	if len(piece) == 0 {
		return nil
	}
	return flush()
}

// pieceBytes returns the bytes of rows of the last layer that workers exchange at a time: about a
// chunk of each.
func (e *Evaluator) pieceBytes() int64 {
	return min(e.ChunkBytes*int64(e.Workers.Of), max(e.ChunkBytes, mostPiece))
}

// mostPiece bounds pieceBytes where chunks are smaller.
const mostPiece = 16 << 20

// joinRows returns the rows of ids, of rowBytes each. came has the rows of each owner, in the order
// of ids.
func joinRows(of store.Owners, ids []uint32, rowBytes int, came [][]byte) ([]byte, error) {
	rows := make([]byte, len(ids)*rowBytes)
	return rows, join(rows[:0], of, ids, rowBytes, slices.Clone(came))
}

// join is joinRows to dst, which has room. It uses up came.
func join(dst []byte, of store.Owners, ids []uint32, rowBytes int, came [][]byte) error {
	for _, v := range ids {
		q := of.Owner(v)
		if len(came[q]) < rowBytes {
			return fmt.Errorf("infer: worker %d sends too few rows of %d bytes", q, rowBytes)
		}
		dst, came[q] = append(dst, came[q][:rowBytes]...), came[q][rowBytes:]
	}
	for q, b := range came {
		if len(b) > 0 {
			return fmt.Errorf("infer: worker %d sends %d bytes more than were asked for", q, len(b))
		}
	}
	return nil
}

// hidden brings rows of the layer below, or features, from their owners.
func (o *owners) hidden(ctx context.Context) hiddenRows {
	return func(from int, ids []uint32) (kernels.Tensor, error) {
		elem, cols := kernels.F32, 0
		switch d := &o.e.data.Types[from]; {
		case o.layer > 0:
			cols = o.e.step.Model.Width(o.layer - 1)
		case d.Features == nil && o.tables[from] == nil:
			return kernels.Tensor{}, nil
		case d.Features == nil:
			cols = d.Dim()
		default:
			elem, cols = d.DType(), d.Features.Dim()
		}
		return o.fill(ctx, from, ids, elem, cols)
	}
}

// fill brings rows of an input, of so many columns, to its buffer.
func (o *owners) fill(ctx context.Context, input int, ids []uint32, elem kernels.DType, cols int) (kernels.Tensor, error) {
	came, err := o.round(ctx, asksRows, input, ids)
	if err != nil {
		return kernels.Tensor{}, err
	}
	return o.e.step.Feed.Hidden(input, elem, len(ids), cols, func(dst []byte) error {
		o.rest = append(o.rest[:0], came...)
		return join(dst[:0], o.own[input].Owners, ids, cols*elem.Size(), o.rest)
	})
}

// degrees brings the number of in-neighbours of the inputs of b, of the one type that GCN has, and
// sets the weights of its sum.
func (o *owners) degrees(ctx context.Context, s *sample.Sampler, b *sample.Batch) error {
	t := o.e.data.Relations[0].Src
	ids := b.Inputs()[t]
	came, err := o.round(ctx, asksDegrees, t, ids)
	if err != nil {
		return err
	}
	both, err := joinRows(o.own[t].Owners, ids, 8, came)
	if err != nil {
		return err
	}
	s.Normalize(b, func(n int) (degree, selves int) {
		return int(binary.LittleEndian.Uint32(both[8*n:])), int(binary.LittleEndian.Uint32(both[8*n+4:]))
	})
	return nil
}

// serve answers until no worker has more to ask.
func (o *owners) serve(ctx context.Context) error {
	for {
		if came, err := o.round(ctx, asksNothing, 0, nil); err != nil || came == nil {
			return err
		}
	}
}

// round asks the owners of ids for what this worker wants of these rows of an input, and answers
// what the others ask. It returns each owner's answer, in the order of ids; nil if no worker asks
// anything.
func (o *owners) round(ctx context.Context, asks byte, input int, ids []uint32) ([][]byte, error) {
	for q := range o.send {
		o.send[q] = binary.LittleEndian.AppendUint32(append(o.send[q][:0], asks), uint32(input))
	}
	for _, v := range ids {
		q := o.own[input].Owners.Owner(v)
		o.send[q] = binary.LittleEndian.AppendUint32(o.send[q], v)
	}
	came, err := o.e.Workers.Exchange(ctx, o.send)
	if err != nil {
		return nil, err
	}
	if o.answers == nil {
		o.answers = make([][]byte, len(came))
	}
	some := false
	for q, b := range came {
		o.answers[q] = o.answers[q][:0]
		if len(b) < 5 || len(b)%4 != 1 {
			return nil, fmt.Errorf("infer: worker %d asks with %d bytes", q, len(b))
		}
		if b[0] == asksNothing {
			continue
		}
		some = true
		if o.answers[q], err = o.answer(ctx, o.answers[q], q, b); err != nil {
			return nil, err
		}
	}
	if !some {
		return nil, nil
	}
	return o.e.Workers.Exchange(ctx, o.answers)
}

// answer appends to answer what worker q asks for by the message b.
func (o *owners) answer(ctx context.Context, answer []byte, q int, b []byte) ([]byte, error) {
	input, d := int(binary.LittleEndian.Uint32(b[1:])), o.e.data
	if inputs := len(d.Types) + len(d.EdgeTables); input >= inputs {
		return nil, fmt.Errorf("infer: worker %d asks for input %d of %d", q, input, inputs)
	}
	hidden := b[0] == asksRows && o.layer > 0 && input < len(d.Types)
	o.rows = o.rows[:0]
	for ids := b[5:]; len(ids) > 0; ids = ids[4:] {
		v := binary.LittleEndian.Uint32(ids)
		row, own := o.own[input].Row(v)
		if !own || int(v) >= d.Input(input).Nodes || hidden && !o.below[input].has(v) {
			return nil, fmt.Errorf("infer: worker %d asks for row %d of input %d, which this worker does not have", q, v, input)
		}
		switch {
		case hidden:
			answer = append(answer, o.below[input].of(v)...)
		case b[0] == asksDegrees:
			degree, selves, err := o.e.full[o.layer].Degree(ctx, v)
			if err != nil {
				return nil, err
			}
			answer = binary.LittleEndian.AppendUint32(answer, uint32(degree))
			answer = binary.LittleEndian.AppendUint32(answer, uint32(selves))
		default:
			o.rows = append(o.rows, o.place(input, v, row))
		}
	}
	if len(o.rows) == 0 {
		return answer, nil
	}
	var table *cachetier.Stack
	if edges := input - len(d.Types); edges >= 0 {
		table = o.e.edges[edges]
	} else {
		table = o.tables[input]
	}
	n, size := len(o.rows)*table.RowBytes(), 4*d.Input(input).Dim()
	answer = slices.Grow(answer, n)[:n]
	if err := table.Peek(ctx, answer, o.rows); err != nil || d.Input(input).Features != nil {
		return answer, err
	}
	for i := range o.rows { // without what the optimizer keeps of a row
		copy(answer[i*size:(i+1)*size], answer[i*table.RowBytes():])
	}
	return answer[:len(o.rows)*size], nil
}

// place returns the place of node v, or row v of a table of edges, in the table of an input. row is
// its number among the rows of its owner.
func (o *owners) place(input int, v, row uint32) uint32 {
	if o.e.data.OwnPart() == nil || o.e.data.Input(input).Features == nil {
		return v
	}
	return row
}
