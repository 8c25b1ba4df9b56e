package build

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
)

// happened is an event as the source has it.
type happened struct {
	src, dst int64
	time     float64
	label    int32
	part     ingest.Part
	row      float32 // of its table
}

// streamForm selects the form in which a fake gives events.
type streamForm struct {
	kind                   ingest.IDs
	two, labels, part, row bool
}

// streamSource is a source of events.
func streamSource(events []happened, form streamForm) *fake {
	r := ingest.Relation{Src: "user", Name: "talks", Dst: "user", Edges: -1, Columns: []ingest.EdgeColumn{{Name: "time", Elem: store.F64}}, Parted: form.part, Stream: &ingest.Stream{Time: "time"}}
	f := &fake{
		schema: ingest.Schema{Name: "events", Identity: "events 1", Featureless: true, NodeTypes: []ingest.NodeType{{Name: "user", IDs: form.kind, Gathered: form.kind != ingest.RowIDs}}},
		edges:  map[int][][2]int64{}, values: map[int][][]uint64{0: {nil}}, parts: map[int][]ingest.Part{}, rows: map[int][]float32{},
		text: func(id int64) string { return fmt.Sprintf("u%d", id) },
	}
	if form.kind == ingest.RowIDs {
		f.schema.NodeTypes[0].Count = 12
	}
	if form.two {
		item := f.schema.NodeTypes[0]
		item.Name, r.Dst = "item", "item"
		f.schema.NodeTypes = append(f.schema.NodeTypes, item)
	}
	if form.labels {
		r.Columns, r.Stream.Label = append(r.Columns, ingest.EdgeColumn{Name: "label", Elem: store.I32}), "label"
		f.values[0] = append(f.values[0], nil)
	}
	if form.row {
		f.schema.Tables = []ingest.Table{{Name: "feat", Relation: r.Key(), Dim: 1}}
	}
	for _, e := range events {
		f.edges[0] = append(f.edges[0], [2]int64{e.src, e.dst})
		f.values[0][0] = append(f.values[0][0], math.Float64bits(e.time))
		if form.labels {
			f.values[0][1] = append(f.values[0][1], uint64(uint32(e.label)))
		}
		f.parts[0] = append(f.parts[0], e.part)
		f.rows[0] = append(f.rows[0], e.row)
	}
	f.schema.Relations = []ingest.Relation{r}
	return f
}

// requireStream compares a dataset with what the events make in plain maps.
func requireStream(t require.TestingT, path string, events []happened, form streamForm) {
	d, err := store.Open(path)
	require.NoError(t, err)
	defer d.Close()
	problems, err := d.Verify(context.Background(), nil)
	require.NoError(t, err)
	require.Empty(t, problems)
	users := d.IDs(slices.IndexFunc(d.Manifest().NodeTypes, func(n store.NodeType) bool { return n.Name == "user" }))
	others := users
	if form.two {
		others = d.IDs(slices.IndexFunc(d.Manifest().NodeTypes, func(n store.NodeType) bool { return n.Name == "item" }))
	}
	name := func(ids store.IDs, v store.NodeID) string {
		if !ids.HasNames() {
			return fmt.Sprint(ids.Original(v))
		}
		text, err := ids.Name(v)
		require.NoError(t, err)
		return strings.TrimPrefix(text, "u")
	}

	want := slices.Clone(events)
	slices.SortStableFunc(want, func(a, b happened) int { return cmp.Compare(a.time, b.time) })
	e := d.Events(0)
	require.EqualValues(t, len(want), e.Len())
	from, to := e.Ends(0, e.Len())
	type seen struct {
		time  float64
		event uint32
		other string
	}
	lists := [2]map[string][]seen{{}, {}}
	second := 0 // of lists: destinations' own, where they are another type
	if form.two {
		second = 1
	}
	labels, feat := e.Labels(0, e.Len()), (*store.Features)(nil)
	if form.row {
		feat, _ = d.StreamTable("talks", "feat")
		require.Equal(t, len(want), feat.Rows())
	}
	for i, w := range want {
		u, v := fmt.Sprint(w.src), fmt.Sprint(w.dst)
		require.Equal(t, []string{u, v}, []string{name(users, from[i]), name(others, to[i])}, "event %d", i)
		require.Equal(t, w.time, e.Times(0, e.Len())[i])
		if form.labels {
			require.Equal(t, max(w.label, -1), labels[i])
		}
		if form.row {
			require.Equal(t, []float32{w.row}, half(feat.RowAt(uint64(i))))
		}
		lists[0][u] = append(lists[0][u], seen{w.time, uint32(i), v})
		lists[second][v] = append(lists[second][v], seen{w.time, uint32(i), u})
	}
	for k, ids := range []store.IDs{users, others}[:second+1] {
		for v := range []int64{e.Sources, e.Destinations}[k] {
			place, far := int64(v), others
			if k == 1 {
				place, far = e.Place(store.NodeID(v)), users
			}
			var got []seen
			for _, h := range e.Near(place) {
				got = append(got, seen{h.Time, h.Event, name(far, h.Neighbor)})
			}
			require.Equal(t, lists[k][name(ids, store.NodeID(v))], got)
		}
	}
}

// TestStreamIsTheObviousThing: any stream equals the same stream built in plain maps, however
// little room there is.
func TestStreamIsTheObviousThing(t *testing.T) {
	fewer(t, 12)
	dir, n := t.TempDir(), 0
	rapid.Check(t, func(t *rapid.T) {
		form := streamForm{
			kind: rapid.SampledFrom([]ingest.IDs{ingest.RowIDs, ingest.IntIDs, ingest.TextIDs}).Draw(t, "ids"), two: rapid.Bool().Draw(t, "two"),
			labels: rapid.Bool().Draw(t, "labels"), part: rapid.Bool().Draw(t, "part"), row: rapid.Bool().Draw(t, "row"),
		}
		node := rapid.Int64Range(0, 11)
		events := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) happened {
			return happened{
				node.Draw(t, "src"), node.Draw(t, "dst"), rapid.SampledFrom([]float64{-3, 0, math.Copysign(0, -1), 0.1, 1.7e9, 1700000000.25, 5}).Draw(t, "time"),
				rapid.Int32Range(-2, 3).Draw(t, "label"), ingest.Train, float32(rapid.IntRange(0, 99).Draw(t, "row")),
			}
		}), 1, 40).Draw(t, "events")
		if rapid.Bool().Draw(t, "sorted") {
			slices.SortStableFunc(events, func(a, b happened) int { return cmp.Compare(a.time, b.time) })
		}
		for i := range events {
			events[i].part = map[bool]ingest.Part{true: ingest.Valid, false: ingest.Train}[events[i].time > 0]
		}
		o := Options{Order: rapid.SampledFrom([]Order{OrderDegree, OrderOriginal}).Draw(t, "order"), FS: storetest.NoSync}
		if rapid.Bool().Draw(t, "tiny") {
			o.test = tiny
		}
		n++
		path := filepath.Join(dir, fmt.Sprint(n))
		defer os.RemoveAll(path)
		rep, err := Build(context.Background(), streamSource(events, form), path, o)
		require.NoError(t, err)
		requireStream(t, path, events, form)
		if form.part {
			valid := 0
			for _, e := range events {
				valid += int(e.part)
			}
			require.Equal(t, store.StreamSplit{Name: "given", Train: int64(len(events) - valid), Valid: int64(valid)}, rep.Streams[0].Split)
		}
	})
}

// buildStream builds events of one type with row ids.
func buildStream(t *testing.T, events []happened, o Options) (*store.Dataset, *Report) {
	return build(t, streamSource(events, streamForm{}), o)
}

func at(times ...float64) (events []happened) {
	for i, x := range times {
		events = append(events, happened{src: int64(i) % 5, dst: 7, time: x})
	}
	return events
}

// TestStreamSplit: quantiles equal numpy.quantile(times, [0.7, 0.85]), by linear interpolation, and
// equal times stay together.
func TestStreamSplit(t *testing.T) {
	for _, c := range []struct {
		times              []float64
		train, valid, test int64
	}{
		{[]float64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, 7, 1, 2}, // quantiles 6.3 and 7.65
		{[]float64{9, 8, 7, 6, 5, 4, 3, 2, 1, 0}, 7, 1, 2}, // in any order
		{[]float64{0, 0, 0, 0, 0, 0, 0, 0, 0, 9}, 9, 0, 1}, // 0 and 0
		{[]float64{0, 1, 1, 1, 1, 1, 1, 1, 1, 1}, 10, 0, 0},
		{[]float64{5, 5, 5, 5}, 4, 0, 0},
		{[]float64{1.7e9}, 1, 0, 0},
		{[]float64{1, 2}, 1, 0, 1},
		{[]float64{-4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6}, 8, 1, 2}, // 3 exactly, and 4.5
	} {
		_, rep := buildStream(t, at(c.times...), Options{})
		require.Equal(t, store.StreamSplit{Name: "time:0.7/0.15/0.15", Train: c.train, Valid: c.valid, Test: c.test}, rep.Streams[0].Split, "%v", c.times)
	}
	_, rep := buildStream(t, at(0, 1, 2, 3), Options{Split: "time:0.5/0.25/0.25"})
	require.Equal(t, store.StreamSplit{Name: "time:0.5/0.25/0.25", Train: 2, Valid: 1, Test: 1}, rep.Streams[0].Split)
}

// TestSkippedEvents: an event of no node may be passed over, and so is its row of features.
func TestSkippedEvents(t *testing.T) {
	events := []happened{{src: 1, dst: 2, time: 3, row: 7}, {src: 12, dst: 2, time: 1, row: 8}, {src: 3, dst: 3, time: 2, row: 9}, {src: 0, dst: 1, time: 2, row: 4}}
	form := streamForm{row: true}
	for _, o := range []Options{{SkipBad: 1}, {SkipBad: 1, Order: OrderOriginal, test: tiny}} {
		path := filepath.Join(t.TempDir(), "x.gnn")
		rep, err := Build(context.Background(), streamSource(events, form), path, o)
		require.NoError(t, err)
		requireStream(t, path, slices.Delete(slices.Clone(events), 1, 2), form)
		require.EqualValues(t, []int64{3, 1, 1}, []int64{rep.Streams[0].Events, rep.Streams[0].Skipped, rep.Streams[0].SelfLoops})
	}
}

// TestTimeScale: streams in seconds are as they are, and one that is over in a few units gets gaps
// of a thousand.
func TestTimeScale(t *testing.T) {
	for _, c := range []struct {
		times []float64
		given float64
		want  float64
	}{
		{[]float64{0, 1e6}, 0, 1},
		{[]float64{1.7e9, 1.7e9 + 1e4}, 0, 1},
		{[]float64{0, 0, 0.5, 0.75}, 0, 1e3 / 0.5}, // node 7 has gaps 0.5 and 0.25 (0 is none), and no other node a second event; the median is their mean
		{[]float64{2, 2, 2}, 0, 1},
		{[]float64{3}, 0, 1},
		{[]float64{0, 0.5}, 7, 7},
	} {
		_, rep := buildStream(t, at(c.times...), Options{TimeScale: c.given})
		want := c.want
		if len(c.times) == 4 {
			want = 1e3 / 0.375
		}
		require.Equal(t, want, rep.Streams[0].TimeScale, "%v", c.times)
		require.Equal(t, []float64{c.times[0], c.times[len(c.times)-1]}, []float64{rep.Streams[0].First, rep.Streams[0].Last})
	}
}

// TestEventFeatures: made ones go by an event's number in time, and so not by the order in which
// the source has them.
func TestEventFeatures(t *testing.T) {
	d, rep := buildStream(t, at(1, 2, 3), Options{EdgeFeatures: "random:5", Order: OrderOriginal})
	other, _ := buildStream(t, []happened{{1, 7, 2, 0, 0, 0}, {0, 7, 1, 0, 0, 0}, {2, 7, 3, 0, 0, 0}}, Options{EdgeFeatures: "random:5", test: tiny, Order: OrderOriginal})
	require.Equal(t, d.Manifest().Seal, other.Manifest().Seal)
	require.Equal(t, []TableReport{{Name: "feat", Stream: "talks", Dim: 5, DType: F16, Made: true, Tiny: rep.Tables[0].Tiny}}, rep.Tables)
	feat, ok := d.StreamTable("talks", "feat")
	require.True(t, ok)
	require.Equal(t, []int{3, 5}, []int{feat.Rows(), feat.Dim()})
	another, _ := buildStream(t, at(1, 2, 3), Options{EdgeFeatures: "random:5", Order: OrderOriginal, Seed: 2})
	require.NotEqual(t, d.Manifest().Seal, another.Manifest().Seal)
}

func TestStreamsRefuse(t *testing.T) {
	nan := at(1, 2, math.NaN())
	parts := at(3, 1, 2)
	parts[1].part = ingest.Test
	for _, c := range []struct {
		events []happened
		form   streamForm
		o      Options
		want   string
	}{
		{nan, streamForm{}, Options{}, "edge.csv: event 3 (counting from 1): its time is NaN"},
		{at(math.Inf(-1)), streamForm{}, Options{}, "event 1 (counting from 1): its time is -Inf"},
		{nil, streamForm{}, Options{}, "stream talks: there is no event in it"},
		{parts, streamForm{part: true}, Options{}, "event 3 (counting from 1), 2 to 7: it is to train, and one before it in time is to test; a stream is parted by time: choose {split} time:"},
		{at(1), streamForm{}, Options{Split: "given"}, "{split} given: the source has no split"},
		{at(1), streamForm{}, Options{Split: "random:0.6/0.2/0.2"}, "it parts nodes, and the source is a stream of events"},
		{at(1), streamForm{}, Options{Split: "time:0.6/0.2/0.1"}, "three positive shares of the time that sum to 1"},
		{at(1), streamForm{}, Options{Undirected: true}, "{undirected}: it is about edges; the source is a stream"},
		{at(1), streamForm{}, Options{Reverse: true}, "{reverse}: it is about edges"},
		{at(1), streamForm{}, Options{SelfLoops: SelfLoopsDrop}, "{self_loops}: it is about edges"},
		{at(1), streamForm{}, Options{EdgeSplit: []string{"random:0.8/0.1/0.1"}}, "{edge_split}: it is about edges"},
		{at(1), streamForm{}, Options{Order: OrderAccess}, "{order} access: it follows the edges of relations"},
		{at(1), streamForm{}, Options{Features: "fastrp:8"}, "{features} fastrp:8: it is made of the edges of relations"},
		{at(1), streamForm{row: true}, Options{EdgeFeatures: "random:8"}, "{edge_features} random:8: the source has features of its events, feat"},
		{at(1), streamForm{}, Options{EdgeFeatures: "fastrp:8"}, "features of events are made as random:D"},
		{at(1), streamForm{}, Options{TimeScale: -1}, "{time_scale} -1: "},
		{[]happened{{label: 1}, {label: ingest.MaxClasses}}, streamForm{labels: true}, Options{}, "stream talks: edge.csv: event 2 (counting from 1), 0 to 0: label 65536; labels of events are classes"},
		{[]happened{{src: 12}}, streamForm{}, Options{}, "source 12 is not one of the 12 nodes of type user"},
	} {
		dir := t.TempDir()
		_, err := Build(context.Background(), streamSource(c.events, c.form), filepath.Join(dir, "x.gnn"), c.o)
		require.ErrorContains(t, err, c.want)
		require.NotContains(t, err.Error(), "\n", "one line")
		requireEmpty(t, dir)
	}
	for _, o := range []Options{{Split: "time:0.7/0.15/0.15"}, {EdgeFeatures: "random:4"}, {TimeScale: 2}} {
		_, err := Build(context.Background(), small(), filepath.Join(t.TempDir(), "x.gnn"), o)
		require.ErrorContains(t, err, "the source has no")
	}
	many := streamSource(at(1), streamForm{})
	many.firstOff = 0
	state := &streamState{}
	last := math.Inf(-1)
	err := state.checkTimes(&many.schema.Relations[0], &ingest.EdgeChunk{Place: ingest.Place{File: "edge.csv", First: math.MaxUint32}, Src: []int64{1}, Dst: []int64{1}, Values: [][]uint64{{0}}}, &last)
	require.ErrorContains(t, err, "edge.csv: stream talks: 4294967296 events and more; they are numbered in 32 bits, so at most 4294967295")
}

// TestStreamKilled ends a build of a stream anywhere: the next goes on, and makes the same.
func TestStreamKilled(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	var events []happened
	for range 60 {
		events = append(events, happened{rng.Int64N(12), rng.Int64N(12), float64(rng.IntN(20)), rng.Int32N(3), ingest.Train, float32(rng.IntN(9))})
	}
	source := func() *fake {
		return streamSource(events, streamForm{kind: ingest.TextIDs, two: true, labels: true, row: true})
	}
	o := Options{test: tiny}
	o.test.journal, o.test.placed = true, 100 // places of events do not fit
	whole := newDisk(newMem(t), forever)
	o.FS = whole
	want, err := Build(context.Background(), source(), "d/x.gnn", o)
	require.NoError(t, err)
	require.Equal(t, []string{
		"read user__talks__item", "gather ids of user", "gather ids of item", "resolve sources of user__talks__item", "resolve targets of user__talks__item",
		"order nodes", "sort talks", "write talks", "sort features user__talks__item/feat", "write features user__talks__item/feat",
	}, passNames(want)[:10])
	requireOnly(t, whole.mem, "x.gnn")
	all := forever - whole.left.Load()
	resumed := 0
	step := all/25 + 1
	for n := int64(5); n < all; n += step {
		d := newDisk(newMem(t), n)
		o.FS = d
		_, err := Build(context.Background(), source(), "d/x.gnn", o)
		require.ErrorIs(t, err, errPower)
		mem := d.mem
		if n/step%2 == 0 {
			mem = mem.CrashClone(vfs.CrashCloneCfg{})
		}
		require.NoError(t, errors.Join(mem.MkdirAll("d", 0o777), mem.MkdirAll("tmp", 0o777)))
		if _, err := mem.Stat("d/x.gnn"); err == nil {
			continue // sealed, and nobody was told
		}
		o.FS = mem
		got, err := Build(context.Background(), source(), "d/x.gnn", o)
		require.NoError(t, err)
		sameReport(t, want, got)
		require.Equal(t, want.Streams, got.Streams)
		requireOnly(t, mem, "x.gnn")
		if got.Resumed > 0 {
			resumed++
		}
	}
	require.Greater(t, resumed, 5)
}

// TestStreamFullDisk fails one operation after another: nothing is left, and it is said in a line.
func TestStreamFullDisk(t *testing.T) {
	failWrites(t, 7, func() ingest.Source { return streamSource(at(3, 1, 2, 2), streamForm{kind: ingest.IntIDs, row: true}) })
}

// failWrites builds again and again, and has the third write find the disk full, then one so many
// further on, until there are no more.
func failWrites(t *testing.T, stride int64, source func() ingest.Source) {
	for n := int64(3); ; n += stride {
		mem := newMem(t)
		var done atomic.Int64 // by several goroutines
		full := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
			switch op.Kind {
			case errorfs.OpCreate, errorfs.OpMkdirAll, errorfs.OpFileWrite, errorfs.OpFileWriteAt, errorfs.OpFileSync, errorfs.OpRename:
				if done.Add(1) == n {
					return &fs.PathError{Op: "write", Path: op.Path, Err: syscall.ENOSPC}
				}
			}
			return nil
		}))
		_, err := Build(context.Background(), source(), "d/x.gnn", Options{FS: full})
		if err == nil {
			require.Greater(t, n, int64(40))
			return
		}
		require.ErrorIs(t, err, syscall.ENOSPC)
		require.NotContains(t, err.Error(), "\n")
		if _, err := mem.Stat("d/x.gnn"); err != nil {
			requireOnly(t, mem)
		}
	}
}
