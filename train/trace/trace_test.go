package trace

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
	"github.com/gnnstore/gnnstore/train/data"
	"github.com/gnnstore/gnnstore/train/sample"
)

// graph is a dataset of so many nodes with lists of up to 30 neighbours, every third a training
// node.
func graph(t *testing.T, nodes int, change func(s *storetest.Spec)) *store.Dataset {
	rng := rand.New(rand.NewPCG(3, uint64(nodes)))
	s := storetest.Spec{Nodes: nodes, Neighbors: make([][]uint32, nodes)}
	for v := range s.Neighbors {
		list := map[uint32]bool{}
		for range rng.IntN(30) {
			list[uint32(min(rng.IntN(nodes), rng.IntN(nodes)))] = true
		}
		for u := range list {
			s.Neighbors[v] = append(s.Neighbors[v], u)
		}
		if v%3 == 0 {
			s.Train = append(s.Train, uint32(v))
		}
	}
	if change != nil {
		change(&s)
	}
	ds, err := store.Open(storetest.Build(t, s))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, ds.Close()) })
	return ds
}

// plainTrace draws the batches of a trace one after another, as training does.
func plainTrace(t *testing.T, ds *store.Dataset, o Options, kind sample.Kind, kappa, steps int) (batches [][]uint32) {
	seeds := ds.Split(0).Train
	sampler := sample.NewSampler(sample.AtHand(ds.Graph(0)), o.config(kind, kappa), 1)
	for epoch := 1; ; epoch++ {
		order := slices.Clone(seeds)
		sample.Shuffle(order, o.Seed, epoch)
		for of := range slices.Chunk(order, o.Batch) {
			if len(batches) == steps {
				return batches
			}
			var b sample.Batch
			require.NoError(t, sampler.SampleOne(context.Background(), &b, sample.Schedule{Seed: o.Seed, Kappa: kappa}.At(len(batches)), of))
			batches = append(batches, b.Inputs()[0])
		}
	}
}

func distinct(batches [][]uint32) float64 {
	rows := map[uint32]bool{}
	for _, b := range batches {
		for _, v := range b {
			rows[v] = true
		}
	}
	return float64(len(rows))
}

// plainOverlap compares each batch with the one before it, unless the two have different random
// numbers.
func plainOverlap(batches [][]uint32, kappa int) (o Overlap) {
	wanted := 0
	for i := 1; i < len(batches); i++ {
		if kappa > 1 && i/kappa != (i-1)/kappa {
			continue
		}
		wanted += len(batches[i])
		for _, v := range batches[i] {
			if slices.Contains(batches[i-1], v) {
				o.Rows++
			}
		}
	}
	o.Share = float64(o.Rows) / float64(wanted)
	return o
}

// plainReport returns the Trace of these batches with caches of these sizes, by sets and plain
// caches.
func plainReport(batches [][]uint32, kappa int, sizes []int) Trace {
	steps, warm := len(batches), 0
	for warm < steps/2 && distinct(batches[:warm]) < float64(slices.Max(sizes)) {
		warm++
	}
	if periods := (steps - warm) / max(kappa, 1); kappa != sample.Forever && periods > 0 {
		warm = steps - periods*kappa
	}
	var measured int64
	least, most := len(batches[0]), 0
	for s, b := range batches {
		least, most = min(least, len(b)), max(most, len(b))
		if s >= warm {
			measured += int64(len(b))
		}
	}
	all := int64(len(slices.Concat(batches...)))
	r := Trace{
		Kappa: kappa, Requests: all, Different: int64(distinct(batches)), Batches: Batches{float64(all) / float64(steps), least, most},
		WarmupSteps: warm, MeasuredSteps: steps - warm, WholePeriods: true, MeasuredRequests: measured,
		FirstRequests: int64(distinct(batches) - distinct(batches[:warm])), Caches: []Cache{},
	}
	for w := 1; w <= steps; w *= 2 {
		var rows []float64
		for at := 0; at+w <= steps; at += w {
			rows = append(rows, distinct(batches[at:at+w]))
		}
		mean := 0.0
		for _, n := range rows {
			mean += n
		}
		mean /= float64(len(rows))
		r.WorkingSet = append(r.WorkingSet, Window{w, len(rows), mean, mean / float64(w)})
	}
	r.Overlap = plainOverlap(batches, kappa)
	for _, p := range Policies {
		for _, size := range sizes {
			misses := map[Policy]func() []int64{
				Static: func() []int64 { return plain(batches, func(v uint32, _ int) bool { return int(v) < size }) },
				LRU:    func() []int64 { return plainLRU(batches, size) },
				Sieve:  func() []int64 { return plainSieve(batches, size) },
				Belady: func() []int64 { return plainBelady(batches, size) },
			}[p]()
			missed := sum(misses[warm:])
			r.Caches = append(r.Caches, Cache{p, int64(size), measured - missed, missed, 1 - float64(missed)/float64(measured)})
		}
	}
	return r
}

// TestReportAgreesWithPlainOne: every number of a trace, from batches drawn one after another, sets
// and plain caches; and the same report whatever the number of workers.
func TestReportAgreesWithPlainOne(t *testing.T) {
	ds := graph(t, 300, nil)
	o := DefaultOptions()
	o.Samplers, o.Kappas, o.Fanouts, o.Batch, o.Steps, o.Growth = []sample.Kind{sample.NS}, []int{1, 6, sample.Forever}, []int{4, 3}, 15, 23, []int{7, 50, 100}
	o.Caches, o.Tmp, o.Seed = []Capacity{{Rows: 60}, {Share: 0.05}, {Rows: 15}}, t.TempDir(), 9
	r, err := Run(context.Background(), ds, o)
	require.NoError(t, err)
	require.Equal(t, []Size{{"60", 60, 0.2}, {"5%", 15, 0.05}, {"15", 15, 0.05}}, r.Caches)
	require.Equal(t, []any{300, 100, 7, 23, "nested"}, []any{r.Nodes, r.Seeds, r.EpochSteps, r.Steps, r.Dependent})
	require.Len(t, r.Traces, 3)
	for i, kappa := range o.Kappas {
		want := plainReport(plainTrace(t, ds, o, sample.NS, kappa, 23), kappa, []int{60, 15, 15})
		want.Sampler = sample.NS
		if kappa == 6 {
			require.Equal(t, 5, want.WarmupSteps, "3 periods end with the trace")
		}
		require.Empty(t, cmp.Diff(want, r.Traces[i]))
	}
	for _, kind := range []sample.Kind{sample.NS, sample.Labor0, sample.LaborStar} {
		drifting := o
		drifting.Smoothed, drifting.Samplers, drifting.Kappas = true, []sample.Kind{kind}, []int{6}
		r, err := Run(context.Background(), ds, drifting)
		require.NoError(t, err)
		require.Equal(t, plainOverlap(plainTrace(t, ds, drifting, kind, 6, 23), 1), r.Traces[0].Overlap, "drifting draws have no groups")
	}
	for _, workers := range []int{1, 3, 40} {
		o.Threads = workers
		again, err := Run(context.Background(), ds, o)
		require.NoError(t, err)
		require.Empty(t, cmp.Diff(r, again))
	}
	left, err := os.ReadDir(o.Tmp)
	require.NoError(t, err)
	require.Empty(t, left)
}

// TestGrowthAgreesWithPlainOne: mean sizes after each hop, and more rows a seed in small batches.
func TestGrowthAgreesWithPlainOne(t *testing.T) {
	ds := graph(t, 600, nil)
	o := DefaultOptions()
	o.Samplers, o.Kappas, o.Fanouts, o.Batch, o.Growth = []sample.Kind{sample.NS}, []int{1}, []int{4, 3}, 100, []int{30, 200}
	r, err := Run(context.Background(), ds, o)
	require.NoError(t, err)
	sampler := sample.NewSampler(sample.AtHand(ds.Graph(0)), sample.Config{Fanouts: o.Fanouts}, 1)
	for i, size := range o.Growth {
		var sums [2]float64
		for trial := range trials {
			of := 200 / size // batches an epoch
			order := slices.Clone(ds.Split(0).Train)
			sample.Shuffle(order, 1, trial/of+1)
			var b sample.Batch
			require.NoError(t, sampler.SampleOne(context.Background(), &b, sample.Alone(1, size, trial), order[trial%of*size:][:size]))
			sums[0] += float64(len(b.Layers[1].Nodes[0].Src))
			sums[1] += float64(len(b.Layers[0].Nodes[0].Src))
		}
		g := r.Growth[i]
		require.Equal(t, []any{sample.NS, size, trials}, []any{g.Sampler, g.Batch, g.Trials})
		for h := range sums {
			require.InEpsilon(t, sums[h]/trials, g.Hops[h].Mean, 1e-12)
			require.Greater(t, g.Hops[h].CI95, 0.0)
		}
	}
	require.Greater(t, r.Growth[0].Hops[1].PerSeed, r.Growth[1].Hops[1].PerSeed)
}

func TestMoments(t *testing.T) {
	mean, deviation := moments([]float64{2, 4, 4, 4, 5, 5, 7, 9})
	require.InDelta(t, 5, mean, 1e-12)
	require.InDelta(t, 2.13809, deviation, 1e-5)
}

// TestWindows: working sets of random batches, as sets.
func TestWindows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes := rapid.IntRange(1, 30).Draw(t, "nodes")
		batches := skewed(t, nodes, 20)
		u, err := newReuse(nodes, len(batches), 0)
		require.NoError(t, err)
		defer u.close()
		for i, b := range batches {
			cut := rapid.IntRange(0, len(b)).Draw(t, "cut")
			u.add(i, b[:cut])
			u.add(i, b[cut:])
		}
		windows := u.windows()
		for k, w := range windows {
			total := 0.0
			for i := range w.Windows {
				total += distinct(batches[i<<k : (i+1)<<k])
			}
			require.Equal(t, []any{1 << k, len(batches) >> k}, []any{w.Batches, w.Windows})
			require.InDelta(t, total/float64(w.Windows), w.Rows, 1e-9)
		}
		require.Greater(t, 2<<(len(windows)-1), len(batches))
	})
}

// TestSeeds: training nodes with a label, and without a split all nodes.
func TestSeeds(t *testing.T) {
	var d drawer
	err := d.open(graph(t, 60, func(s *storetest.Spec) { s.Class = func(v int) int32 { return int32(v%2) - 1 } }), data.Options{}, 1)
	require.NoError(t, err)
	require.NotEmpty(t, d.data.Split)
	require.Equal(t, []uint32{3, 9, 15, 21, 27, 33, 39, 45, 51, 57}, d.data.Train)
}

func TestBadDatasets(t *testing.T) {
	run := func(ds *store.Dataset, change func(o *Options)) error {
		o := DefaultOptions()
		o.Samplers, o.Kappas = []sample.Kind{sample.NS}, []int{1}
		change(&o)
		_, err := Run(context.Background(), ds, o)
		return err
	}
	ds := graph(t, 60, nil)
	require.ErrorContains(t, run(ds, func(o *Options) { o.Split = "nosuch" }), `no split "nosuch"; {split} takes one of: `)
	require.EqualError(t, run(ds, func(o *Options) { o.Caches = []Capacity{{Rows: 61}} }), "{cache} 61: the dataset has 60 rows")
	require.ErrorContains(t, run(ds, func(o *Options) { o.Growth = []int{21} }), "{batches} 21: ")
	require.ErrorContains(t, run(ds, func(o *Options) { o.Tmp = filepath.Join(ds.Path(), "nosuch") }), "give another directory with {tmp}")
	none := graph(t, 60, func(s *storetest.Spec) { s.Class = func(int) int32 { return -1 } })
	require.ErrorContains(t, run(none, func(*Options) {}), "no training node with a label")
	require.NoError(t, run(graph(t, 60, nil), func(*Options) {}), "a graph of fewer seeds than a batch")
	far := graph(t, 60, func(s *storetest.Spec) { s.Neighbors[6] = []store.NodeID{99} })
	require.ErrorContains(t, run(far, func(*Options) {}), "neighbors.u32: node 6 has neighbour 99, and there are 60 nodes")
	_, neighbors := ds.Graph(0).Sections()
	f, err := os.OpenFile(neighbors.Path, os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.WriteAt([]byte{7}, store.PageSize+4)
	require.NoError(t, errors.Join(err, f.Close()))
	err = run(ds, func(*Options) {})
	require.ErrorIs(t, err, store.ErrCorrupt)
	require.ErrorContains(t, err, "neighbors.u32 at 0x1000: the checksum of this page is ")
}

// TestCancel: at each report of progress the run ends, and leaves no file. The last seven are of
// passes, which may all be over.
func TestCancel(t *testing.T) {
	ds := graph(t, 600, nil)
	o := DefaultOptions()
	o.Samplers, o.Kappas, o.Batch, o.Steps, o.Growth, o.Tmp = []sample.Kind{sample.NS}, []int{1}, 20, 20, []int{50}, t.TempDir()
	reports := 0
	o.Progress = func(string, int64, int64, string) { reports++ }
	_, err := Run(context.Background(), ds, o)
	require.NoError(t, err)
	for end := range reports {
		ctx, cancel := context.WithCancel(context.Background())
		at := 0
		o.Progress = func(string, int64, int64, string) {
			if at == end {
				cancel()
			}
			at++
		}
		if _, err := Run(ctx, ds, o); err != nil || end < reports-7 {
			require.ErrorIs(t, err, context.Canceled, "report %d of %d", end, reports)
		}
		cancel()
	}
	left, err := os.ReadDir(o.Tmp)
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestValidate(t *testing.T) {
	for _, c := range []struct {
		change func(o *Options)
		want   string
	}{
		{func(*Options) {}, ""},
		{func(o *Options) { o.Kappas = []int{0, 5, -2} }, "{kappa} 0: at least 1, or inf\n{kappa} -2: at least 1, or inf"},
		{func(o *Options) { o.Kappas = []int{5, 5} }, "{kappa}: 5 is there twice"},
		{func(o *Options) { o.Kappas = nil }, "{kappa}: at least one number, or inf"},
		{func(o *Options) { o.Samplers = []sample.Kind{"full"} }, "{samplers} full: there are ns, labor0, labor-star and rw"},
		{func(o *Options) { o.Samplers = nil }, "{samplers}: at least one of ns, labor0, labor-star and rw"},
		{func(o *Options) { o.Policies = []Policy{"fifo"} }, "{policies} fifo: there are static, lru, sieve and belady"},
		{func(o *Options) { o.Caches = []Capacity{{}, {Share: 1.01}, {Share: -0.5}, {Rows: -3}} },
			"{cache} 0%: above 0 and at most 100%, or a number of rows from 1\n{cache} 101%: above 0 and at most 100%, or a number of rows from 1\n" +
				"{cache} -50%: above 0 and at most 100%, or a number of rows from 1\n{cache} -3: above 0 and at most 100%, or a number of rows from 1"},
		{func(o *Options) { o.Fanouts = []int{0, 3} }, "{fanout} 0: at least 1, or -1 for every neighbour"},
		{func(o *Options) { o.RelationFanouts = map[string][]int{"a": {0, -1}, "b": {3, 4}} }, ""},
		{func(o *Options) { o.RelationFanouts = map[string][]int{"b": {3}, "a": {2, -2}} },
			"{fanout} a -2: at least 0, or -1 for every neighbour\n{fanout} b has 1 numbers and {layers} is 2: one a layer"},
		{func(o *Options) { o.Samplers, o.RelationFanouts = sample.Kinds, map[string][]int{"a": {2, -1}} },
			"{fanout} -1: {sampler} rw needs a number of neighbours, since walks never end by themselves"},
		{func(o *Options) { o.Batch, o.Steps, o.Epochs, o.Threads = 0, -1, -1, 0 },
			"{batch} 0: from 1 to 2147483647\n{steps} -1: from 1 to 2147483647, or 0 for as many as fit the other flags\n" +
				"{epochs} -1: from 1 to 2147483647, or 0 for no bound\n{threads} 0: from 1 to 1024"},
		{func(o *Options) { o.Growth = []int{0} }, "{batches} 0: from 1 to 2147483647"},
		{func(o *Options) { o.Poisson, o.Samplers = true, []sample.Kind{sample.NS} }, "{poisson} goes with labor0 among {samplers}"},
		{func(o *Options) { o.Smoothed, o.Samplers = true, []sample.Kind{sample.NS, sample.RW} },
			"{dependent} smoothed: walks have no numbers that drift; take {dependent} nested, or leave rw out of {samplers}"},
		{func(o *Options) { o.Smoothed, o.Samplers, o.Kappas = true, []sample.Kind{sample.RW}, []int{1} }, ""},
	} {
		o := DefaultOptions()
		c.change(&o)
		if err := o.Validate(); c.want == "" {
			require.NoError(t, err)
		} else {
			require.EqualError(t, err, c.want)
		}
	}
}

func TestSteps(t *testing.T) {
	for _, c := range []struct{ epoch, steps, epochs, kappa, want int }{
		{91, 0, 0, 1, 91}, {1207, 0, 0, 1, 256}, {91, 0, 0, 64, 128}, {91, 0, 0, 1 << 40, 2048}, {91, 0, 0, sample.Forever, 91},
		{91, 40, 0, 64, 40}, {91, 0, 3, 64, 273}, {91, 100, 3, 64, 100}, {91, 1000, 3, 64, 273},
	} {
		require.Equal(t, c.want, Options{Steps: c.steps, Epochs: c.epochs, Kappas: []int{c.kappa}}.steps(c.epoch), "%+v", c)
	}
}

func TestCapacity(t *testing.T) {
	for _, c := range []struct {
		s    string
		rows uint32
	}{{"20%", 200}, {"0.1%", 1}, {"0.01%", 1}, {"100%", 1000}, {"12.5%", 125}, {"77", 77}, {"1000", 1000}} {
		capacity, err := ParseCapacity(c.s)
		require.NoError(t, err)
		require.Equal(t, c.s, capacity.String())
		require.Equal(t, c.rows, capacity.of(1000), c.s)
	}
	for _, s := range []string{"", "%", "x", "NaN%", "5 %%", "1.5", "5GiB"} {
		_, err := ParseCapacity(s)
		require.Error(t, err, s)
	}
}

// drawn is the picture of r, which is XML with nothing outside of it.
func drawn(t *testing.T, r *Report) string {
	svg := string(r.SVG())
	for d := xml.NewDecoder(strings.NewReader(svg)); ; {
		_, err := d.Token()
		if err == io.EOF {
			break
		}
		require.NoError(t, err)
	}
	require.NotContains(t, svg, "NaN")
	require.NotContains(t, svg, "Inf")
	require.NotContains(t, svg, `"-`, "a place left of or above the picture")
	return svg
}

// TestPicture: XML that is well formed, whatever the dataset is called, with every curve and
// nothing outside of the picture.
func TestPicture(t *testing.T) {
	r := &Report{Dataset: `runs/<a> & "b".gnn`, Fanouts: []int{15, -1}, Batch: 1000, Steps: 128, Caches: []Size{{Asked: "5%"}, {Asked: "60000"}}}
	for i, kind := range sample.Kinds {
		for _, batch := range []int{1, 64, 256, 1024, 100000} {
			r.Growth = append(r.Growth, Growth{Sampler: kind, Batch: batch, Hops: []Hop{{}, {Mean: 3, CI95: 1e9, PerSeed: float64(1+i) + 300/float64(batch)}}})
		}
		for _, kappa := range []int{64, sample.Forever, 1} {
			trace := Trace{Sampler: kind, Kappa: kappa}
			for range 4 {
				trace.Caches = append(trace.Caches, Cache{Policy: LRU, HitRate: 0.5}, Cache{Policy: Belady, HitRate: 1})
			}
			r.Traces = append(r.Traces, trace)
		}
	}
	for range 2 { // and then without traces
		svg := drawn(t, r)
		require.Equal(t, len(r.Growth)/5*2+len(r.Traces)/3*2*8, strings.Count(svg, "<polyline"), "each curve, and its entry in the legend")
		require.Contains(t, svg, "<title>&lt;a&gt; &amp; &#34;b&#34;.gnn: fanout 15,-1, batch 1000</title>")
		require.Equal(t, len(r.Traces) > 0, strings.Contains(svg, ">inf<"), fmt.Sprint(len(r.Traces)))
		text, err := r.Document().Page()
		require.NoError(t, err)
		require.Contains(t, string(text), "<h1>&lt;a&gt; &amp; &#34;b&#34;.gnn: fanout 15,-1, batch 1000</h1>")
		require.Equal(t, len(r.panels()), strings.Count(string(text), "<figure "))
		require.Equal(t, len(r.panels()), strings.Count(string(text), "<details "), "the values of each chart")
		require.Equal(t, len(r.Traces) > 0, strings.Contains(string(text), ">inf</text>"))
		r.Traces = nil
	}
}
