package device_test

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gnnstore/gnnstore/cachetier/device"
)

// plan is what a step was told, and what it does when it runs.
type plan struct {
	Features int
	Uses     map[device.Key]device.Version
	Given    device.Reservation
}

// simulation runs steps a while after they were planned, as a pipeline does, in a region of real bytes, and holds the
// ledger against the reference in each.
type simulation struct {
	t         require.TestingT
	o         device.Options // with every default filled
	ledger    *device.Ledger
	buffer    *device.Buffer
	reference *reference
	plans     map[int]plan
	ran       int // steps below have run
	seed      uint64
}

// The nodes and layers that embeddings are of.
const (
	nodes  = 12
	layers = 3
)

// simulate plans and runs steps, and returns the plans. They depend on o and seed; lag, from which the time of running
// is drawn, must not matter.
func simulate(t require.TestingT, o device.Options, steps int, seed uint64, lag *rand.Rand) []plan {
	s := &simulation{t: t, o: o, plans: map[int]plan{}, ran: o.FirstStep, seed: seed}
	var err error
	s.ledger, err = device.NewLedger(o)
	require.NoError(t, err)
	s.buffer, err = device.NewBuffer(o.Layout)
	require.NoError(t, err)
	defer s.buffer.Close()
	s.o.Staleness = max(o.Staleness, 1)
	if fit := o.Layout.Slots(); o.MaxSlots == 0 || o.MaxSlots > fit {
		s.o.MaxSlots = fit
	}
	if s.o.MaxAge < s.o.Staleness {
		s.o.MaxSlots = 0
	}
	s.reference = newReference(s.o)
	for v := range s.ledger.Features() {
		fillRow(s.buffer.Feature(uint32(v)), v)
	}

	var all []plan
	for i := o.FirstStep; i < o.FirstStep+steps; i++ {
		for s.ran <= i-s.o.Staleness || s.ran < i && lag.IntN(s.o.Staleness+1) == 0 {
			s.run(s.ran)
		}
		s.plan(i)
		all = append(all, s.plans[i])
	}
	for s.ran < o.FirstStep+steps {
		s.run(s.ran)
	}
	return all
}

// rng is the same for a step whenever it is asked.
func (s *simulation) rng(step int, what uint64) *rand.Rand {
	return rand.New(rand.NewPCG(s.seed, uint64(step)<<2|what))
}

func (s *simulation) plan(i int) {
	t, rng := s.t, s.rng(i, 0)
	s.ledger.Begin(i)
	p := plan{Features: s.ledger.Features(), Uses: map[device.Key]device.Version{}}
	require.Equal(t, s.reference.features(i), p.Features)
	heat := rng.IntN(4) // of 4 that could be used, how many are
	for n := range nodes * layers {
		k := device.Key{Node: uint32(n / layers), Layer: uint8(n%layers + 1)}
		want, wantOK := s.reference.find(i, k)
		got, ok := s.ledger.Find(k)
		if got != want || ok != wantOK {
			require.FailNow(t, "Find", "step %d: %v is %v %v, want %v %v", i, k, got, ok, want, wantOK)
		}
		if ok && rng.IntN(4) < heat {
			got, ok = s.ledger.Use(k)
			require.True(t, ok && got == want)
			p.Uses[k] = got
			s.reference.leases[got] = i
		}
	}
	if rng.IntN(20) == 0 {
		limit := rng.IntN(s.o.MaxSlots + 2)
		s.ledger.SetLimit(limit)
		s.reference.limit = min(limit, s.o.MaxSlots)
	}
	n := rng.IntN(nodes*layers - len(p.Uses) + 1)
	if rng.IntN(2) == 0 {
		n = min(n, 2)
	}
	before := s.reference.rows[i-1]
	p.Given = s.ledger.Reserve(nil, n)
	if diff := cmp.Diff(s.reference.reserve(i, n), p.Given.Slots); diff != "" {
		require.FailNow(t, "Reserve", "step %d: slots (-want +got):\n%s", i, diff)
	}
	after := s.reference.rows[i]
	require.Equal(t, device.Span{Lo: after, Hi: max(after, before)}, widen(p.Given.Displaced, after), "step %d", i)
	require.Equal(t, device.Span{Lo: before, Hi: max(after, before)}, widen(p.Given.Restored, before), "step %d", i)
	if l := s.o.Layout; after > 0 {
		require.LessOrEqual(t, l.SlotOffset(uint32(s.reference.top())), l.FeatureOffset(uint32(after-1)))
	}
	require.Equal(t, p.Features, s.ledger.Features(), "the plan's, until the next begins")
	s.plans[i] = p
	s.checkReads(i, p) // as early as it can be
	s.checkStats()
}

// widen gives an empty span a place, at which it is empty.
func widen(s device.Span, at int) device.Span {
	if s.Len() == 0 {
		return device.Span{Lo: at, Hi: at}
	}
	return s
}

// run is step j: it reads as late as it can, writes to the region, and writes back.
func (s *simulation) run(j int) {
	p, rng := s.plans[j], s.rng(j, 1)
	s.checkReads(j, p)
	for v := p.Given.Displaced.Lo; v < p.Given.Displaced.Hi; v++ {
		clear(s.buffer.Feature(uint32(v)))
	}
	for v := p.Given.Restored.Lo; v < p.Given.Restored.Hi; v++ {
		fillRow(s.buffer.Feature(uint32(v)), v)
	}
	var computed []device.Key
	for n := range nodes * layers {
		k := device.Key{Node: uint32(n / layers), Layer: uint8(n%layers + 1)}
		if _, used := p.Uses[k]; !used {
			computed = append(computed, k)
		}
	}
	rng.Shuffle(len(computed), func(a, b int) { computed[a], computed[b] = computed[b], computed[a] })
	keys := computed[:len(p.Given.Slots)]
	for n, slot := range p.Given.Slots {
		if rng.IntN(8) == 0 {
			keys[n] = device.Key{}
		}
		fillEmbedding(s.buffer.Slot(slot), keys[n], j)
	}
	var vetoes []device.Version
	for n := range nodes * layers { // in an order that does not change
		k := device.Key{Node: uint32(n / layers), Layer: uint8(n%layers + 1)}
		if v, used := p.Uses[k]; used && rng.IntN(4) == 0 {
			vetoes = append(vetoes, v)
		}
	}
	s.ledger.WriteBack(j, keys, vetoes)
	s.reference.writeBack(j, p.Given.Slots, keys, vetoes)
	s.ran++
}

// checkReads finds in the region every byte that the step may read.
func (s *simulation) checkReads(i int, p plan) {
	want := make([]byte, max(s.o.Layout.RowBytes, s.o.Layout.SlotBytes))
	for v := range p.Features {
		row := want[:s.o.Layout.RowBytes]
		fillRow(row, v)
		if string(row) != string(s.buffer.Feature(uint32(v))) {
			require.FailNow(s.t, "row", "step %d: row %d of %d is not there", i, v, p.Features)
		}
	}
	for k, v := range p.Uses {
		embedding := want[:s.o.Layout.SlotBytes]
		fillEmbedding(embedding, k, int(v.Stamp))
		if string(embedding) != string(s.buffer.Slot(v.Slot)) {
			require.FailNow(s.t, "embedding", "step %d: %v of step %d is not in slot %d", i, k, v.Stamp, v.Slot)
		}
	}
}

func (s *simulation) checkStats() {
	st := s.ledger.Stats()
	require.Equal(s.t, st.Admitted, int64(st.Live)+st.Superseded+st.Vetoed+st.Expired)
	require.Equal(s.t, len(s.reference.inRing), st.Slots)
	require.LessOrEqual(s.t, st.Admitted+st.Holes, st.Reserved)
}

func fillRow(b []byte, v int) { fillFrom(b, uint64(v)+1<<40) }

func fillEmbedding(b []byte, k device.Key, step int) {
	fillFrom(b, uint64(k.Layer)<<56|uint64(k.Node)<<32|uint64(uint32(step)))
}

// fillFrom writes bytes that are others for another number.
func fillFrom(b []byte, number uint64) {
	for n := range b {
		number = number*0x5851f42d4c957f2d + 0x14057b7ef767814f
		var word [8]byte
		binary.BigEndian.PutUint64(word[:], number)
		b[n] = word[0] | 1 // never a zero, as what is cleared
	}
}

func drawOptions(t *rapid.T) device.Options {
	o := device.Options{
		Layout: device.Layout{
			SlotBytes: rapid.SampledFrom([]int{0, 1, 5, 8, 16, 24, 64}).Draw(t, "slotBytes"),
			RowBytes:  rapid.SampledFrom([]int{0, 1, 3, 8, 16, 40, 64}).Draw(t, "rowBytes"),
			Bytes:     rapid.Int64Range(0, 400).Draw(t, "bytes"),
			Rows:      rapid.IntRange(0, 40).Draw(t, "rows"),
		},
		Staleness: rapid.IntRange(0, 6).Draw(t, "staleness"),
		MaxAge:    rapid.IntRange(0, 12).Draw(t, "maxAge"),
		FirstStep: rapid.SampledFrom([]int{0, 1, 1000, 1<<32 - 400}).Draw(t, "firstStep"),
	}
	if rapid.Bool().Draw(t, "bounded") {
		o.MaxSlots = rapid.IntRange(0, 40).Draw(t, "maxSlots")
	}
	return o
}

// TestLedgerAgainstReference draws regions, and runs steps at random moments: slots, junction, rows and embeddings are
// the reference's, whatever may be read is there whenever it is read, and the moments do not matter.
func TestLedgerAgainstReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o, seed, steps := drawOptions(t), rapid.Uint64().Draw(t, "seed"), rapid.IntRange(1, 80).Draw(t, "steps")
		got := simulate(t, o, steps, seed, rand.New(rand.NewPCG(seed, 1)))
		again := simulate(t, o, steps, seed, rand.New(rand.NewPCG(seed, 2)))
		if diff := cmp.Diff(got, again); diff != "" {
			t.Fatalf("plans depend on when steps run:\n%s", diff)
		}
	})
}

// TestLedgerForLong has the ring go round some hundred times, in regions where something is short.
func TestLedgerForLong(t *testing.T) {
	for _, l := range []device.Layout{
		{Bytes: 256, SlotBytes: 16, RowBytes: 8, Rows: 20},   // what most regions are, small
		{Bytes: 1000, SlotBytes: 24, RowBytes: 40, Rows: 99}, // widths that do not divide
		{Bytes: 64, SlotBytes: 64, RowBytes: 8, Rows: 99},    // one slot, and then no row
		{Bytes: 64, SlotBytes: 8, RowBytes: 64, Rows: 1},     // one row
		{Bytes: 63, SlotBytes: 64, RowBytes: 64, Rows: 9},    // room for nothing
		{Bytes: 0, SlotBytes: 8, RowBytes: 8, Rows: 9},
	} {
		for _, k := range []int{1, 3} {
			o := device.Options{Layout: l, Staleness: k, MaxAge: 7}
			simulate(t, o, 2000, uint64(k), rand.New(rand.NewPCG(1, 2)))
		}
	}
}

func TestLedgerWithoutHistory(t *testing.T) {
	l := device.Layout{Bytes: 100, SlotBytes: 8, RowBytes: 10, Rows: 50}
	for _, o := range []device.Options{
		{Layout: device.Layout{Bytes: 100, RowBytes: 10, Rows: 50}, MaxAge: 5}, // no embeddings
		{Layout: l},                          // no age is young enough
		{Layout: l, Staleness: 5, MaxAge: 4}, // too old before it is seen
	} {
		ledger, err := device.NewLedger(o)
		require.NoError(t, err)
		require.Equal(t, 10, ledger.Features())
		require.Zero(t, ledger.Displaceable().Len())
		for i := range 20 {
			ledger.Begin(i)
			_, ok := ledger.Use(device.Key{Node: 1, Layer: 1})
			require.False(t, ok)
			require.Empty(t, ledger.Reserve(nil, 3).Slots)
			ledger.WriteBack(i, nil, nil)
			require.Equal(t, 10, ledger.Features())
		}
		require.Equal(t, device.Stats{Refused: 60}, ledger.Stats())
	}
}

// TestLedgerShrinksAndRegrows follows the junction there and back, a line a step.
func TestLedgerShrinksAndRegrows(t *testing.T) {
	l, err := device.NewLedger(device.Options{
		Layout:    device.Layout{Bytes: 80, SlotBytes: 20, RowBytes: 10, Rows: 50},
		Staleness: 2, MaxAge: 3, MaxSlots: 3,
	})
	require.NoError(t, err)
	require.Equal(t, device.Span{Lo: 2, Hi: 8}, l.Displaceable())
	none := device.Span{}
	for i, step := range []struct {
		features, limit, n  int
		slots               []uint32
		displaced, restored device.Span
	}{
		0: {8, 9, 2, []uint32{0, 1}, device.Span{Lo: 4, Hi: 8}, none},
		1: {4, 9, 5, []uint32{2}, device.Span{Lo: 2, Hi: 4}, none}, // MaxSlots
		2: {2, 9, 1, nil, none, none},                              // all young, none old
		3: {2, 9, 1, []uint32{0}, none, none},                      // slots 0 and 1 have the age
		4: {2, 1, 1, nil, none, device.Span{Lo: 2, Hi: 6}},         // 1 was free, 2 has the age now, 0 stays
		5: {2, 1, 0, nil, none, none},                              // what came back with 4 is seen from 6 on
		6: {6, 0, 0, nil, none, device.Span{Lo: 6, Hi: 8}},         // and 0 has the age
		7: {6, 2, 1, []uint32{0}, device.Span{Lo: 6, Hi: 8}, none}, // gone again before it was seen
		8: {6, 2, 1, []uint32{1}, device.Span{Lo: 4, Hi: 6}, none},
		9: {4, 2, 0, nil, none, none},
	} {
		l.Begin(i)
		require.Equal(t, step.features, l.Features(), "step %d", i)
		l.SetLimit(step.limit)
		r := l.Reserve(nil, step.n)
		require.Equal(t, step.slots, r.Slots, "step %d", i)
		require.Equal(t, step.displaced.Len(), r.Displaced.Len(), "step %d: %v", i, r.Displaced)
		require.Equal(t, step.restored.Len(), r.Restored.Len(), "step %d: %v", i, r.Restored)
		if r.Displaced.Len() > 0 {
			require.Equal(t, step.displaced, r.Displaced, "step %d", i)
		}
		if r.Restored.Len() > 0 {
			require.Equal(t, step.restored, r.Restored, "step %d", i)
		}
		keys := make([]device.Key, len(r.Slots))
		for n := range keys {
			keys[n] = device.Key{Node: uint32(10*i + n), Layer: 1}
		}
		l.WriteBack(i, keys, nil)
	}
}

// TestLedgerVetoIsLate has step 2 evict a row that step 3 was planned to use when that was not known: its slot, the
// only one there is, stays for step 3 and is step 4's. A second veto of the row finds the younger one that step 4
// wrote, and passes.
func TestLedgerVetoIsLate(t *testing.T) {
	l, err := device.NewLedger(device.Options{Layout: device.Layout{Bytes: 8, SlotBytes: 8}, Staleness: 2, MaxAge: 100})
	require.NoError(t, err)
	key := device.Key{Node: 7, Layer: 2}
	first, second := device.Version{Slot: 0, Stamp: 0}, device.Version{Slot: 0, Stamp: 4}
	for i, step := range []struct {
		uses   []device.Version
		slots  int
		vetoes []device.Version
	}{
		0: {slots: 1},
		1: {}, // step 0 is not seen
		2: {uses: []device.Version{first}, vetoes: []device.Version{first}},
		3: {uses: []device.Version{first}}, // step 2 is not seen
		4: {slots: 1},
		5: {},
		6: {uses: []device.Version{second}, vetoes: []device.Version{first}},
		7: {uses: []device.Version{second}},
		8: {uses: []device.Version{second}},
	} {
		l.Begin(i)
		var uses []device.Version
		if v, ok := l.Use(key); ok {
			uses = append(uses, v)
		}
		require.Equal(t, step.uses, uses, "step %d", i)
		r := l.Reserve(nil, 1)
		require.Len(t, r.Slots, step.slots, "step %d", i)
		l.WriteBack(i, []device.Key{key}[:step.slots], step.vetoes)
	}
	require.Equal(t, device.Stats{
		Used: 5, Ages: 2 + 3 + 2 + 3 + 4, Reserved: 2, Refused: 7, Admitted: 2, Vetoed: 1, Live: 1, Slots: 1,
	}, l.Stats())
}

// TestLedgerRefusesDisorder calls what must not be called then, after a step 0 that has a slot and waits to be written
// back.
func TestLedgerRefusesDisorder(t *testing.T) {
	keys := []device.Key{{Node: 1, Layer: 1}}
	o := device.Options{Layout: device.Layout{Bytes: 64, SlotBytes: 8}, Staleness: 2, MaxAge: 5}
	for name, call := range map[string]func(l *device.Ledger){
		"a step again":           func(l *device.Ledger) { l.Begin(0) },
		"a step left out":        func(l *device.Ledger) { l.Begin(2) },
		"two steps at once":      func(l *device.Ledger) { l.Begin(1); l.Begin(2) },
		"blind":                  func(l *device.Ledger) { l.Begin(1); l.Reserve(nil, 0); l.Begin(2) },
		"look-up without a step": func(l *device.Ledger) { l.Use(keys[0]) },
		"look-up of features":    func(l *device.Ledger) { l.Begin(1); l.Find(device.Key{Node: 1}) },
		"slots without a step":   func(l *device.Ledger) { l.Reserve(nil, 1) },
		"slots below none":       func(l *device.Ledger) { l.Begin(1); l.Reserve(nil, -1) },
		"a limit below none":     func(l *device.Ledger) { l.SetLimit(-1) },
		"written twice":          func(l *device.Ledger) { l.WriteBack(0, keys, nil); l.WriteBack(0, keys, nil) },
		"written before planned": func(l *device.Ledger) { l.WriteBack(0, keys, nil); l.WriteBack(1, nil, nil) },
		"written before reserved": func(l *device.Ledger) {
			l.WriteBack(0, keys, nil)
			l.Begin(1)
			l.WriteBack(1, nil, nil)
		},
		"too few keys":              func(l *device.Ledger) { l.WriteBack(0, nil, nil) },
		"too many keys":             func(l *device.Ledger) { l.WriteBack(0, append(keys, keys...), nil) },
		"veto of an unseen row":     func(l *device.Ledger) { l.WriteBack(0, keys, []device.Version{{}}) },
		"veto of a slot too far":    func(l *device.Ledger) { l.WriteBack(0, keys, []device.Version{{Slot: 9}}) },
		"more vetoes than vetoable": func(l *device.Ledger) { l.WriteBack(0, keys, make([]device.Version, 100)) },
	} {
		l, err := device.NewLedger(o)
		require.NoError(t, err)
		l.Begin(0)
		require.Len(t, l.Reserve(nil, 1).Slots, 1)
		require.Panics(t, func() { call(l) }, name)
	}
	l, err := device.NewLedger(device.Options{Layout: device.Layout{Bytes: 64}, FirstStep: 1<<32 - 2})
	require.NoError(t, err)
	l.Begin(1<<32 - 2)
	l.Reserve(nil, 0)
	l.WriteBack(1<<32-2, nil, nil)
	require.Panics(t, func() { l.Begin(1<<32 - 1) })
}

func TestValidateNamesEveryProblem(t *testing.T) {
	_, err := device.NewLedger(device.Options{
		Layout:    device.Layout{Bytes: -1, SlotBytes: -2, RowBytes: -3, Rows: 1 << 33},
		Staleness: -4, MaxAge: -5, MaxSlots: -6, FirstStep: 1 << 32,
	})
	for _, want := range []string{
		"-1 bytes", "-2 bytes", "-3 bytes", "8589934592 rows", "staleness of -4", "age of -5", "slots of -6",
		"first step 4294967296",
	} {
		require.ErrorContains(t, err, want)
	}
	_, err = device.NewBuffer(device.Layout{Bytes: -1})
	require.ErrorContains(t, err, "device: a region of -1 bytes: use 0 for none")
	_, err = device.NewBuffer(device.Layout{Bytes: 1 << 62})
	require.ErrorContains(t, err, "no memory for a buffer")
}
