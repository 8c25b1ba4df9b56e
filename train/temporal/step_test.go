package temporal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/optim"
	"github.com/gnnstore/gnnstore/train/step"
)

// stepNetworks has one of every kind, with and without features.
var stepNetworks = []struct {
	model.TemporalConfig
	model.TemporalShape
	sends bool
}{
	{model.TemporalConfig{Kind: model.TGN, Hidden: 4, Time: 4, Heads: 2, Mails: 1, Dropout: 0.2, AttnDropout: 0.1}, model.TemporalShape{Event: 3}, false},
	{model.TemporalConfig{Kind: model.TGN, Hidden: 5, Time: 3, Heads: 1, Mails: 1, FixedTime: true}, model.TemporalShape{Node: 2}, false},
	{model.TemporalConfig{Kind: model.TGN, Hidden: 4, Time: 4, Heads: 2, Mails: 1, Stateless: true}, model.TemporalShape{Event: 3}, false},
	{model.TemporalConfig{Kind: model.TGN, Hidden: 4, Time: 4, Heads: 2, Mails: 1, Stateless: true, Dropout: 0.2}, model.TemporalShape{Node: 4}, false},
	{model.TemporalConfig{Kind: model.JODIE, Hidden: 4, Time: 4, Mails: 1}, model.TemporalShape{Event: 3}, false},
	{model.TemporalConfig{Kind: model.JODIE, Hidden: 3, Time: 2, Mails: 1, FixedTime: true}, model.TemporalShape{}, false},
	{model.TemporalConfig{Kind: model.APAN, Hidden: 4, Time: 4, Heads: 2, Mails: 3, Dropout: 0.1, AttnDropout: 0.1}, model.TemporalShape{Event: 3}, false},
	{model.TemporalConfig{Kind: model.APAN, Hidden: 4, Time: 2, Heads: 1, Mails: 2, FixedTime: true}, model.TemporalShape{}, true},
	{model.TemporalConfig{Kind: model.APAN, Hidden: 4, Time: 2, Heads: 2, Mails: 4}, model.TemporalShape{Event: 2}, true},
	{model.TemporalConfig{Kind: model.APAN, Hidden: 4, Time: 2, Heads: 2, Mails: 1}, model.TemporalShape{Event: 2}, true},
	{model.TemporalConfig{Kind: model.TGN, Hidden: 4, Time: 4, Heads: 2, Mails: 1, Dropout: 0.2}, model.TemporalShape{Event: 3, Node: 4}, false},
	{model.TemporalConfig{Kind: model.JODIE, Hidden: 4, Time: 4, Mails: 1}, model.TemporalShape{Node: 3}, false},
}

// far is a backend whose memory the host cannot address.
type far struct{ kernels.Backend }

func (far) Host(kernels.Tensor) ([]byte, bool) { return nil, false }

// stepTable keeps records by node, and the changes of the last lag-1 steps apart.
type stepTable struct {
	record  Record
	lag     int
	rows    map[uint32][]byte
	pending []func()
}

// fetch is the records of nodes as the next step sees them.
func (s *stepTable) fetch(be kernels.Backend, nodes []uint32) kernels.Tensor {
	for len(s.pending) >= s.lag {
		s.pending[0]()
		s.pending = s.pending[1:]
	}
	var all []float32
	for _, v := range nodes {
		row := s.rows[v]
		if row == nil {
			row = make([]byte, s.record.Bytes())
		}
		all = append(all, float32s(row)...)
	}
	return floatsOn(be, all, s.record.Cols())
}

func (s *stepTable) write(nodes, places []uint32, changes []byte) {
	changes, n := slices.Clone(changes), s.record.ChangeBytes()
	places = slices.Clone(places)
	s.pending = append(s.pending, func() {
		for i, place := range places {
			v := nodes[place]
			if s.rows[v] == nil {
				s.rows[v] = make([]byte, s.record.Bytes())
			}
			s.record.Apply(s.rows[v], changes[i*n:][:n])
		}
	})
}

func float32s(b []byte) []float32 {
	all := make([]float32, len(b)/4)
	for i := range all {
		all[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return all
}

// featuresOf returns the features of a batch's events, one behind the other.
func featuresOf(events []loopEvent, of []uint32) (all []float32) {
	for _, e := range of {
		all = append(all, events[e].features...)
	}
	return all
}

// featuresOn uploads features in float16 or float32.
func featuresOn(be kernels.Backend, all []float32, cols int, half bool) kernels.Tensor {
	x := floatsOn(be, all, cols)
	if half && cols > 0 {
		bits := make([]uint16, len(all))
		kernels.Float32ToHalf(bits, all)
		x.Type, x.Buf = kernels.F16, be.Alloc(kernels.F16, len(all))
		be.UploadHalf(x, bits)
	}
	return x
}

// TestStepsAgreeWithTheLoop drives a Stepper over streams of all sorts: losses, scores, records and
// weights equal the results of the loop that has its state in maps, bit for bit, at any staleness;
// also where the host cannot address the backend, features are in float16, and state is published
// at once or asked for later.
func TestStepsAgreeWithTheLoop(t *testing.T) {
	for i, n := range stepNetworks {
		for lag := 1; lag <= 3; lag++ {
			t.Run(fmt.Sprintf("%d-%s/lag=%d", i, n.Kind, lag), func(t *testing.T) {
				rng := rand.New(rand.NewPCG(uint64(i), uint64(lag)))
				const nodes = 9
				events := loopStream(rng, 70, nodes, n.Event)
				drawer := &loopDrawer{events: events, fanout: 2, each: 1 + rng.IntN(3), nodes: nodes, sends: n.sends, rng: rng}
				if n.Kind == model.JODIE {
					drawer.fanout = 0
				}
				var be kernels.Backend = kernels.NewCPU(kernels.CPUOptions{Threads: 2})
				want := newLoop(be, model.NewTemporal(be, n.TemporalConfig, n.TemporalShape, 3), events, lag)
				if lag == 2 {
					be = far{be}
				}
				s := NewStepper(be, model.NewTemporal(be, n.TemporalConfig, n.TemporalShape, 3), optim.Options{})
				defer s.Close()
				want.keep = []float64{0.5, 1, 0.95}[lag-1]
				s.Keep = want.keep
				table := &stepTable{record: s.Record, lag: lag, rows: map[uint32][]byte{}}
				for from, key := 0, uint64(0); from < len(events); key++ {
					to := min(from+1+rng.IntN(9), len(events))
					b := drawer.draw(from, to, key%5 == 3 && s.Record.Cols() > 0)
					nodeFeatures := make([]float32, len(b.Nodes)*n.Node)
					for i := range nodeFeatures {
						nodeFeatures[i] = float32(rng.IntN(17)-8) / 8 // exact in float16
					}
					in := Input{
						Batch: b, State: table.fetch(be, b.Nodes), Key: key % 4, // each fourth batch is evaluated
						Features:     featuresOn(be, featuresOf(events, b.Events), n.Event, lag == 3),
						NodeFeatures: featuresOn(be, nodeFeatures, n.Node, lag == 3),
					}
					if key%2 == 0 {
						in.Publish = func(places []uint32, changes []byte) error {
							table.write(b.Nodes, places, changes)
							return nil
						}
					}
					got, err := s.Compute(in)
					require.NoError(t, err)
					if places, changes := s.Changes(); in.Publish == nil {
						table.write(b.Nodes, places, changes)
					}
					if in.Key != 0 && len(b.Roots) > 0 {
						require.NoError(t, s.Update(0.01, nil))
					}
					expected := want.step(b, nodeFeatures, in.Key, 0.01)
					if len(b.Roots) > 0 {
						require.Len(t, got.Negatives, drawer.each*(to-from))
						require.Equal(t, expected, got)
					}
					require.Equal(t, want.m.Download(), s.Model.Download())
					if s.Record.Cols() > 0 {
						require.Len(t, table.pending, len(want.pending))
						seen := want.fetch(b)
						table.fetch(be, nil)
						for i, v := range b.Nodes {
							if record := table.rows[v]; record != nil {
								requireRecord(t, seen[i], s.Record, record)
							} else {
								require.Equal(t, want.clone(loopNode{}), seen[i])
							}
						}
					}
					from = to
				}
			})
		}
	}
}

// TestRecord: the fields of a record are apart, and zeros are a node without events.
func TestRecord(t *testing.T) {
	for _, n := range stepNetworks {
		r := RecordOf(n.TemporalConfig, n.TemporalShape)
		if n.Stateless {
			require.Zero(t, r.Cols())
			continue
		}
		mail := n.Mail(n.TemporalShape)
		if n.Kind == model.APAN {
			require.Equal(t, n.Hidden+n.Mails*(mail+2)+3, r.Cols())
		} else {
			require.Equal(t, mail+2, r.Cols())
		}
		record := make([]byte, r.Bytes())
		require.Zero(t, r.Time(record))
		require.Zero(t, r.Slot(record))
		fill := func(b []byte, v byte) {
			for i := range b {
				b[i] = v
			}
		}
		for slot := range n.Mails {
			fill(r.Mail(record, slot), byte(slot+1))
			r.SetMailTime(record, slot, math.Pi*float64(slot+1))
		}
		fill(r.Memory(record), 99)
		r.SetTime(record, 1e9+1/1024.0)
		r.SetSlot(record, n.Mails-1)
		require.Equal(t, 1e9+1/1024.0, r.Time(record))
		require.Equal(t, n.Mails-1, r.Slot(record))
		require.Len(t, r.Memory(record), 4*n.Hidden)
		for slot := range n.Mails {
			own := r.Mail(record, slot)
			require.Len(t, own, 4*mail)
			if n.Kind != model.APAN {
				require.Equal(t, r.Memory(record), own[:4*n.Hidden])
				continue
			}
			require.Equal(t, byte(slot+1), own[0])
			require.Equal(t, byte(slot+1), own[len(own)-1])
			require.Equal(t, math.Pi*float64(slot+1), r.MailTime(record, slot))
		}
	}
}

// toy is a network's place in a test of what is written: memories are exact, s/2 + a quarter of
// each memory in the mail, plus the feature.
func toy(s loopNode) float32 {
	return s.memory[0]/2 + s.mails[0][0]/4 + s.mails[0][1]/4 + s.mails[0][2]
}

// TestWriteBack goes through six events between two users and two items, in steps of two, by hand:
// the last event of a node counts, its mail has the memories of that event, and updates that a step
// does not see are lost.
func TestWriteBack(t *testing.T) {
	events := []loopEvent{
		{0, 2, 1, []float32{1}}, {1, 3, 2, []float32{2}}, {0, 3, 3, []float32{4}},
		{1, 2, 4, []float32{8}}, {0, 2, 5, []float32{16}}, {1, 2, 6, []float32{32}},
	}
	type node struct {
		memory, time float64
		mail         []float32
	}
	for lag, want := range map[int][]node{
		1: {{5.25, 5, []float32{5.25, 9.25, 16}}, {9.75, 6, []float32{9.75, 9.25, 32}}, {9.25, 6, []float32{9.25, 9.75, 32}}, {2, 3, []float32{2, 1, 4}}},
		2: {{1, 5, []float32{1, 1, 16}}, {2, 6, []float32{2, 1, 32}}, {1, 6, []float32{1, 2, 32}}, {0, 3, []float32{0, 0, 4}}},
		3: {{0, 5, []float32{0, 0, 16}}, {0, 6, []float32{0, 0, 32}}, {0, 6, []float32{0, 0, 32}}, {0, 3, []float32{0, 0, 4}}},
	} {
		nodes := writeBack(t, events, 2, lag)
		for v, n := range want {
			require.Equal(t, loopNode{[]float32{float32(n.memory)}, n.time, [][]float32{n.mail}, []float64{n.time}, 0}, nodes[uint32(v)], "lag %d, node %d", lag, v)
		}
	}
	// Node 0 is the destination of the first event and the source of the second.
	nodes := writeBack(t, []loopEvent{{2, 0, 1, []float32{3}}, {0, 1, 2, []float32{5}}}, 2, 1)
	require.Equal(t, 2.0, nodes[0].time)
	require.Equal(t, []float32{0, 0, 5}, nodes[0].mails[0])
	require.Equal(t, 1.0, nodes[2].time)
}

// writeBack is the state of nodes after all events, as the loop and records have it.
func writeBack(t *testing.T, events []loopEvent, size, lag int) map[uint32]loopNode {
	be := kernels.NewCPU(kernels.CPUOptions{})
	c, shape := model.TemporalConfig{Kind: model.JODIE, Hidden: 1, Time: 1, Mails: 1}, model.TemporalShape{Event: 1}
	m := model.NewTemporal(be, c, shape, 1)
	s, l := NewStepper(be, m, optim.Options{}), newLoop(be, m, events, lag)
	defer s.Close()
	table := &stepTable{record: s.Record, lag: lag, rows: map[uint32][]byte{}}
	drawer := &loopDrawer{events: events, nodes: 1, rng: rand.New(rand.NewPCG(1, 1))}
	for from := 0; from < len(events); from += size {
		b := drawer.draw(from, min(from+size, len(events)), false)
		seen := l.fetch(b)
		var memory []float32
		for _, n := range b.RowNode {
			memory = append(memory, toy(seen[n]))
		}
		l.write(b, func(row int) []float32 { return memory[row:][:1] })
		in := Input{Batch: b, State: table.fetch(be, b.Nodes), Features: featuresOn(be, featuresOf(events, b.Events), 1, false)}
		s.feed.take(in)
		s.writer.write(&s.feed, in, floatsOn(be, memory, 1))
		table.write(b.Nodes, s.feed.places, s.writer.changes)
	}
	for _, update := range table.pending {
		update()
	}
	for len(l.pending) > 0 {
		l.apply()
	}
	require.Len(t, table.rows, len(l.nodes))
	for v, n := range l.nodes {
		requireRecord(t, n, s.Record, table.rows[v])
	}
	return l.nodes
}

// stepOn is a Stepper and a batch for it from a random stream.
func stepOn(n int, size int, o optim.Options) (*Stepper, Input) {
	c := stepNetworks[n]
	rng := rand.New(rand.NewPCG(5, 6))
	be := kernels.NewCPU(kernels.CPUOptions{Threads: 1})
	events := loopStream(rng, 3*size, 2*size, c.Event)
	b := (&loopDrawer{events: events, fanout: 3, each: 2, nodes: uint32(2 * size), sends: c.sends, rng: rng}).draw(2*size, 3*size, false)
	s := NewStepper(be, model.NewTemporal(be, c.TemporalConfig, c.TemporalShape, 3), o)
	state := make([]float32, len(b.Nodes)*s.Record.Cols())
	return s, Input{
		Batch: b, State: floatsOn(be, state, s.Record.Cols()), Features: featuresOn(be, featuresOf(events, b.Events), c.Event, true),
		NodeFeatures: floatsOn(be, make([]float32, len(b.Nodes)*c.Node), c.Node), Key: 7,
	}
}

// TestNothingIsLeftOf: steps that fail and rehearsals leave weights and gradients as they were.
func TestNothingIsLeftOf(t *testing.T) {
	s, in := stepOn(0, 20, optim.Options{ClipNorm: 1})
	defer s.Close()
	weights := s.Model.Download()
	unchanged := func() {
		t.Helper()
		require.Equal(t, weights, s.Model.Download())
		for _, p := range s.Model.Params {
			require.Equal(t, make([]float32, p.Grad.Len()), floatsOf(s.feed.be, p.Grad), p.Name)
		}
		require.Zero(t, s.Optim.Steps())
	}
	in.Publish = func([]uint32, []byte) error { return errors.New("the disk is full") }
	require.NoError(t, s.Rehearse(in))
	unchanged()
	_, err := s.Compute(in)
	require.EqualError(t, err, "the disk is full")
	unchanged()

	published := 0
	in.Publish = func(places []uint32, changes []byte) error {
		published = len(places)
		require.Len(t, changes, published*s.Record.ChangeBytes())
		return nil
	}
	bias := s.Model.Params[len(s.Model.Params)-1]
	s.feed.be.Fill(bias.Value, float32(math.Inf(1)))
	weights = s.Model.Download()
	require.NoError(t, s.Launch(in))
	require.NoError(t, s.Update(0.1, nil))
	_, err = s.Wait()
	var loss *step.LossError
	require.ErrorAs(t, err, &loss)
	require.Equal(t, len(in.Writes), published)
	unchanged()

	s.feed.be.Fill(bias.Value, 0)
	weights = s.Model.Download()
	require.NoError(t, s.Launch(in))
	s.feed.be.Fill(bias.Grad, float32(math.NaN()))
	var norm *step.NormError
	require.NoError(t, s.Update(0.1, nil))
	_, err = s.Wait()
	require.ErrorAs(t, err, &norm)
	unchanged()
}

// TestReduce: reduce sees the gradients, in the order of the parameters, before they become
// weights. Its error leaves all as it was.
func TestReduce(t *testing.T) {
	s, in := stepOn(0, 20, optim.Options{})
	defer s.Close()
	before := s.Model.Download()
	_, err := s.Compute(in)
	require.NoError(t, err)
	download := func(x kernels.Tensor) []float32 {
		values := make([]float32, x.Len())
		s.feed.be.DownloadF32(values, x)
		return values
	}
	broken := errors.New("the other worker is gone")
	err = s.Update(0.1, func(grads []kernels.Tensor) error {
		require.Len(t, grads, len(s.Model.Params))
		for i, p := range s.Model.Params {
			require.Equal(t, download(p.Grad), download(grads[i]))
		}
		return broken
	})
	require.ErrorIs(t, err, broken)
	require.Equal(t, before, s.Model.Download())
	require.Zero(t, s.Optim.Steps())
	require.NoError(t, s.Update(0.1, nil))
	require.NotEqual(t, before, s.Model.Download())
}

// TestFixedStepper evaluates with the weights of one that learns.
func TestFixedStepper(t *testing.T) {
	s, in := stepOn(0, 20, optim.Options{})
	defer s.Close()
	in.Key = 0
	want, err := s.Compute(in)
	require.NoError(t, err)
	fixed := NewFixedStepper(s.feed.be, model.NewFixedTemporal(s.feed.be, s.Model.TemporalConfig, s.Model.TemporalShape))
	defer fixed.Close()
	fixed.Model.Upload(s.Model.Download())
	got, err := fixed.Compute(in)
	require.NoError(t, err)
	require.Equal(t, want, got)
	wantPlaces, wantChanges := s.Changes()
	places, changes := fixed.Changes()
	require.Equal(t, wantPlaces, places)
	require.Equal(t, wantChanges, changes)
}

// TestStepsKeepTheirMemory: once buffers are as large as a step, what a step takes of the heap does
// not grow with the batch.
func TestStepsKeepTheirMemory(t *testing.T) {
	for n := range stepNetworks {
		var allocs []float64
		for _, size := range []int{10, 80} {
			s, in := stepOn(n, size, optim.Options{})
			in.Publish = func([]uint32, []byte) error { return nil }
			once := func() {
				_, err := s.Compute(in)
				require.NoError(t, err)
				require.NoError(t, s.Update(1e-3, nil))
			}
			once()
			once()
			bytes := s.Tape.Bytes()
			allocs = append(allocs, testing.AllocsPerRun(3, once))
			require.Equal(t, bytes, s.Tape.Bytes())
			s.Close()
		}
		require.InDelta(t, allocs[0], allocs[1], 50, "%+v", stepNetworks[n]) // of 70 events more, with four roots each
	}
}

// TestBatchWithoutEvents: nothing is scored and nothing written.
func TestBatchWithoutEvents(t *testing.T) {
	for n := range stepNetworks {
		s, in := stepOn(n, 4, optim.Options{})
		in.Batch, in.State.Rows, in.Features.Rows, in.NodeFeatures.Rows = new(Batch), 0, 0, 0
		out, err := s.Compute(in)
		require.NoError(t, err)
		require.Zero(t, out)
		places, _ := s.Changes()
		require.Empty(t, places)
		s.Close()
	}
	s, in := stepOn(0, 4, optim.Options{})
	defer s.Close()
	in.State.Rows--
	require.Panics(t, func() { _, _ = s.Compute(in) })
}
