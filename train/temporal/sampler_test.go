package temporal

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
)

// sixEvents are of users 0 and 1, and items at the places 2 and 3.
var sixEvents = storetest.StreamSpec{
	Users: 2, Items: 2, TimeScale: 1,
	Src: []uint32{0, 1, 0, 1, 0, 1}, Dst: []uint32{0, 1, 1, 0, 0, 0}, Times: []float64{1, 2, 3, 4, 5, 6},
}

// near writes a root's neighbours as "node(event)", the newest first.
func near(b *Batch, root uint32) string {
	var all []string
	for j := b.NearStart[root]; j < b.NearEnd[root]; j++ {
		all = append(all, fmt.Sprintf("%d(e%d)", b.Nodes[b.RowNode[b.NearRow[j]]], b.Events[b.NearEvent[j]]))
	}
	return strings.Join(all, " ")
}

func TestSixEvents(t *testing.T) {
	s := newSampler(t, open(t, sixEvents), SamplerOptions{Fanout: 2})
	n := Negatives{Population: []uint32{3}, Each: 1}
	got := drawAll(t, s, steps(0, 6, 2, n, func(int) bool { return false }), 3)
	for _, c := range []struct {
		step           int
		root, src, dst string // of the batch's first event or second
	}{
		{0, "e0", "", ""},
		{0, "e1", "", ""},
		{1, "e2", "2(e0)", "1(e1)"},
		{1, "e3", "3(e1)", "0(e0)"},
		{2, "e4", "3(e2) 2(e0)", "1(e3) 0(e0)"},
		{2, "e5", "2(e3) 3(e1)", "0(e4) 1(e3)"},
	} {
		b, k := &got[c.step], int(c.root[1]-'0')-2*c.step
		require.Equal(t, c.src, near(b, b.Src[k]), "source of %s", c.root)
		require.Equal(t, c.dst, near(b, b.Dst[k]), "destination of %s", c.root)
	}
	require.Equal(t, "0(e2) 1(e1)", near(&got[2], got[2].Negatives[0]), "3@5")
	require.Equal(t, got[1].Dst[0], got[1].Negatives[0], "3@3 is a destination and a negative, and one root")
	st := s.Stats().Near
	require.Equal(t, []int64{12, 8, 19 * store.HalfEdgeBytes}, []int64{st.Rows, st.RowsRepeated, st.BytesWanted})
	require.Equal(t, []float64{4, 2, 1}, []float64{got[2].RowTime[0], got[2].Since[0], got[2].RowTime[1] - 1}, "times are since the first")

	written := func(b *Batch) (all []string) {
		for _, w := range b.Writes {
			all = append(all, fmt.Sprintf("%d and %d at %v, e%d", b.Nodes[w.Node], b.Nodes[b.RowNode[w.Other]], b.RowTime[w.Row], b.Events[w.Event]))
		}
		return all
	}
	require.Equal(t, []string{"0 and 2 at 0, e0", "2 and 0 at 0, e0", "1 and 3 at 1, e1", "3 and 1 at 1, e1"}, written(&got[0]))
	require.Equal(t, []string{"0 and 2 at 4, e4", "1 and 2 at 5, e5", "2 and 1 at 5, e5"}, written(&got[2]))

	s = newSampler(t, open(t, storetest.StreamSpec{Users: 3, Src: []uint32{2, 0, 1}, Dst: []uint32{0, 1, 1}, Times: []float64{1, 2, 2}}), SamplerOptions{})
	got = drawAll(t, s, []Step{{From: 0, To: 3, StateOnly: true}}, 1)
	require.Equal(t, []string{"2 and 0 at 0, e0", "0 and 1 at 1, e1", "1 and 1 at 1, e2"}, written(&got[0]))
}

// TestTiesDoNotSeeEachOther: the neighbours of a node at a time are the same in all events of that
// time, in one batch or in many.
func TestTiesDoNotSeeEachOther(t *testing.T) {
	spec := storetest.StreamSpec{Users: 2, Items: 3, Src: make([]uint32, 30), Dst: make([]uint32, 30), Times: make([]float64, 30)}
	for i := range spec.Src {
		spec.Dst[i], spec.Times[i] = uint32(i%3), math.Copysign(0, float64(i%2)-1) // zeros of both signs
		if i < 4 {
			spec.Times[i] = -2
		}
	}
	s := newSampler(t, open(t, spec), SamplerOptions{Fanout: 9})
	for _, b := range drawAll(t, s, steps(0, 30, 7, Negatives{}, func(int) bool { return false }), 2) {
		for i := range b.Src {
			if event := b.From + int64(i); event < 4 {
				require.Empty(t, near(&b, b.Src[i]))
			} else {
				require.Equal(t, "2(e3) 4(e2) 3(e1) 2(e0)", near(&b, b.Src[i]))
				require.Equal(t, b.Src[len(b.Src)-1], b.Src[i], "one root")
			}
		}
	}
}

// TestNoFuture: what comes after an event, or stands beside it at one time, changes nothing of its
// roots.
func TestNoFuture(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 20 {
		a := randomStream(rng, 80, 9, rng.IntN(2)*6)
		b := a
		cut := 1 + rng.IntN(79)
		for cut < 80 && a.Times[cut] == a.Times[cut-1] { // what is after a time
			cut++
		}
		b.Src, b.Dst = slices.Clone(a.Src), slices.Clone(a.Dst)
		for i := cut; i < 80; i++ {
			b.Src[i], b.Dst[i] = b.Src[(i*7)%80], b.Dst[(i*5)%80]
		}
		n := Negatives{Population: []uint32{0, 1, 2, 3}, Each: 2, Key: rng.Uint64()}
		o := SamplerOptions{Fanout: 4, Uniform: rng.IntN(2) == 0}
		all := steps(0, int64(cut), 1+rng.IntN(30), n, func(int) bool { return false })
		ea, eb := open(t, a), open(t, b)
		require.Equal(t, drawAll(t, newSampler(t, ea, o), all, 3), drawAll(t, newSampler(t, eb, o), all, 5))
	}
}

// TestEngines: all ways to read lend the same lists, and count what they read; cursors are made
// anew wherever Seek goes.
func TestEngines(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	spec := randomStream(rng, 5000, 40, 300)
	e := open(t, spec)
	n := Negatives{Population: AllNodes(e), Each: 1, Key: 3}
	all := steps(0, 5000, 100, n, func(i int) bool { return i%5 == 4 })
	for _, uniform := range []bool{false, true} {
		o := SamplerOptions{Fanout: 6, Uniform: uniform, Workers: 2}
		want := drawAll(t, newSampler(t, e, o), all, 1)
		var wanted int64
		for _, kind := range disk.Kinds {
			o.Disk.Kind = kind
			s := newSampler(t, e, o)
			require.Equal(t, want, drawAll(t, s, all, 8), kind)
			st := s.Stats()
			require.EqualValues(t, 5000, st.Events)
			var roots, neighbors int64
			for _, b := range want {
				roots, neighbors = roots+int64(len(b.Roots)), neighbors+int64(len(b.NearRow))
			}
			require.Equal(t, []int64{roots, neighbors}, []int64{st.Roots, st.Neighbors})
			require.Positive(t, st.Near.Reads)
			require.GreaterOrEqual(t, st.Near.BytesWanted, neighbors*store.HalfEdgeBytes)
			if wanted == 0 {
				wanted = st.Near.BytesWanted
			}
			require.Equal(t, wanted, st.Near.BytesWanted)
			for range 5 {
				i := rng.IntN(len(all))
				require.NoError(t, s.Seek(t.Context(), all[i].From))
				require.Equal(t, want[i:min(i+3, len(all))], drawAll(t, s, all[i:min(i+3, len(all))], 2))
			}
			require.Positive(t, s.Bytes())
		}
	}
}

// TestLongLists: a piece of a list that is longer than a read comes whole.
func TestLongLists(t *testing.T) {
	const events = mostNear + 1000
	spec := storetest.StreamSpec{Users: 3, Items: 1, Src: make([]uint32, events), Dst: make([]uint32, events), Times: make([]float64, events)}
	for i := range spec.Times {
		spec.Src[i], spec.Times[i] = uint32(i%3), float64(i)
	}
	s := newSampler(t, open(t, spec), SamplerOptions{Fanout: 2 * mostNear, Disk: disk.Options{Kind: disk.Pread}})
	require.NoError(t, s.Seek(t.Context(), events-2))
	b := drawAll(t, s, []Step{{From: events - 2, To: events}}, 1)[0]
	require.Equal(t, []uint32{(events - 2 + 2) / 3, events - 2}, []uint32{b.NearEnd[0] - b.NearStart[0], b.NearEnd[1] - b.NearStart[1]})
	for j := b.NearStart[1]; j < b.NearEnd[1]; j++ {
		require.Equal(t, float64(j-b.NearStart[1])+1, b.Since[j])
	}
}

// TestDamage: what a faulty program could have sealed, and what befalls a file while it is in use,
// is an error that names the place.
func TestDamage(t *testing.T) {
	le := binary.LittleEndian
	float := func(x float64) []byte { return le.AppendUint64(nil, math.Float64bits(x)) }
	draw := func(dir string, before func()) error {
		d, err := store.Open(dir)
		if err != nil {
			return err
		}
		defer d.Close()
		s, err := NewSampler(t.Context(), d.Events(0), SamplerOptions{Fanout: 3})
		if err != nil {
			return err
		}
		defer s.Close()
		before()
		return s.Draw(t.Context(), []Step{{From: 0, To: 2}, {From: 2, To: 6}}, []*Batch{{}, {}})
	}
	for _, c := range []struct {
		file string
		at   int64
		b    []byte
		want string
	}{
		{"near.u64", 12, []byte{2}, "half-edge 0 is of event 0, at 1, with node 2; it is among those before event 2, at 3, and there are 2 sources and 2 destinations"},
		{"near.u64", 6*16 + 12, []byte{2}, "half-edge 6 is of event 0, at 1, with node 2"},
		{"near.u64", 8, []byte{255, 255, 255, 255}, "half-edge 0 is of event 4294967295"},
		{"near.u64", 8, []byte{2}, "half-edge 0 is of event 2"},
		{"near.u64", 0, float(3), "half-edge 0 is of event 0, at 3"},
		{"near.u64", 0, float(math.NaN()), "half-edge 0 is of event 0, at NaN"},
		{"near.u64", 0, float(math.Inf(-1)), "half-edge 0 is of event 0, at -Inf"},
		{"offsets.u64", 8, []byte{13}, "the node at place 0 has half-edges 0 to 13 of 12"},
		{"offsets.u64", 8, []byte{0}, "the node at place 0 has 0 half-edges, and is the end of 1 events"},
		{"time.f64", 16, float(0.5), "event 2 has the time 0.5, and one before it 1"},
		{"time.f64", 24, float(math.NaN()), "event 3 has the time NaN, and one before it 3"},
		{"time.f64", 40, float(math.Inf(1)), "event 5 has the time +Inf; times are finite"},
		{"src.u32", 8, []byte{2}, "event 2 is of node 2 of 2"},
		{"dst.u32", 0, []byte{9}, "event 0 is of node 9 of 2"},
	} {
		dir := storetest.BuildStream(t, sixEvents)
		storetest.Forge(t, dir, "stream/events/"+c.file, store.PageSize+c.at, c.b)
		err := draw(dir, func() {})
		require.ErrorContains(t, err, c.want, "%s at %d", c.file, c.at)
		require.ErrorIs(t, err, store.ErrCorrupt)
	}

	dir := storetest.BuildStream(t, sixEvents)
	file := filepath.Join(dir, "stream", "events", "near.u64")
	flip := func() {
		b, err := os.ReadFile(file)
		require.NoError(t, err)
		b[store.PageSize+3] ^= 4
		require.NoError(t, os.WriteFile(file, b, 0o600))
	}
	var section *store.SectionError
	require.ErrorAs(t, draw(dir, flip), &section, "a bit")
	require.Equal(t, "stream/events/near.u64", section.Section)
	dir = storetest.BuildStream(t, sixEvents)
	cut := func() {
		require.NoError(t, os.Truncate(filepath.Join(dir, "stream", "events", "near.u64"), store.PageSize))
	}
	require.ErrorAs(t, draw(dir, cut), &section, "a cut")
	require.Equal(t, "stream/events/near.u64", section.Section)
}

// TestAfterErrors: a Draw that fails wants a Seek.
func TestAfterErrors(t *testing.T) {
	e := open(t, sixEvents)
	s := newSampler(t, e, SamplerOptions{Fanout: 2})
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	all := []Step{{From: 0, To: 6}}
	require.ErrorIs(t, s.Draw(gone, all, []*Batch{{}}), context.Canceled)
	require.PanicsWithValue(t, "temporal: Draw: events 0 to 6 of 6, and -1 is next", func() { _ = s.Draw(t.Context(), all, []*Batch{{}}) })
	require.NoError(t, s.Seek(t.Context(), 0))
	drawAll(t, s, all, 1)
	require.ErrorIs(t, s.Seek(gone, 0), nil, "nothing is to be counted")
	require.NoError(t, s.Seek(t.Context(), 2))
	require.ErrorIs(t, s.Seek(gone, 5), context.Canceled)
	_, err := NewSampler(t.Context(), e, SamplerOptions{Fanout: -1, Workers: -2, Disk: disk.Options{Kind: "x"}})
	require.ErrorContains(t, err, "{fanout} -1: at least 0")
	require.ErrorContains(t, err, "{workers} -2: at least 1, or 0 for the default")
	require.ErrorContains(t, err, `unknown disk engine "x"`)
}

func TestMisuse(t *testing.T) {
	s := newSampler(t, open(t, sixEvents), SamplerOptions{})
	f := func(want string, steps ...Step) {
		t.Helper()
		require.PanicsWithValue(t, "temporal: "+want, func() { _ = s.Draw(t.Context(), steps, make([]*Batch, len(steps))) })
	}
	f("Draw: events 1 to 2 of 6, and 0 is next", Step{From: 1, To: 2})
	f("Draw: events 3 to 4 of 6, and 2 is next", Step{From: 0, To: 2}, Step{From: 3, To: 4})
	f("Draw: events 0 to 7 of 6, and 0 is next", Step{From: 0, To: 7})
	f("Draw: events from 0 on see the state of 1", Step{From: 0, To: 2, Seen: 1})
	f("Draw: 1 negatives each of a population of 0", Step{From: 0, To: 2, Negatives: Negatives{Each: 1}})
	require.PanicsWithValue(t, "temporal: Draw: 0 steps, and 1 batches", func() { _ = s.Draw(t.Context(), nil, []*Batch{{}}) })
	require.PanicsWithValue(t, "temporal: Seek(7), and there are 6 events", func() { _ = s.Seek(t.Context(), 7) })
	require.NoError(t, s.Draw(t.Context(), nil, nil))
	kind, why := s.Engine()
	require.Equal(t, []string{"", "no neighbours are drawn"}, []string{string(kind), why})
}

func TestNoEvents(t *testing.T) {
	e := open(t, storetest.StreamSpec{Users: 3})
	s, b := newSampler(t, e, SamplerOptions{Fanout: 2}), &Batch{Nodes: []uint32{1}}
	require.NoError(t, s.Draw(t.Context(), []Step{{}}, []*Batch{b}))
	require.Equal(t, plain(&Batch{}), plain(b))
	places, err := Destinations(e, 0, 0)
	require.NoError(t, err)
	require.Empty(t, places)
}

// TestTooLongASpan: times whose differences no float64 holds.
func TestTooLongASpan(t *testing.T) {
	e := open(t, storetest.StreamSpec{Users: 1, Src: []uint32{0, 0}, Dst: []uint32{0, 0}, Times: []float64{-math.MaxFloat64, math.MaxFloat64}})
	_, err := NewSampler(t.Context(), e, SamplerOptions{})
	require.ErrorContains(t, err, "times from -1.79769")
}

func TestPopulations(t *testing.T) {
	e := open(t, sixEvents)
	f := func(from, to int64, want ...uint32) {
		t.Helper()
		got, err := Destinations(e, from, to)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	f(0, 6, 2, 3)
	f(1, 3, 3)
	f(3, 6, 2)
	f(4, 4, []uint32{}...)
	require.Equal(t, []uint32{0, 1, 2, 3}, AllNodes(e))

	rng := rand.New(rand.NewPCG(7, 8))
	spec := randomStream(rng, 300, 5000, 0)
	spec.Dst = slices.Clone(spec.Dst)
	want := slices.Compact(slices.Sorted(slices.Values(spec.Dst)))
	got, err := Destinations(open(t, spec), 0, 300)
	require.NoError(t, err)
	require.Equal(t, want, got)
}

// TestNegatives: they are uniform, and do not depend on how events are cut.
func TestNegatives(t *testing.T) {
	n := Negatives{Population: []uint32{3, 5, 6, 9, 10}, Each: 3, Key: 1}
	counts := map[uint32]int{}
	for event := range int64(10_000) {
		for j := range n.Each {
			counts[n.Of(event, j)]++
		}
	}
	require.Len(t, counts, 5)
	for _, c := range counts {
		require.InDelta(t, 6000, c, 350) // 5 standard deviations
	}
}

// TestTable: keys that share a tag are told apart by who asks; a table that grows, and one that
// begins again, knows what it should.
func TestTable(t *testing.T) {
	var x table
	for round := range uint32(4) {
		if round == 2 {
			x.base = math.MaxUint32/2 - 10 // the next begin starts over
		}
		x.begin()
		keys := uint32(300) << (2 * round) // so that it grows where old keys are in it
		for k := range keys {
			number, isNew := x.number(k * 7919 * (round + 1))
			require.True(t, isNew)
			require.Equal(t, k, number)
		}
		for k := range keys {
			number, isNew := x.number(k * 7919 * (round + 1))
			require.False(t, isNew)
			require.Equal(t, k, number)
		}
	}
	x.begin()
	slot := x.start(5)
	for k := range uint32(3) {
		n, at := x.find(5, slot)
		for i := range k { // those before
			require.Equal(t, i, n)
			n, at = x.find(5, at+1)
		}
		require.Equal(t, x.n, n)
		x.put(5, at)
	}
}

// TestRowsOfOneTag: rows that differ in the node or in the time alone are two, though their tags
// agree.
func TestRowsOfOneTag(t *testing.T) {
	s := newSampler(t, open(t, sixEvents), SamplerOptions{})
	m, b := &s.makers[0], &Batch{}
	m.begin()
	tags := map[uint32]float64{}
	for at := 1.0; ; at++ {
		tag := rowTag(1, at)
		if other, ok := tags[tag]; ok {
			a, _ := m.row(b, 1, at)
			c, isNew := m.row(b, 1, other)
			require.True(t, isNew)
			require.Equal(t, []uint32{0, 1}, []uint32{a, c})
			break
		}
		tags[tag] = at
	}
	nodes := map[uint32]uint32{}
	for place := uint32(2); ; place++ {
		tag := rowTag(place, 0.5)
		if other, ok := nodes[tag]; ok {
			a, _ := m.row(b, place, 0.5)
			c, isNew := m.row(b, other, 0.5)
			require.True(t, isNew)
			require.Equal(t, []uint32{2, 3}, []uint32{a, c})
			break
		}
		nodes[tag] = place
	}
}

func TestBatchBytes(t *testing.T) {
	e := open(t, randomStream(rand.New(rand.NewPCG(9, 9)), 400, 10, 9))
	s, b := newSampler(t, e, SamplerOptions{Fanout: 5}), &Batch{}
	require.NoError(t, s.Draw(t.Context(), []Step{{From: 0, To: 400}}, []*Batch{b}))
	bytes := b.Bytes()
	require.GreaterOrEqual(t, bytes, int64(4*len(b.NearRow)*3+8*len(b.RowTime)))
	require.NoError(t, s.Seek(t.Context(), 0))
	require.NoError(t, s.Draw(t.Context(), []Step{{From: 0, To: 400}}, []*Batch{b}))
	require.Equal(t, bytes, b.Bytes(), "its memory is used again")
	b.Reset()
	require.Equal(t, plain(&Batch{}), plain(b))
	require.Equal(t, bytes, b.Bytes())
}
