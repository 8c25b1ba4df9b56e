package temporal

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/tape"
)

// loopEvent is an event of a stream: nodes at their places, and a scaled time.
type loopEvent struct {
	src, dst uint32
	time     float64
	features []float32
}

// loopStream draws events between a few nodes: some at one time, some from a node to itself.
// Features are exact in float16.
func loopStream(rng *rand.Rand, events, nodes, columns int) []loopEvent {
	all, now := make([]loopEvent, events), 0.0
	for i := range all {
		if i > 0 && rng.IntN(3) > 0 {
			now += 1000 * rng.ExpFloat64()
		}
		x := make([]float32, columns)
		for c := range x {
			x[c] = float32(rng.IntN(17)-8) / 8
		}
		u, v := rng.Uint32N(uint32(nodes)), rng.Uint32N(uint32(nodes))
		all[i] = loopEvent{u, v, now, x}
	}
	return all
}

// loopDrawer draws batches by looking through the whole stream.
type loopDrawer struct {
	events       []loopEvent
	fanout, each int
	nodes        uint32
	sends        bool // mail goes to neighbours, too
	rng          *rand.Rand
}

// drawing is a batch that is being drawn, and where things are in it.
type drawing struct {
	*Batch
	nodes, events map[uint32]uint32
	rows          map[[2]float64]uint32
	roots         map[uint32]uint32
}

func (d *drawing) node(v uint32) uint32 {
	if _, ok := d.nodes[v]; !ok {
		d.nodes[v] = uint32(len(d.Nodes))
		d.Nodes = append(d.Nodes, v)
	}
	return d.nodes[v]
}

func (d *drawing) event(e int) uint32 {
	if _, ok := d.events[uint32(e)]; !ok {
		d.events[uint32(e)] = uint32(len(d.Events))
		d.Events = append(d.Events, uint32(e))
	}
	return d.events[uint32(e)]
}

func (d *drawing) row(v uint32, t float64) uint32 {
	key := [2]float64{float64(v), t}
	if _, ok := d.rows[key]; !ok {
		d.rows[key] = uint32(len(d.RowNode))
		d.RowNode, d.RowTime = append(d.RowNode, d.node(v)), append(d.RowTime, t)
	}
	return d.rows[key]
}

// near calls do with neighbours of v at the time of event e, the newest first, and the events that
// they are by.
func (l *loopDrawer) near(e int, v uint32, do func(u uint32, by int)) {
	n := 0
	for by := e - 1; by >= 0; by-- {
		x := l.events[by]
		for _, ends := range [][2]uint32{{x.src, x.dst}, {x.dst, x.src}} {
			if n < l.fanout && ends[0] == v && x.time < l.events[e].time {
				do(ends[1], by)
				n++
			}
		}
	}
}

func (l *loopDrawer) draw(from, to int, stateOnly bool) *Batch {
	d := &drawing{&Batch{From: int64(from), To: int64(to)}, map[uint32]uint32{}, map[uint32]uint32{}, map[[2]float64]uint32{}, map[uint32]uint32{}}
	root := func(e int, v uint32) uint32 {
		t := l.events[e].time
		r := d.row(v, t)
		if _, ok := d.roots[r]; !ok {
			i := uint32(len(d.Roots))
			d.roots[r], d.Roots, d.NearStart = i, append(d.Roots, r), append(d.NearStart, uint32(len(d.NearRow)))
			l.near(e, v, func(u uint32, by int) {
				at := l.events[by].time
				d.NearRow, d.NearEvent = append(d.NearRow, d.row(u, at)), append(d.NearEvent, d.event(by))
				d.NearRoot, d.Since = append(d.NearRoot, i), append(d.Since, t-at)
			})
			d.NearEnd = append(d.NearEnd, uint32(len(d.NearRow)))
		}
		return d.roots[r]
	}
	if !stateOnly {
		d.Each = l.each
		for e := from; e < to; e++ {
			d.Src, d.Dst = append(d.Src, root(e, l.events[e].src)), append(d.Dst, root(e, l.events[e].dst))
			for range l.each {
				d.Negatives = append(d.Negatives, root(e, l.rng.Uint32N(l.nodes)))
			}
		}
	}
	last := map[uint32]int{}
	for e := from; e < to; e++ {
		last[l.events[e].src], last[l.events[e].dst] = e, e
	}
	for e := from; e < to; e++ {
		x := l.events[e]
		for i, v := range []uint32{x.src, x.dst} {
			if last[v] == e && (i == 0 || x.src != x.dst) {
				own, other := d.row(v, x.time), d.row([]uint32{x.dst, x.src}[i], x.time)
				d.Writes = append(d.Writes, Write{d.node(v), own, other, d.event(e)})
			}
		}
	}
	if l.sends {
		l.send(d)
	}
	if len(d.Roots) > 0 {
		for i, root := range l.rng.Perm(len(d.Roots))[:l.rng.IntN(min(4, len(d.Roots)))] { // any, blended with any
			if i == 0 {
				d.BlendStart = append(d.BlendStart, 0)
			}
			d.Blended = append(d.Blended, d.Roots[root])
			for range 1 + l.rng.IntN(3) {
				d.Similar = append(d.Similar, d.node(l.rng.Uint32N(l.nodes)))
			}
			d.BlendStart = append(d.BlendStart, uint32(len(d.Similar)))
		}
	}
	return d.Batch
}

// send lists mails: a node's own mail goes before others of its time, and else the last one counts.
func (l *loopDrawer) send(d *drawing) {
	type mail struct {
		Write
		time float64
		own  bool
	}
	got := map[uint32]mail{}
	get := func(m mail) {
		if old, ok := got[m.Node]; !ok || m.time > old.time || m.own || !old.own {
			got[m.Node] = m
		}
	}
	for e := int(d.From); e < int(d.To); e++ {
		x := l.events[e]
		for _, ends := range [][2]uint32{{x.src, x.dst}, {x.dst, x.src}} {
			m := mail{Write{0, d.row(ends[0], x.time), d.row(ends[1], x.time), d.event(e)}, x.time, false}
			l.near(e, ends[0], func(u uint32, _ int) {
				m.Node = d.node(u)
				get(m)
			})
			m.Node, m.own = d.node(ends[0]), true
			get(m)
		}
	}
	for i := range d.Nodes {
		if m, ok := got[uint32(i)]; ok {
			d.Mails = append(d.Mails, m.Write)
		}
	}
}

// loop trains on a stream with all state in maps: what a Stepper has to agree with. The state of a
// step has all updates but the last lag-1.
type loop struct {
	be      kernels.Backend
	m       *model.Temporal
	tp      *tape.Tape
	events  []loopEvent
	lag     int
	keep    float64 // of memories that are blended
	nodes   map[uint32]loopNode
	pending []map[uint32]loopChange // what the last steps have written, the oldest first
	moments [][2]kernels.Tensor
	steps   int
}

type loopNode struct {
	memory    []float32
	time      float64
	mails     [][]float32
	mailTimes []float64
	slot      int
}

// loopChange is a step's change of a node: a memory at time, and mail at mailTime. A slice is nil
// if the step does not change it.
type loopChange struct {
	memory, mail   []float32
	time, mailTime float64
}

func newLoop(be kernels.Backend, m *model.Temporal, events []loopEvent, lag int) *loop {
	l := &loop{be: be, m: m, tp: tape.New(be), events: events, lag: lag, nodes: map[uint32]loopNode{}}
	for _, p := range m.Params {
		zeros := make([]float32, p.Value.Len())
		l.moments = append(l.moments, [2]kernels.Tensor{floatsOn(be, zeros, p.Value.Cols), floatsOn(be, zeros, p.Value.Cols)})
	}
	return l
}

func floatsOn(be kernels.Backend, v []float32, cols int) kernels.Tensor {
	t := kernels.Tensor{Buf: be.Alloc(kernels.F32, len(v)), Type: kernels.F32, Rows: len(v) / max(1, cols), Cols: cols}
	be.UploadF32(t, v)
	return t
}

func intsOn(be kernels.Backend, v []uint32) kernels.Tensor {
	t := kernels.Tensor{Buf: be.Alloc(kernels.U32, len(v)), Type: kernels.U32, Rows: len(v), Cols: 1}
	be.UploadU32(t, v)
	return t
}

func floatsOf(be kernels.Backend, t kernels.Tensor) []float32 {
	v := make([]float32, t.Len())
	be.DownloadF32(v, t)
	return v
}

// clone is a node of its own, also of one that was never written.
func (l *loop) clone(n loopNode) loopNode {
	n.memory, n.mails, n.mailTimes = slices.Clone(n.memory), slices.Clone(n.mails), slices.Clone(n.mailTimes)
	if n.memory == nil {
		n.memory, n.mailTimes = make([]float32, l.m.Hidden), make([]float64, l.m.Mails)
		for range l.m.Mails {
			n.mails = append(n.mails, make([]float32, l.m.Mail(l.m.TemporalShape)))
		}
	}
	return n
}

// fetch is the state of the batch's nodes as the next step sees it.
func (l *loop) fetch(b *Batch) (seen []loopNode) {
	for len(l.pending) >= l.lag {
		l.apply()
	}
	for _, v := range b.Nodes {
		seen = append(seen, l.clone(l.nodes[v]))
	}
	return seen
}

// apply changes nodes by what the oldest pending step has written, field by field.
func (l *loop) apply() {
	for v, c := range l.pending[0] {
		n := l.clone(l.nodes[v])
		if c.memory != nil {
			n.memory, n.time = c.memory, c.time
		}
		if c.mail != nil {
			n.mails[n.slot], n.mailTimes[n.slot] = c.mail, c.mailTime
			n.slot = (n.slot + 1) % l.m.Mails
		}
		l.nodes[v] = n
	}
	l.pending = l.pending[1:]
}

// write is the update of a step, from the memories of its rows: event after event, so that the last
// one of a node counts.
func (l *loop) write(b *Batch, memory func(row int) []float32) {
	next := map[uint32]loopChange{}
	of := func(v uint32, t float64) []float32 {
		for row, n := range b.RowNode {
			if b.Nodes[n] == v && b.RowTime[row] == t {
				return memory(row)
			}
		}
		// Where only state is computed, events that are no node's last have no rows.
		return slices.Repeat([]float32{float32(math.NaN())}, l.m.Hidden)
	}
	for _, e := range l.events[b.From:b.To] {
		u, v := of(e.src, e.time), of(e.dst, e.time)
		for i, w := range []uint32{e.src, e.dst} {
			own, other := [][]float32{u, v}[i], [][]float32{v, u}[i]
			c := loopChange{memory: own, time: e.time}
			if len(b.Mails) == 0 {
				c.mail, c.mailTime = slices.Concat(own, other, e.features), e.time
			}
			next[w] = c
		}
	}
	for _, m := range b.Mails {
		c := next[b.Nodes[m.Node]]
		c.mail, c.mailTime = slices.Concat(memory(int(m.Row)), memory(int(m.Other)), l.events[b.Events[m.Event]].features), b.RowTime[m.Row]
		next[b.Nodes[m.Node]] = c
	}
	l.pending = append(l.pending, next)
}

// upload is a batch as networks take it.
func (l *loop) upload(b *Batch, seen []loopNode, nodeFeatures []float32) *model.Moments {
	var memory, mails, age, mailAge, away, since, features []float32
	var slots model.Lists
	var starts, ends, at, of []uint32
	for _, n := range seen {
		memory, mails = append(memory, n.memory...), append(mails, slices.Concat(n.mails...)...)
	}
	for i, n := range b.RowNode {
		age = appendTime(age, b.RowTime[i]-seen[n].time)
		starts = append(starts, uint32(len(at)))
		for slot, t := range seen[n].mailTimes {
			mailAge = appendTime(mailAge, b.RowTime[i]-t)
			at, of = append(at, n*uint32(l.m.Mails)+uint32(slot)), append(of, uint32(i))
		}
		ends = append(ends, uint32(len(at)))
	}
	for _, r := range b.Roots {
		t := b.RowTime[r]
		away = append(away, float32((t-seen[b.RowNode[r]].time)/(t+1)))
	}
	for _, t := range b.Since {
		since = appendTime(since, t)
	}
	for _, e := range b.Events {
		features = append(features, l.events[e].features...)
	}
	var count []uint32
	for i := range 1 + max(len(b.RowNode), len(at), len(b.NearRow), len(b.Roots)) {
		count = append(count, uint32(i))
	}
	ints := func(v []uint32) kernels.Tensor { return intsOn(l.be, v) }
	slots = model.Lists{Start: ints(starts), End: ints(ends), At: ints(at), Of: ints(of)}
	return &model.Moments{
		Count: ints(count), Memory: floatsOn(l.be, memory, l.m.Hidden), Mail: floatsOn(l.be, mails, l.m.Mails*l.m.Mail(l.m.TemporalShape)),
		Features: floatsOn(l.be, nodeFeatures, l.m.Node), Node: ints(b.RowNode), Age: floatsOn(l.be, age, 2), Slots: slots, MailAge: floatsOn(l.be, mailAge, 2),
		Root: ints(b.Roots), Near: model.Lists{Start: ints(b.NearStart), End: ints(b.NearEnd), At: ints(b.NearRow), Of: ints(b.NearRoot)},
		Since: floatsOn(l.be, since, 2), Events: floatsOn(l.be, features, l.m.Event), Event: ints(b.NearEvent), Away: floatsOn(l.be, away, 1),
	}
}

// blend returns what the network reads where rows are blended: each has a node of its own, with
// another memory.
func (l *loop) blend(b *Batch, seen []loopNode) (*Batch, []loopNode) {
	if l.keep == 0 || l.keep == 1 {
		return b, seen
	}
	c := *b
	c.RowNode = slices.Clone(b.RowNode)
	for i, row := range b.Blended {
		at := b.RowNode[row]
		n := l.clone(seen[at])
		similar := b.Similar[b.BlendStart[i]:b.BlendStart[i+1]]
		for col, own := range n.memory {
			sum := 0.0
			for _, u := range similar {
				sum += float64(seen[u].memory[col])
			}
			n.memory[col] = float32(l.keep*float64(own) + (1-l.keep)*sum/float64(len(similar)))
		}
		c.RowNode[row] = uint32(len(seen))
		seen = append(seen, n)
	}
	return &c, seen
}

// step computes a batch and writes its state, and learns at a rate where key is not 0.
func (l *loop) step(b *Batch, nodeFeatures []float32, key uint64, rate float32) (out Out) {
	seen := l.fetch(b)
	blended, all := l.blend(b, seen)
	in := l.upload(blended, all, nodeFeatures)
	if l.m.Node > 0 {
		in.Described = intsOn(l.be, b.RowNode) // a row has its node's features, blended or not
	}
	l.tp.Reset(key != 0)
	memory := l.m.Update(l.tp, in, key)
	if memory != nil {
		all := floatsOf(l.be, memory.Value)
		defer l.write(b, func(row int) []float32 { return all[row*l.m.Hidden:][:l.m.Hidden] })
	}
	if len(b.Roots) == 0 {
		return out
	}
	z := l.m.Embed(l.tp, in, memory, key)
	var sources []uint32
	for _, r := range b.Src {
		sources = append(sources, slices.Repeat([]uint32{r}, b.Each)...)
	}
	there := l.m.Score(l.tp, z, intsOn(l.be, b.Src), intsOn(l.be, b.Dst))
	others := l.m.Score(l.tp, z, intsOn(l.be, sources), intsOn(l.be, b.Negatives))
	x, y := l.tp.LinkLoss(there, others)
	for _, losses := range []kernels.Tensor{x, y} {
		sum := 0.0
		for _, v := range floatsOf(l.be, losses) {
			sum += float64(v)
		}
		out.Loss += sum / float64(losses.Rows)
	}
	out.Positives, out.Negatives = floatsOf(l.be, there.Value), floatsOf(l.be, others.Value)
	if key == 0 {
		return out
	}
	l.tp.Backward()
	l.steps++
	correct := func(beta float32) float32 { return float32(1 - math.Pow(float64(beta), float64(l.steps))) }
	adam := kernels.AdamStep{LR: float32(rate), Beta1: 0.9, Beta2: 0.999, Eps: 1e-8, Correct1: correct(0.9), Correct2: correct(0.999)}
	for i, p := range l.m.Params {
		of := kernels.AdamParam{Value: p.Value, Grad: p.Grad, M: l.moments[i][0], V: l.moments[i][1]}
		l.be.Adam([]kernels.AdamParam{of}, 1, adam, kernels.Guard{})
	}
	return out
}

// requireRecord compares a node with its record.
func requireRecord(t *testing.T, want loopNode, r Record, record []byte) {
	t.Helper()
	require.Equal(t, want.memory, float32s(r.Memory(record)))
	require.Equal(t, want.time, r.Time(record))
	require.Equal(t, want.slot, r.Slot(record))
	for slot := range want.mails {
		require.Equal(t, want.mails[slot], float32s(r.Mail(record, slot)))
		require.Equal(t, want.mailTimes[slot], r.MailTime(record, slot))
	}
}
