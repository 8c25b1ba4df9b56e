package model

import (
	"errors"
	"math"
	"slices"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/train/sample"
	"github.com/gnnstore/gnnstore/train/tape"
)

// Shapes of networks for streams: N nodes, M rows, R roots, E neighbours of them; D columns of
// state, T of a time, V of an event's features.

// Temporal is a network for streams of events (arXiv 2006.10637; equations as TGL, arXiv
// 2203.14883, has them). Each node has a state: a memory of D numbers, and mail that its last
// events left. A row is a node at a time. [Temporal.Update] makes of its node's memory and mail
// what the memory is at that time, [Temporal.Embed] makes of rows what [Temporal.Score] compares.
// So rows are computed once, however many roots have them for neighbours.
//
// It reads state, and writes none. After an event of nodes u and v, memory of u is the row that
// Update made of u at that time, and its mail is that row, v's, and the event's features, side by
// side: D, D and V columns. Gradients end at what is read.
type Temporal struct {
	TemporalConfig
	TemporalShape
	Parameters
	constants []*constant
	update    updater
	embed     embedder
	decode    struct {
		src, srcBias, dst, dstBias, out, outBias *tape.Var
		pair, pairOut                            *tape.Var // D×P, 1×P; nil if TemporalShape.Pair=0
	}
}

// streamTable has every network for streams once.
var streamTable = []streamNetwork{tgn, jodie, apan}

// streamNetwork describes a network for streams. A further one is a file like tgn.go and
// an entry of streamTable.
type streamNetwork struct {
	kind       Kind
	mails      int  // kept by a node, by default
	mostMails  int  // the most that a node may keep
	neighbors  bool // roots read the rows of neighbours, and the events with them
	delivers   bool // mail of an event goes to neighbours of its ends, too
	attends    bool // it has attention heads
	drifts     bool // it reads Moments.Away
	described  bool // it reads features of nodes
	identified bool // random columns that tell nodes apart make it better, where nodes have no features
	stateless  bool // it can leave out state
	update     func(m *Temporal, d *declared) updater
	embed      func(m *Temporal, d *declared, f nodeFeatures) embedder
}

// TemporalKinds lists the networks for streams.
var TemporalKinds = kindsIn(streamTable, func(n streamNetwork) (Kind, bool) { return n.kind, true })

// stream is k's entry of the table of networks for streams, or the zero one.
func (k Kind) stream() streamNetwork {
	for _, n := range streamTable {
		if n.kind == k {
			return n
		}
	}
	return streamNetwork{}
}

// ReadsNeighbors reports whether a network for streams reads rows of neighbours, and the events
// with them. So it sees an event right after it, before the event is in the state.
func (k Kind) ReadsNeighbors() bool { return k.stream().neighbors }

// DeliversMail reports whether mail of an event also goes to neighbours of its ends.
func (k Kind) DeliversMail() bool { return k.stream().delivers }

// Drifts reports whether embeddings depend on the time since the memory was written: Moments.Away.
func (k Kind) Drifts() bool { return k.stream().drifts }

// ReadsNodes reports whether a network for streams reads features of nodes.
func (k Kind) ReadsNodes() bool { return k.stream().described }

// Identified reports whether a network for streams learns better with random columns that tell
// nodes apart, where nodes have no features.
func (k Kind) Identified() bool { return k.stream().identified }

// KeepsMails returns how many mails a node has by default, and whether it may have others.
func (k Kind) KeepsMails() (usual int, several bool) {
	n := k.stream()
	return n.mails, n.mostMails > 1
}

// TemporalConfig describes a network for streams.
type TemporalConfig struct {
	Kind    Kind    `json:"model"`
	Hidden  int     `json:"hidden"`  // D, of a memory and of an embedding
	Time    int     `json:"time"`    // T, the number of rates, from 1 down to 1e-9
	Heads   int     `json:"heads"`   // of attention; they divide Hidden
	Mails   int     `json:"mails"`   // of a node: see [Kind.KeepsMails]
	Dropout float64 `json:"dropout"` // of the outputs of attention
	// AttnDropout is the rate for attention.
	AttnDropout float64 `json:"attn_dropout"`
	// FixedTime has the rates of times stay as they are.
	FixedTime bool `json:"fixed_time"`
	// Stateless leaves out memory and mail: neighbours, their features and times alone.
	Stateless bool `json:"stateless"`
}

// TemporalShape holds the sizes of a network for streams that follow from the data.
type TemporalShape struct {
	Event int // V, columns of an event's features; 0: none
	Node  int // columns of a node's features; 0: none. See [Kind.ReadsNodes]
	Pair  int // P, columns that describe a scored pair; 0: none
}

// Mail is the columns of one mail.
func (c TemporalConfig) Mail(s TemporalShape) int { return 2*c.Hidden + s.Event }

// Validate reports every problem.
func (c TemporalConfig) Validate() error {
	var errs sample.Problems
	fail := errs.If
	rate := func(option string, p float64) {
		fail(!(p >= 0 && float32(p) < 1), "%s %v: at least 0 and below 1", option, p)
	}
	fail(!slices.Contains(TemporalKinds, c.Kind), "{model} %s: there are %s", c.Kind, sample.Names(TemporalKinds))
	fail(c.Hidden < 1 || c.Hidden > 1<<16, "{hidden} %d: from 1 to %d", c.Hidden, 1<<16)
	fail(c.Time < 1 || c.Time > 1<<16, "{time_columns} %d: from 1 to %d", c.Time, 1<<16)
	n := c.Kind.stream()
	fail(n.attends && (c.Heads < 1 || c.Hidden%max(1, c.Heads) != 0), "{heads} %d: it must divide {hidden} %d", c.Heads, c.Hidden)
	fail(n.mostMails > 1 && (c.Mails < 1 || c.Mails > n.mostMails), "{mails} %d: from 1 to %d", c.Mails, n.mostMails)
	fail(n.mostMails == 1 && c.Mails != 1, "{mails} %d: {model} %s keeps 1", c.Mails, c.Kind)
	fail(c.Stateless && !n.stateless, "{state} none: {model} %s has nothing else to read; take %s", c.Kind, withoutState())
	rate("{dropout}", c.Dropout)
	rate("{attn_dropout}", c.AttnDropout)
	return errors.Join(errs...)
}

// withoutState lists the networks that can leave out state, for people.
func withoutState() string {
	return sample.Names(kindsIn(streamTable, func(n streamNetwork) (Kind, bool) { return n.kind, n.stateless }))
}

// Moments is a batch on the backend: rows, and what is read for them. Tensors are F32 unless the
// comment says otherwise.
type Moments struct {
	// Count is 0, 1, 2 and so on, U32: one more than there are of anything else below.
	Count kernels.Tensor

	// State of the nodes of all rows, each once. A network without state has none.
	Memory   kernels.Tensor // N×D
	Mail     kernels.Tensor // N×Mails·Mail, a node's mails side by side
	Features kernels.Tensor // F32 or F16, N×TemporalShape.Node, or no rows

	// Rows: a node at a time, each once.
	Node      kernels.Tensor // U32, M: which of the nodes
	Described kernels.Tensor // row of Features; without rows, Node is
	Age       kernels.Tensor // M×2, as kernels.SplitTime: time since the memory was written, or < 0
	Slots     Lists          // with several mails: M lists of Mails positions; At is one of the N·Mails mails
	MailAge   kernels.Tensor // with several mails: (M·Mails)×2, the time since each of the mails

	// Roots are the rows to embed, each once.
	Root   kernels.Tensor // U32, R
	Near   Lists          // if it reads neighbours: R lists of E positions; At is the neighbour's row
	Since  kernels.Tensor // the same: E×2, the time from the event to the root
	Events kernels.Tensor // the same: F32 or F16, features of events, V columns, or no rows
	Event  kernels.Tensor // the same: U32, E, the row of Events of each position, or no rows: its own number
	Away   kernels.Tensor // if it drifts: R×1, (t-u)/(t+1), t being the root's time and u when its memory was written
}

// Lists are lists of positions that lie one behind the other, without gaps. All are U32, with one
// column.
type Lists struct {
	Start, End kernels.Tensor // the positions of each list
	At         kernels.Tensor // what each position is
	Of         kernels.Tensor // the list of each position
}

// own is the lists over their positions.
func (l Lists) own(count kernels.Tensor) kernels.Adjacency {
	n := l.At.Rows
	each := count.Slice(0, n)
	return kernels.Adjacency{Start: l.Start, End: l.End, Nbr: each, RevStart: count.Slice(0, n+1), RevDst: l.Of, RevEdge: each}
}

// updater makes memories of rows, and embedder makes embeddings of roots from them.
type updater interface {
	forward(s moment) *tape.Var
}
type embedder interface {
	forward(s moment, memory *tape.Var) *tape.Var
}

// moment is the state that the modules of one pass share.
type moment struct {
	t   *tape.Tape
	key uint64 // seeds dropout; 0: nothing is dropped
	*Moments
}

// dropout is x after dropout, by the place of rows. It uses x up.
func (s moment) dropout(module uint64, x *tape.Var, p float32) *tape.Var {
	if s.key == 0 {
		return x
	}
	return s.t.Dropout(x, s.Count.Slice(0, x.Value.Rows), sample.Hash(s.key, module), p)
}

// add is x plus a row of table for each of its rows. It uses x up, and table, which is a leaf or a
// result of Affine.
func (s moment) add(x, table *tape.Var, rows kernels.Tensor) *tape.Var {
	y := s.t.AddRows(x, table, rows, s.Count.Slice(0, x.Value.Rows))
	s.t.Done(table)
	return y
}

// gather is a row of table for each of rows. It uses table up.
func (s moment) gather(table *tape.Var, rows kernels.Tensor) *tape.Var {
	y := s.t.GatherRows(table, rows)
	s.t.Done(table)
	return y
}

// attend is the sum of v's rows over each list, weighed by the softmax of LeakyReLU of their keys'
// products with the list's query.
func (s moment) attend(module uint64, l Lists, q, k, v *tape.Var, heads int, p float32) *tape.Var {
	own := l.own(s.Count)
	scores := s.t.LeakyReLU(s.t.EdgeDot(q, k, heads, own, 1), attentionSlope)
	alpha := s.t.EdgeSoftmaxOf([]*tape.Var{scores}, make([]kernels.Tensor, 1), []kernels.Adjacency{own})[0]
	if s.key != 0 {
		alpha = s.t.EdgeDropout(alpha, own.Nbr, s.Count.Slice(0, l.Start.Rows), own, sample.Hash(s.key, module), p)
	}
	return s.t.WeightedSum(v, alpha, nil, own)
}

// NewTemporal makes a network with weights drawn from seed. It panics when c is not valid.
func NewTemporal(be kernels.Backend, c TemporalConfig, s TemporalShape, seed uint64) *Temporal {
	m := declareTemporal(c, s)
	m.begin(be, seed)
	m.allocateConstants()
	return m
}

// NewFixedTemporal makes a network to predict with: its parameters have no gradients, and are zero
// until Load or Upload.
func NewFixedTemporal(be kernels.Backend, c TemporalConfig, s TemporalShape) *Temporal {
	m := declareTemporal(c, s)
	m.fix(be)
	m.allocateConstants()
	return m
}

// declareTemporal makes a network whose parameters have no memory yet.
func declareTemporal(c TemporalConfig, s TemporalShape) *Temporal {
	if err := c.Validate(); err != nil {
		panic("model: NewTemporal: " + err.Error())
	}
	m, d := &Temporal{TemporalConfig: c, TemporalShape: s}, &declared{}
	n := c.Kind.stream()
	if !c.Stateless {
		m.update = n.update(m, d)
	}
	columns := m.Node
	if !n.described {
		columns = 0
	}
	m.embed = n.embed(m, d, newFeatures(m, d, columns))
	m.decode.src, m.decode.srcBias = d.linear("edge_predictor.src_fc.", c.Hidden, c.Hidden)
	m.decode.dst, m.decode.dstBias = d.linear("edge_predictor.dst_fc.", c.Hidden, c.Hidden)
	m.decode.out, m.decode.outBias = d.linear("edge_predictor.out_fc.", 1, c.Hidden)
	if s.Pair > 0 {
		a := 1 / math.Sqrt(float64(s.Pair))
		m.decode.pair, m.decode.pairOut = d.uniform("edge_predictor.pair_fc.weight", a, c.Hidden, s.Pair), d.uniform("edge_predictor.pair_out.weight", a, 1, s.Pair)
	}
	m.Params = d.params
	return m
}

// Weights returns the number of elements in the parameters of NewTemporal.
func (c TemporalConfig) Weights(s TemporalShape) int64 {
	var n int64
	for _, p := range declareTemporal(c, s).Params {
		n += int64(p.size())
	}
	return n
}

// Update is the memory of each row, M×D, and stays as it is until the tape's next Reset. Without
// state it is nil. key seeds dropout, a new one each step; 0 is evaluation.
func (m *Temporal) Update(t *tape.Tape, in *Moments, key uint64) *tape.Var {
	if m.update == nil {
		return nil
	}
	return m.update.forward(moment{t, key, in})
}

// Embed is the embedding of each root, R×D. memory and key are Update's.
func (m *Temporal) Embed(t *tape.Tape, in *Moments, memory *tape.Var, key uint64) *tape.Var {
	return m.embed.forward(moment{t, key, in}, memory)
}

// Score is a score for each pair of embeddings, z[src] to z[dst]. src and dst are U32, of as many
// rows.
func (m *Temporal) Score(t *tape.Tape, z *tape.Var, src, dst kernels.Tensor) *tape.Var {
	return m.ScorePast(t, z, src, dst, kernels.Tensor{})
}

// ScorePast is Score for a network with TemporalShape.Pair. past has a row for each pair, F32. The
// hidden layer of the decoder reads it, and so does the score itself, so that a column alone can
// rank pairs.
func (m *Temporal) ScorePast(t *tape.Tape, z *tape.Var, src, dst, past kernels.Tensor) *tape.Var {
	p := &m.decode
	terms := []tape.Term{{X: t.GatherRows(z, src), W: p.src}, {X: t.GatherRows(z, dst), W: p.dst}}
	if p.pair != nil {
		terms = append(terms, tape.Term{X: t.Leaf(past), W: p.pair})
	}
	out := []tape.Term{{X: t.AffineReLU(t.Sum(p.srcBias, p.dstBias), terms...), W: p.out}}
	if p.pair != nil {
		out = append(out, tape.Term{X: t.Leaf(past), W: p.pairOut})
	}
	return t.Affine(p.outBias, out...)
}

// Close frees the parameters.
func (m *Temporal) Close() {
	for _, c := range m.constants {
		m.be.Free(c.Value.Buf)
	}
	m.free()
}

// constant is a row that no gradient flows to.
type constant struct {
	values []float32
	*tape.Var
}

func (m *Temporal) constant(values ...float32) *tape.Var {
	c := &constant{values, &tape.Var{}}
	m.constants = append(m.constants, c)
	return c.Var
}

func (m *Temporal) allocateConstants() {
	for _, c := range m.constants {
		n := len(c.values)
		x := kernels.NewTensor(m.be, kernels.F32, 1, n)
		m.be.UploadF32(x, c.values)
		*c.Var = *tape.NewConstant(x)
	}
}

// linear declares a matrix and its bias, as PyTorch's Linear begins them.
func (d *declared) linear(name string, out, in int) (weight, bias *tape.Var) {
	a := 1 / math.Sqrt(float64(in))
	return d.uniform(name+"weight", a, out, in), d.uniform(name+"bias", a, out)
}

// clock makes times rows: cosines of rates.
type clock struct {
	rates, shifts *tape.Var // rates have T rows where they are learnt
}

// clock declares one, whose parameters' names begin with name.
func (m *Temporal) clock(d *declared, name string) clock {
	n := m.Time
	rate := func(i int) float32 { return float32(math.Pow(10, -9*float64(i)/float64(max(1, n-1)))) }
	if !m.FixedTime {
		rates := d.add(&Param{Name: name + "w.weight", Shape: []int{n, 1}, start: func(_, _, i uint64) float32 { return rate(int(i)) }})
		return clock{rates, d.constant(name+"w.bias", n, 0)}
	}
	rates := make([]float32, n)
	for i := range rates {
		rates[i] = rate(i)
	}
	return clock{m.constant(rates...), m.constant(make([]float32, n)...)}
}

func (c clock) encode(t *tape.Tape, times kernels.Tensor) *tape.Var {
	return t.TimeEncode(times, t.Reshape(c.rates, 1, c.shifts.Value.Cols), c.shifts)
}

// layerNorm declares gain and shift of LayerNorm.
func (d *declared) layerNorm(name string, cols int) (gain, shift *tape.Var) {
	return d.constant(name+"weight", cols, 1), d.constant(name+"bias", cols, 0)
}
