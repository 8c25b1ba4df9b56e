package model

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/train/tape"
)

// hostMoments is a batch of a stream before it is on a backend: nodes' memories, mails and features
// one behind the other, rows and roots.
type hostMoments struct {
	memory, mail, features, events []float32
	rows                           []hostRow
	roots                          []hostRoot
}

type hostRow struct {
	node     uint32
	age      float64
	mailAges []float64
}

type hostRoot struct {
	row  uint32
	away float64
	near []hostNear
}

type hostNear struct {
	row, event uint32
	since      float64
}

func (h *hostMoments) upload(be kernels.Backend, c TemporalConfig, s TemporalShape) *Moments {
	var node, root, event []uint32
	var age, mailAge, since, away []float32
	var slots, near hostLists
	for i, r := range h.rows {
		node, age = append(node, r.node), appendTime(age, r.age)
		for j, a := range r.mailAges {
			mailAge = appendTime(mailAge, a)
			slots.add(i, r.node*uint32(c.Mails)+uint32(j))
		}
		slots.end(i)
	}
	for i, r := range h.roots {
		root, away = append(root, r.row), append(away, float32(r.away))
		for _, n := range r.near {
			near.add(i, n.row)
			event, since = append(event, n.event), appendTime(since, n.since)
		}
		near.end(i)
	}
	count := make([]uint32, 1+max(len(h.rows), len(slots.at), len(near.at), len(root)))
	for i := range count {
		count[i] = uint32(i)
	}
	nodes := len(h.memory) / c.Hidden
	matrix := func(v []float32, cols int) kernels.Tensor { return f32(be, v, len(v)/max(1, cols), cols) }
	return &Moments{
		Count: u32(be, count), Memory: matrix(h.memory, c.Hidden), Mail: f32(be, h.mail, nodes, c.Mails*c.Mail(s)), Features: matrix(h.features, s.Node),
		Node: u32(be, node), Age: matrix(age, 2), Slots: slots.upload(be), MailAge: matrix(mailAge, 2),
		Root: u32(be, root), Near: near.upload(be), Since: matrix(since, 2), Events: matrix(h.events, s.Event), Event: u32(be, event),
		Away: matrix(away, 1),
	}
}

func appendTime(pairs []float32, t float64) []float32 {
	high, low := kernels.SplitTime(t)
	return append(pairs, high, low)
}

type hostLists struct{ starts, ends, at, of []uint32 }

func (l *hostLists) add(list int, at uint32) {
	l.at, l.of = append(l.at, at), append(l.of, uint32(list))
}

func (l *hostLists) end(list int) {
	start := uint32(0)
	if list > 0 {
		start = l.ends[list-1]
	}
	l.starts, l.ends = append(l.starts, start), append(l.ends, uint32(len(l.at)))
}

func (l *hostLists) upload(be kernels.Backend) Lists {
	return Lists{Start: u32(be, l.starts), End: u32(be, l.ends), At: u32(be, l.at), Of: u32(be, l.of)}
}

// drawMoments draws a batch: nodes with state, rows at some times, some of them before the memory
// was written, and roots with up to fanout neighbours; every fifth has none.
func drawMoments(c TemporalConfig, s TemporalShape, nodes, rows, roots, fanout int) *hostMoments {
	rng := rand.New(rand.NewPCG(11, 12))
	normal := func(n int) []float32 {
		v := make([]float32, n)
		for i := range v {
			v[i] = float32(rng.NormFloat64())
		}
		return v
	}
	const events = 11
	h := &hostMoments{
		memory: normal(nodes * c.Hidden), mail: normal(nodes * c.Mails * c.Mail(s)), features: normal(nodes * s.Node), events: normal(events * s.Event),
	}
	for range rows {
		r := hostRow{node: rng.Uint32N(uint32(nodes)), age: 3 * rng.NormFloat64()}
		for range c.Mails {
			r.mailAges = append(r.mailAges, 5*rng.Float64())
		}
		h.rows = append(h.rows, r)
	}
	for i := range roots {
		r := hostRoot{row: uint32(i * rows / roots), away: rng.Float64()}
		if i%5 != 3 {
			for range 1 + rng.IntN(fanout) {
				r.near = append(r.near, hostNear{rng.Uint32N(uint32(rows)), rng.Uint32N(events), 4 * rng.Float64()})
			}
		}
		h.roots = append(h.roots, r)
	}
	return h
}

// streamNetworks has one of every kind, with all that a network can have.
var streamNetworks = []struct {
	TemporalConfig
	TemporalShape
}{
	{TemporalConfig{Kind: TGN, Hidden: 4, Time: 4, Heads: 2, Mails: 1}, TemporalShape{Event: 3}},
	{TemporalConfig{Kind: TGN, Hidden: 4, Time: 3, Heads: 2, Mails: 1, Dropout: 0.4, AttnDropout: 0.3}, TemporalShape{Event: 3, Node: 5}},
	{TemporalConfig{Kind: TGN, Hidden: 4, Time: 4, Heads: 1, Mails: 1, FixedTime: true}, TemporalShape{Node: 4}},
	{TemporalConfig{Kind: TGN, Hidden: 4, Time: 4, Heads: 2, Mails: 1, Stateless: true}, TemporalShape{Event: 3}},
	{TemporalConfig{Kind: TGN, Hidden: 4, Time: 4, Heads: 4, Mails: 1, Stateless: true}, TemporalShape{Node: 3}},
	{TemporalConfig{Kind: JODIE, Hidden: 4, Time: 4, Mails: 1}, TemporalShape{Event: 3}},
	{TemporalConfig{Kind: JODIE, Hidden: 4, Time: 1, Mails: 1, FixedTime: true}, TemporalShape{Event: 2, Node: 5}},
	{TemporalConfig{Kind: APAN, Hidden: 4, Time: 4, Heads: 2, Mails: 3}, TemporalShape{Event: 3}},
	{TemporalConfig{Kind: APAN, Hidden: 4, Time: 4, Heads: 1, Mails: 10, Dropout: 0.4, AttnDropout: 0.3, FixedTime: true}, TemporalShape{Node: 5}},
}

// streamLoss is the loss of the batch's first roots with the next ones and with those after, as a
// plain sum of means.
func streamLoss(m *Temporal, tp *tape.Tape, in *Moments, key uint64) (loss float64, memory, z *tape.Var) {
	third := in.Root.Rows / 3
	pick := func(part int) kernels.Tensor { return in.Count.Slice(part*third, (part+1)*third) }
	memory = m.Update(tp, in, key)
	z = m.Embed(tp, in, memory, key)
	a, b := tp.LinkLoss(m.Score(tp, z, pick(0), pick(1)), m.Score(tp, z, pick(0), pick(2)))
	for _, rows := range []kernels.Tensor{a, b} {
		for _, l := range wide(m.be, rows) {
			loss += l / float64(rows.Rows)
		}
	}
	return loss, memory, z
}

// TestTemporalGradients compares every parameter's gradient with central differences, in float64.
func TestTemporalGradients(t *testing.T) {
	be := kernels.NewReference()
	for _, c := range streamNetworks {
		in := drawMoments(c.TemporalConfig, c.TemporalShape, 6, 12, 9, 3).upload(be, c.TemporalConfig, c.TemporalShape)
		m, tp := NewTemporal(be, c.TemporalConfig, c.TemporalShape, 11), tape.New(be)
		rng := rand.New(rand.NewPCG(3, 4))
		for _, p := range m.Params { // no row sits on ReLU's kink
			value := wide(be, p.Value)
			for i := range value {
				value[i] += 0.3 * rng.NormFloat64()
			}
			be.UploadF64(p.Value, value)
		}
		loss := func(record bool) float64 {
			tp.Reset(record)
			sum, _, _ := streamLoss(m, tp, in, 77)
			return sum
		}
		loss(true)
		tp.Backward()
		for _, p := range m.Params {
			value, grad := wide(be, p.Value), wide(be, p.Grad)
			for i := range value {
				const h = 1e-6
				x := value[i]
				value[i] = x + h
				be.UploadF64(p.Value, value)
				up := loss(false)
				value[i] = x - h
				be.UploadF64(p.Value, value)
				down := loss(false)
				value[i] = x
				be.UploadF64(p.Value, value)
				require.InDelta(t, (up-down)/(2*h), grad[i], 1e-6*math.Max(1, math.Abs(grad[i])), "%+v %s[%d]", c, p.Name, i)
			}
		}
		m.Close()
		tp.Close()
	}
}

// TestTemporalParams: sizes that pin the architecture, and names and shapes, which checkpoints and
// initial values depend on.
func TestTemporalParams(t *testing.T) {
	wikipedia, gdelt := TemporalShape{Event: 172}, TemporalShape{Event: 186, Node: 413}
	config := func(kind Kind, mails int) TemporalConfig {
		return TemporalConfig{Kind: kind, Hidden: 100, Time: 100, Heads: 2, Mails: mails}
	}
	require.Equal(t, int64(307_901), config(TGN, 1).Weights(wikipedia))
	require.Equal(t, int64(356_301), config(TGN, 1).Weights(gdelt))
	require.Equal(t, int64(78_301), config(JODIE, 1).Weights(wikipedia))
	require.Equal(t, int64(135_701), config(APAN, 10).Weights(wikipedia))
	fixed := config(TGN, 1)
	fixed.FixedTime = true
	require.Equal(t, int64(307_901-400), fixed.Weights(wikipedia))

	for i, want := range map[int]string{
		1: `memory_updater.updater.weight_ih [12 14], memory_updater.updater.weight_hh [12 4], memory_updater.updater.bias_ih [12],
			memory_updater.updater.bias_hh [12], memory_updater.time_enc.w.weight [3 1], memory_updater.time_enc.w.bias [3],
			memory_updater.node_feat_map.weight [4 5], memory_updater.node_feat_map.bias [4],
			layers.l0h0.time_enc.w.weight [3 1], layers.l0h0.time_enc.w.bias [3], layers.l0h0.w_q.weight [4 7], layers.l0h0.w_q.bias [4],
			layers.l0h0.w_k.weight [4 10], layers.l0h0.w_k.bias [4], layers.l0h0.w_v.weight [4 10], layers.l0h0.w_v.bias [4],
			layers.l0h0.w_out.weight [4 8], layers.l0h0.w_out.bias [4], layers.l0h0.layer_norm.weight [4], layers.l0h0.layer_norm.bias [4],`,
		5: `memory_updater.updater.weight_ih [4 15], memory_updater.updater.weight_hh [4 4], memory_updater.updater.bias_ih [4],
			memory_updater.updater.bias_hh [4], memory_updater.time_enc.w.weight [4 1], memory_updater.time_enc.w.bias [4],
			layers.l0h0.norm.weight [4], layers.l0h0.norm.bias [4], layers.l0h0t.time_emb.weight [4 1], layers.l0h0t.time_emb.bias [4],`,
		7: `memory_updater.time_enc.w.weight [4 1], memory_updater.time_enc.w.bias [4], memory_updater.w_q.weight [4 4], memory_updater.w_q.bias [4],
			memory_updater.w_k.weight [4 15], memory_updater.w_k.bias [4], memory_updater.w_v.weight [4 15], memory_updater.w_v.bias [4],
			memory_updater.layer_norm.weight [4], memory_updater.layer_norm.bias [4], memory_updater.mlp.weight [4 4], memory_updater.mlp.bias [4],
			layers.l0h0.norm.weight [4], layers.l0h0.norm.bias [4],`,
	} {
		c := streamNetworks[i]
		m := NewTemporal(kernels.NewReference(), c.TemporalConfig, c.TemporalShape, 1)
		var got []string
		for _, p := range m.Params {
			got = append(got, fmt.Sprint(p.Name, " ", p.Shape))
		}
		want += ` edge_predictor.src_fc.weight [4 4], edge_predictor.src_fc.bias [4], edge_predictor.dst_fc.weight [4 4], edge_predictor.dst_fc.bias [4],
			edge_predictor.out_fc.weight [1 4], edge_predictor.out_fc.bias [1]`
		require.Equal(t, strings.Join(strings.Fields(want), " "), strings.Join(got, ", "), c.Kind)
		m.Close()
	}
}

// TestTemporalStart: weights begin within the bounds of PyTorch's modules, rates of times fall from
// 1 to 1e-9, and all scores are near 0: the loss is 2·log 2.
func TestTemporalStart(t *testing.T) {
	be := kernels.NewReference()
	c, s := TemporalConfig{Kind: TGN, Hidden: 100, Time: 4, Heads: 2, Mails: 1}, TemporalShape{Event: 16}
	m, tp := NewTemporal(be, c, s, 5), tape.New(be)
	defer m.Close()
	defer tp.Close()
	for name, bound := range map[string]float64{
		"memory_updater.updater.weight_ih": 0.1, "memory_updater.updater.bias_hh": 0.1,
		"layers.l0h0.w_q.weight": 1 / math.Sqrt(104), "layers.l0h0.w_out.bias": 1 / math.Sqrt(200),
	} {
		low, high := 0.0, 0.0
		for _, p := range m.Params {
			if p.Name == name {
				for _, v := range wide(be, p.Value) {
					low, high = min(low, v), max(high, v)
				}
			}
		}
		require.InDelta(t, bound, high, 0.04*bound, name)
		require.InDelta(t, -bound, low, 0.04*bound, name)
	}
	for _, p := range m.Params {
		if strings.HasSuffix(p.Name, "time_enc.w.weight") {
			for i, v := range wide(be, p.Value) {
				require.InEpsilon(t, []float64{1, 1e-3, 1e-6, 1e-9}[i], v, 1e-7)
			}
		}
	}
	loss, _, _ := streamLoss(m, tp, drawMoments(c, s, 50, 100, 90, 5).upload(be, c, s), 0)
	require.InDelta(t, 2*math.Ln2, loss, 0.05)
}

// spread is h with a row of its own for each root and each neighbour: what a network does that does
// not know equal rows.
func (h *hostMoments) spread() *hostMoments {
	all := &hostMoments{memory: h.memory, mail: h.mail, features: h.features, events: h.events}
	for _, r := range h.roots {
		all.rows = append(all.rows, h.rows[r.row])
		r.row = uint32(len(all.rows) - 1)
		all.roots = append(all.roots, r)
	}
	for i := range all.roots {
		near := append([]hostNear{}, all.roots[i].near...)
		for j, n := range near {
			all.rows = append(all.rows, h.rows[n.row])
			near[j].row = uint32(len(all.rows) - 1)
		}
		all.roots[i].near = near
	}
	return all
}

// wideStreams are streamNetworks at sizes where work is split.
func wideStreams(test func(c TemporalConfig, s TemporalShape, h *hostMoments)) {
	for _, n := range streamNetworks {
		c, s := n.TemporalConfig, n.TemporalShape
		c.Hidden, c.Time = 20, 16
		if s.Node == 4 {
			s.Node = 20
		}
		test(c, s, drawMoments(c, s, 300, 900, 600, 10))
	}
}

// TestRowsAreComputedOnce: embeddings are the same bits whether roots and neighbours share rows or
// have one each. Nothing is dropped, as dropout goes by the places of rows.
func TestRowsAreComputedOnce(t *testing.T) {
	be := kernels.NewCPU(kernels.CPUOptions{Threads: 2})
	wideStreams(func(c TemporalConfig, s TemporalShape, h *hostMoments) {
		m, tp := NewTemporal(be, c, s, 3), tape.New(be)
		defer m.Close()
		defer tp.Close()
		embed := func(h *hostMoments) []float32 {
			tp.Reset(false)
			in := h.upload(be, c, s)
			z := m.Embed(tp, in, m.Update(tp, in, 0), 0).Value
			got := make([]float32, z.Len())
			be.DownloadF32(got, z)
			return got
		}
		require.Equal(t, embed(h), embed(h.spread()), "%+v", c)
	})
}

// TestTemporalThreadsGiveTheSameBits: memories, embeddings and gradients, on every kernel set; sets
// agree within rounding.
func TestTemporalThreadsGiveTheSameBits(t *testing.T) {
	wideStreams(func(c TemporalConfig, s TemporalShape, h *hostMoments) {
		run := func(be kernels.Backend) (all []float32) {
			m, tp := NewTemporal(be, c, s, 3), tape.New(be)
			defer m.Close()
			defer tp.Close()
			tp.Reset(true)
			_, memory, z := streamLoss(m, tp, h.upload(be, c, s), 9)
			tp.Backward()
			results := []kernels.Tensor{z.Value}
			if memory != nil {
				results = append(results, memory.Value)
			}
			for _, p := range m.Params {
				results = append(results, p.Grad)
			}
			for _, r := range results {
				v := make([]float32, r.Len())
				be.DownloadF32(v, r)
				all = append(all, v...)
			}
			return all
		}
		oracle := run(kernels.NewReference())
		for _, set := range kernels.Sets() {
			want := run(kernels.NewCPU(kernels.CPUOptions{Threads: 1, Set: set}))
			for _, threads := range []int{2, 7} {
				require.Equal(t, want, run(kernels.NewCPU(kernels.CPUOptions{Threads: threads, Set: set})), "%s %+v, %d threads", set, c, threads)
			}
			require.InDeltaSlice(t, oracle, want, 2e-5, "%s %+v", set, c)
		}
	})
}

// TestMemoryStaysWithinBounds: TGN's and JODIE's memories never leave -1 to 1, from where they
// begin.
func TestMemoryStaysWithinBounds(t *testing.T) {
	be := kernels.NewCPU(kernels.CPUOptions{})
	for _, kind := range []Kind{TGN, JODIE} {
		c, s := TemporalConfig{Kind: kind, Hidden: 32, Time: 8, Heads: 2, Mails: 1}, TemporalShape{Event: 4}
		h := drawMoments(c, s, 200, 600, 3, 2)
		for i, v := range h.memory {
			h.memory[i] = float32(math.Copysign(1, float64(v)))
		}
		for i := range h.mail {
			h.mail[i] *= 100
		}
		m, tp := NewTemporal(be, c, s, 1), tape.New(be)
		for _, v := range wide(be, m.Update(tp, h.upload(be, c, s), 0).Value) {
			require.LessOrEqual(t, math.Abs(v), 1.0)
		}
		m.Close()
		tp.Close()
	}
}

// TestFixedTemporal: a network to predict with has the values of the one that was trained, and no
// memory for gradients.
func TestFixedTemporal(t *testing.T) {
	be := kernels.NewReference()
	for _, n := range streamNetworks {
		in := drawMoments(n.TemporalConfig, n.TemporalShape, 6, 12, 9, 3).upload(be, n.TemporalConfig, n.TemporalShape)
		trained, fixed := NewTemporal(be, n.TemporalConfig, n.TemporalShape, 4), NewFixedTemporal(be, n.TemporalConfig, n.TemporalShape)
		fixed.Upload(trained.Download())
		require.Equal(t, trained.Hash(), fixed.Hash())
		tp := tape.New(be)
		embed := func(m *Temporal) []float64 {
			tp.Reset(true)
			z := wide(be, m.Embed(tp, in, m.Update(tp, in, 0), 0).Value)
			tp.Backward()
			return z
		}
		require.Equal(t, embed(trained), embed(fixed))
		for _, p := range fixed.Params {
			require.Nil(t, p.Grad.Buf, p.Name)
		}
		trained.Close()
		fixed.Close()
		tp.Close()
	}
}

// TestTemporalDropout: every module and step drops others at its rate, and evaluation drops
// nothing.
func TestTemporalDropout(t *testing.T) {
	for _, kind := range []Kind{TGN, APAN} {
		be := &keyed{Backend: kernels.NewReference()}
		c, s := TemporalConfig{Kind: kind, Hidden: 4, Time: 4, Heads: 2, Mails: 1, Dropout: 0.5, AttnDropout: 0.25}, TemporalShape{Event: 2}
		in := drawMoments(c, s, 6, 12, 9, 3).upload(be, c, s)
		m, tp := NewTemporal(be, c, s, 11), tape.New(be)
		pass := func(key uint64) []float64 {
			tp.Reset(true)
			z := m.Embed(tp, in, m.Update(tp, in, key), key).Value
			all := make([]float64, z.Len())
			be.Backend.(*kernels.Reference).DownloadF64(all, z)
			return all
		}
		evaluated := pass(0)
		require.Empty(t, be.rows, kind)
		require.Empty(t, be.edges, kind)
		for key := range uint64(4) {
			require.NotEqual(t, evaluated, pass(key+1), kind)
		}
		require.Len(t, distinct(append(be.rows, be.edges...)), 8, kind)
		require.Equal(t, []float32{0.5, 0.5, 0.5, 0.5}, be.rates, kind)
		m.Dropout, m.AttnDropout = 0, 0
		sure := NewTemporal(be, m.TemporalConfig, s, 11)
		tp.Reset(false)
		z := sure.Embed(tp, in, sure.Update(tp, in, 7), 7).Value
		got := make([]float64, z.Len())
		be.Backend.(*kernels.Reference).DownloadF64(got, z)
		require.Equal(t, evaluated, got, kind)
	}
}

// TestNoRows: a batch without neighbours, and one without rows, roots and pairs.
func TestNoRows(t *testing.T) {
	be := kernels.NewCPU(kernels.CPUOptions{})
	for _, n := range streamNetworks {
		c, s := n.TemporalConfig, n.TemporalShape
		h := drawMoments(c, s, 6, 12, 9, 3)
		for i := range h.roots {
			h.roots[i].near = nil
		}
		for _, h := range []*hostMoments{h, {}} {
			m, tp := NewTemporal(be, c, s, 1), tape.New(be)
			tp.Reset(true)
			loss, _, z := streamLoss(m, tp, h.upload(be, c, s), 5)
			tp.Backward()
			require.False(t, math.IsNaN(loss) || math.IsInf(loss, 0) || z.Value.Rows != len(h.roots), "%+v", c)
			m.Close()
			tp.Close()
		}
	}
}

func TestValidateTemporal(t *testing.T) {
	for _, n := range streamNetworks {
		require.NoError(t, n.TemporalConfig.Validate())
	}
	err := TemporalConfig{Kind: SAGE, Hidden: 0, Time: 0, Mails: 2, Stateless: true, Dropout: 1, AttnDropout: math.NaN()}.Validate()
	for _, want := range []string{
		"{model} sage: there are tgn, jodie and apan", "{hidden} 0", "{time_columns} 0", "{dropout} 1", "{attn_dropout} NaN",
	} {
		require.ErrorContains(t, err, want)
	}
	require.ErrorContains(t, TemporalConfig{Kind: TGN, Mails: 1}.Validate(), "{heads} 0: it must divide {hidden} 0")
	err = TemporalConfig{Kind: JODIE, Hidden: 4, Time: 4, Mails: 2, Stateless: true}.Validate()
	require.EqualError(t, err, "{mails} 2: {model} jodie keeps 1\n{state} none: {model} jodie has nothing else to read; take tgn")
	require.ErrorContains(t, TemporalConfig{Kind: APAN, Hidden: 4, Time: 4, Heads: 3, Mails: 256}.Validate(), "{mails} 256: from 1 to 255")
	require.ErrorContains(t, TemporalConfig{Kind: APAN, Hidden: 4, Time: 4, Heads: 3, Mails: 256}.Validate(), "{heads} 3")
	require.Panics(t, func() { NewTemporal(kernels.NewReference(), TemporalConfig{}, TemporalShape{}, 1) })
}

// TestTemporalKeepsItsMemory: once the arena is as large as a step, a step takes no more of it, and
// what it takes of the heap does not grow with the batch.
func TestTemporalKeepsItsMemory(t *testing.T) {
	be := kernels.NewCPU(kernels.CPUOptions{Threads: 1})
	for _, n := range streamNetworks {
		c, s := n.TemporalConfig, n.TemporalShape
		var allocs []float64
		for _, size := range []int{1, 8} {
			m, tp := NewTemporal(be, c, s, 1), tape.New(be)
			in := drawMoments(c, s, 30*size, 90*size, 60*size, 5).upload(be, c, s)
			step := func() {
				tp.Reset(true)
				z := m.Embed(tp, in, m.Update(tp, in, 9), 9)
				half := z.Value.Rows / 2
				tp.LinkLoss(m.Score(tp, z, in.Count.Slice(0, half), in.Count.Slice(half, 2*half)), m.Score(tp, z, in.Count.Slice(0, half), in.Count.Slice(0, half)))
				tp.Backward()
			}
			step()
			step()
			bytes := tp.Bytes()
			allocs = append(allocs, testing.AllocsPerRun(3, step))
			require.Equal(t, bytes, tp.Bytes())
			m.Close()
			tp.Close()
		}
		require.InDelta(t, allocs[0], allocs[1], 100, "%+v", c) // of more than 210 roots more; gonum, where there is no assembly, cuts products into blocks
	}
}
