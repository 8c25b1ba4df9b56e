package model

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/train/tape"
)

// streamEvent is an event of a stream: a user takes an item.
type streamEvent struct {
	src, dst uint32
	time     float64
	features []float32
}

// driftingStream draws events of users and items in groups: users mostly take items of their group,
// which changes at times, and an event's features say little of it, so that a memory of many events
// knows the group and a few neighbours do not. Users have the first numbers.
func driftingStream(rng *rand.Rand, events, users, items, groups, columns int) []streamEvent {
	zipf := func(n int) func() int { // P ∝ (rank+1)^-0.8
		sums := make([]float64, n)
		total := 0.0
		for i := range sums {
			total += math.Pow(float64(i+1), -0.8)
			sums[i] = total
		}
		return func() int {
			at, _ := slices.BinarySearch(sums, rng.Float64()*total)
			return min(at, n-1)
		}
	}
	order, popular := rng.Perm(items), rng.Perm(users)
	anyUser, anyItem := zipf(users), zipf(items/groups)
	groupOf, group := make([]int, items), make([]int, users)
	for k, item := range order {
		groupOf[item] = k % groups
	}
	for u := range group {
		group[u] = rng.IntN(groups)
	}
	history, now := make([][]int, users), 0.0
	all := make([]streamEvent, events)
	for i := range all {
		now += rng.ExpFloat64()
		user := popular[anyUser()]
		if i > 0 && rng.Float64() < 0.3 {
			user = int(all[max(0, i-20)+rng.IntN(min(i, 20))].src)
		}
		if rng.Float64() < 0.005 {
			group[user], history[user] = rng.IntN(groups), nil
		}
		item := order[anyItem()*groups+group[user]]
		if h := history[user]; len(h) > 0 && rng.Float64() < 0.3 {
			item = h[rng.IntN(len(h))]
		} else if rng.Float64() < 0.02 {
			item = rng.IntN(items)
		}
		history[user] = append(history[user], item)
		history[user] = history[user][max(0, len(history[user])-5):]
		x := make([]float32, columns)
		for c := range x {
			x[c] = float32(2 * rng.NormFloat64())
		}
		x[groupOf[item]]++
		all[i] = streamEvent{uint32(user), uint32(users + item), now, x}
	}
	return all
}

// streamLoop trains on a stream event after event, with all state in slices: what a pipeline has to
// agree with.
type streamLoop struct {
	be     kernels.Backend
	m      *Temporal
	tp     *tape.Tape
	fanout int
	rng    *rand.Rand // of negatives
	moment [][2]kernels.Tensor
	step   int
	nodes  []streamNode
}

type streamNode struct {
	memory, mail []float32
	time         float64
	near         []streamNear // by time
}

type streamNear struct {
	node  uint32
	time  float64
	event *streamEvent
}

func newStreamLoop(c TemporalConfig, s TemporalShape, nodes, fanout int, seed uint64) *streamLoop {
	be := kernels.NewCPU(kernels.CPUOptions{})
	l := &streamLoop{be: be, m: NewTemporal(be, c, s, seed), tp: tape.New(be), fanout: fanout, rng: rand.New(rand.NewPCG(seed, 1)), nodes: make([]streamNode, nodes)}
	for _, p := range l.m.Params {
		zeros := make([]float32, p.Value.Len())
		l.moment = append(l.moment, [2]kernels.Tensor{f32(be, zeros, p.Value.Rows, p.Value.Cols), f32(be, zeros, p.Value.Rows, p.Value.Cols)})
	}
	return l
}

// begin forgets all state.
func (l *streamLoop) begin() {
	for v := range l.nodes {
		l.nodes[v] = streamNode{memory: make([]float32, l.m.Hidden), mail: make([]float32, l.m.Mail(l.m.TemporalShape))}
	}
}

// batch computes events and then their state, with weights that learn at rate lr, or that stay
// where it is 0. Negatives are from destinations.
func (l *streamLoop) batch(events []streamEvent, destinations []uint32, lr float32) (loss, ap float64) {
	h, rows, nodes, edges := &hostMoments{}, map[[2]float64]uint32{}, map[uint32]uint32{}, map[*streamEvent]uint32{}
	row := func(v uint32, at float64) uint32 {
		key := [2]float64{float64(v), at}
		if r, ok := rows[key]; ok {
			return r
		}
		n, ok := nodes[v]
		if !ok {
			n = uint32(len(nodes))
			nodes[v] = n
			h.memory, h.mail = append(h.memory, l.nodes[v].memory...), append(h.mail, l.nodes[v].mail...)
		}
		rows[key] = uint32(len(h.rows))
		h.rows = append(h.rows, hostRow{node: n, age: at - l.nodes[v].time, mailAges: []float64{0}})
		return rows[key]
	}
	roots := map[uint32]uint32{} // by row
	root := func(v uint32, at float64) uint32 {
		r := row(v, at)
		if z, ok := roots[r]; ok {
			return z
		}
		all := hostRoot{row: r, away: (at - l.nodes[v].time) / (at + 1)}
		near := l.nodes[v].near
		for i := len(near) - 1; i >= 0 && len(all.near) < l.fanout; i-- {
			if n := near[i]; n.time < at {
				e, ok := edges[n.event]
				if !ok {
					e = uint32(len(edges))
					edges[n.event] = e
					h.events = append(h.events, n.event.features...)
				}
				all.near = append(all.near, hostNear{row: row(n.node, n.time), event: e, since: at - n.time})
			}
		}
		roots[r] = uint32(len(h.roots))
		h.roots = append(h.roots, all)
		return roots[r]
	}
	var ends [3][]uint32 // sources, destinations, negatives
	for i := range events {
		e := &events[i]
		for k, v := range []uint32{e.src, e.dst, destinations[l.rng.IntN(len(destinations))]} {
			ends[k] = append(ends[k], root(v, e.time))
		}
		l.nodes[e.src].near = append(l.nodes[e.src].near, streamNear{e.dst, e.time, e})
		l.nodes[e.dst].near = append(l.nodes[e.dst].near, streamNear{e.src, e.time, e})
	}
	key := uint64(0)
	if lr > 0 {
		l.step++
		key = uint64(l.step)
	}
	in := h.upload(l.be, l.m.TemporalConfig, l.m.TemporalShape)
	l.tp.Reset(lr > 0)
	memory := l.m.Update(l.tp, in, key)
	z := l.m.Embed(l.tp, in, memory, key)
	src := u32(l.be, ends[0])
	there, others := l.m.Score(l.tp, z, src, u32(l.be, ends[1])), l.m.Score(l.tp, z, src, u32(l.be, ends[2]))
	a, b := l.tp.LinkLoss(there, others)
	for _, x := range append(wide(l.be, a), wide(l.be, b)...) {
		loss += x / float64(len(events))
	}
	if lr > 0 {
		l.tp.Backward()
		n := float64(l.step)
		adam := kernels.AdamStep{LR: lr, Beta1: 0.9, Beta2: 0.999, Eps: 1e-8, Correct1: float32(1 - math.Pow(0.9, n)), Correct2: float32(1 - math.Pow(0.999, n))}
		for i, p := range l.m.Params {
			of := kernels.AdamParam{Value: p.Value, Grad: p.Grad, M: l.moment[i][0], V: l.moment[i][1]}
			l.be.Adam([]kernels.AdamParam{of}, 1, adam, kernels.Guard{})
		}
	}
	if memory != nil {
		state, d := wide(l.be, memory.Value), l.m.Hidden
		of := func(v uint32, at float64) (s []float32) {
			return rounded(state[int(rows[[2]float64{float64(v), at}])*d:][:d])
		}
		for _, e := range events { // the last event of a node wins
			u, v := of(e.src, e.time), of(e.dst, e.time)
			for i, node := range []uint32{e.src, e.dst} {
				own, other := u, v
				if i == 1 {
					own, other = v, u
				}
				l.nodes[node].memory, l.nodes[node].time = own, e.time
				l.nodes[node].mail = slices.Concat(own, other, e.features)
			}
		}
	}
	return loss, averagePrecision(wide(l.be, there.Value), wide(l.be, others.Value))
}

// pass is the mean loss and the mean average precision of batches.
func (l *streamLoop) pass(events []streamEvent, destinations []uint32, size int, lr float32) (loss, ap float64) {
	n := 0.0
	for lo := 0; lo < len(events); lo += size {
		x, y := l.batch(events[lo:min(lo+size, len(events))], destinations, lr)
		loss, ap, n = loss+x, ap+y, n+1
	}
	return loss / n, ap / n
}

// averagePrecision takes scores that are equal for one threshold.
func averagePrecision(there, others []float64) (sum float64) {
	thresholds := append([]float64{}, there...)
	slices.Sort(thresholds)
	slices.Reverse(thresholds)
	above := func(scores []float64, x float64) (n float64) {
		for _, s := range scores {
			if s >= x {
				n++
			}
		}
		return n
	}
	last := 0.0
	for _, x := range slices.Compact(thresholds) {
		t := above(there, x)
		sum += (t - last) / float64(len(there)) * t / (t + above(others, x))
		last = t
	}
	return sum
}

func TestAveragePrecision(t *testing.T) {
	require.InDelta(t, 5.0/6, averagePrecision([]float64{0.9, 0.4}, []float64{0.6, 0.1}), 1e-12)
	require.InDelta(t, 2.0/3, averagePrecision([]float64{0.5, 0.5}, []float64{0.5, 0.1}), 1e-12)
	require.InDelta(t, 0.7555556, averagePrecision([]float64{0.8, 0.6, 0.4}, []float64{0.7, 0.5, 0.3}), 1e-7)
}

// learnStream trains a network on the first 70 % of a stream, and gives its average precision on
// the last 15 %, in the epoch that was best on those between.
func learnStream(t *testing.T, c TemporalConfig, events []streamEvent, users, items, epochs, size int, lr float32, seed uint64) (test float64) {
	s := TemporalShape{Event: len(events[0].features)}
	l := newStreamLoop(c, s, users+items, 5, seed)
	defer l.m.Close()
	defer l.tp.Close()
	train, valid := len(events)*70/100, len(events)*85/100
	destinations := func(of []streamEvent) (all []uint32) {
		for _, e := range of {
			all = append(all, e.dst)
		}
		slices.Sort(all)
		return slices.Compact(all)
	}
	known, all, best := destinations(events[:train]), destinations(events), 0.0
	for epoch := range epochs {
		l.begin()
		loss, _ := l.pass(events[:train], known, size, lr)
		_, v := l.pass(events[train:valid], all, size, 0)
		_, x := l.pass(events[valid:], all, size, 0)
		if v > best {
			best, test = v, x
		}
		t.Logf("%s: epoch %d: loss %.4f, valid %.1f, test %.1f", c.Kind, epoch+1, loss, 100*v, 100*x)
	}
	return test
}

// TestStreamsAreLearnt: in a few epochs on a small stream, TGN with its memory finds much more than
// without.
func TestStreamsAreLearnt(t *testing.T) {
	const users, items = 60, 24
	events := driftingStream(rand.New(rand.NewPCG(1, 2)), 4000, users, items, 4, 6)
	c := TemporalConfig{Kind: TGN, Hidden: 16, Time: 16, Heads: 2, Mails: 1, Dropout: 0.1, AttnDropout: 0.1, FixedTime: true}
	learn := func(c TemporalConfig) float64 { return learnStream(t, c, events, users, items, 5, 50, 2e-3, 1) }
	remembers := learn(c)
	c.Stateless = true
	require.Greater(t, remembers, 0.75)
	require.Greater(t, remembers, learn(c)+0.08)
}
