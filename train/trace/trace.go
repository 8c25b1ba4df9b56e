package trace

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/data"
	"github.com/gnnstore/gnnstore/train/sample"
)

// Run draws from ds and simulates as o asks. It holds 8 bytes a seed and, while it draws, the
// batches of its threads. Each thread takes up to 4 bytes a node to number nodes. Afterwards it
// holds as many of the passes that the package comment describes as there are threads, all for the
// same type. On disk it takes 4 bytes for each request of one sampler and κ. For Options.History
// see the package comment, too.
func Run(ctx context.Context, ds *store.Dataset, o Options) (*Report, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	r := &run{Options: o}
	if err := r.open(ds); err != nil {
		return nil, err
	}
	if err := r.check(ctx, ds); err != nil {
		return nil, err
	}
	for _, kind := range o.Samplers {
		if err := r.growth(ctx, kind); err != nil {
			return nil, err
		}
	}
	if o.Workers != nil {
		return &r.report, r.together(ctx)
	}
	if o.History != nil {
		if err := r.histories(ctx); err != nil {
			return nil, err
		}
	}
	if len(r.tables) == 0 || o.History != nil && len(o.Caches) == 0 {
		return &r.report, nil
	}
	for _, kind := range o.Samplers {
		for _, kappa := range o.Kappas {
			if err := r.trace(ctx, kind, kappa); err != nil {
				return nil, err
			}
		}
	}
	return &r.report, nil
}

// run is a Run under way.
type run struct {
	Options
	drawer
	ofRelation [][]int      // fanouts, by number of a relation
	reach      sample.Reach // what batches can hold
	tables     []table
	report     Report
}

// check compares the sections that Run draws from with their seal, checksums and contents, as
// verify does: the topology, and the labels and splits of seeds.
func (r *run) check(ctx context.Context, ds *store.Dataset) error {
	m, target := ds.Manifest(), r.data.Types[r.data.Target].Name
	wanted := map[string]bool{}
	for i, drawn := range r.reach.Drawn() {
		if rel := &r.data.Relations[i]; drawn {
			for _, f := range rel.Files() {
				wanted[f.Section] = true
			}
			if rel.RowIDs != nil {
				wanted[rel.RowIDs.Column.Values.Path] = true
			}
		}
	}
	for i := range m.Labels {
		if m.Labels[i].NodeType == target {
			wanted[m.Labels[i].Values.Path] = true
		}
	}
	for i := range m.Splits {
		if m.Splits[i].NodeType == target {
			wanted[m.Splits[i].Train.Path] = true
		}
	}
	return ds.CheckParts(ctx, func(path string) bool { return wanted[path] },
		func(done, total int64) { r.show("check", done, total, "bytes") })
}

// open finds the data to draw from, and begins the report.
func (r *run) open(ds *store.Dataset) (err error) {
	options := data.Options{Split: r.Split, Target: r.Target, Relation: r.Relation, Inputs: r.Inputs, EdgeInputs: r.EdgeInputs}
	if err := r.drawer.open(ds, options, r.Threads); err != nil {
		return err
	}
	if r.ofRelation, err = r.data.OfRelation(r.RelationFanouts); err != nil {
		return err
	}
	schema := r.data.Schema()
	for _, kind := range r.Samplers {
		if err := r.config(kind, 1).Fits(schema); err != nil {
			return ds.About(err)
		}
	}
	r.reach = r.config(sample.NS, 1).Reach(schema, r.data.Target)
	if err := r.data.CheckEdgeInputs(r.EdgeInputs, r.reach.Drawn()); err != nil {
		return err
	}
	m := ds.Manifest()
	r.report = Report{
		Dataset: ds.Path(), Seal: m.Seal, Order: m.Order, Target: r.Target, Relation: r.Relation,
		Split: r.data.Split, Seeds: len(r.data.Train), Fanouts: r.Fanouts, RelationFanouts: r.RelationFanouts, Batch: r.Batch,
		Dependent: "nested", LayerDependency: r.LayerDependency, Poisson: r.Poisson, Seed: r.Seed,
		Caches: []Size{}, Growth: []Growth{}, Traces: []Trace{},
	}
	for _, rel := range r.data.Relations {
		r.report.Edges += rel.Edges()
	}
	if err := r.openTables(); err != nil {
		return err
	}
	if r.Smoothed {
		r.report.Dependent = "smoothed"
	}
	if slices.ContainsFunc(r.Samplers, sample.Kind.Walks) {
		r.report.Walk = &r.Walk
	}
	r.report.EpochSteps = (len(r.data.Train) + r.Batch - 1) / r.Batch
	r.report.Steps = r.steps(r.report.EpochSteps)
	for _, b := range r.Growth {
		if b > len(r.data.Train) {
			return fmt.Errorf("{batches} %d: %s has %d seeds", b, ds.Path(), len(r.data.Train))
		}
	}
	if r.Growth == nil {
		b := 64
		for b > 1 && 16*b > len(r.data.Train) {
			b /= 4
		}
		for ; b <= min(16384, len(r.data.Train)); b *= 4 {
			r.Growth = append(r.Growth, b)
		}
	}
	return nil
}

// config returns the configuration of a trace of a sampler.
func (r *run) config(kind sample.Kind, kappa int) sample.Config {
	c := r.Options.config(kind, kappa)
	c.OfRelation = r.ofRelation
	return c
}

// stream returns the batches of a trace of a sampler, and their name for people.
func (r *run) stream(kind sample.Kind, kappa int) (s stream, name string) {
	schedule := sample.Schedule{Seed: r.Seed, Kappa: kappa}
	return stream{
		config: r.config(kind, kappa), batch: r.Batch, epochSteps: r.report.EpochSteps, steps: r.report.Steps,
		seed: r.Seed, batchSeed: schedule.At,
	}, fmt.Sprintf("%s with κ = %s", kind, sample.KappaText(kappa))
}

// show reports the progress of a stage.
func (r *run) show(stage string, done, total int64, unit string) {
	if r.Progress != nil {
		r.Progress(stage, done, total, unit)
	}
}

// trials is the number of batches of each size that are drawn for the growth curve. student is
// Student's t of 95 % for as many.
const (
	trials  = 16
	student = 2.131 // 15 degrees of freedom
)

func (r *run) growth(ctx context.Context, kind sample.Kind) error {
	stage, total := "draw batches of growing sizes with "+string(kind), int64(len(r.Growth)*trials)
	for i, size := range r.Growth {
		s := stream{config: r.config(kind, 1), batch: size, epochSteps: len(r.data.Train) / size, steps: trials, seed: r.Seed,
			batchSeed: func(step int) sample.BatchSeed { return sample.Alone(r.Seed, size, step) }}
		hops := len(r.Fanouts)
		sizes := make([][]float64, hops) // by hop and trial
		err := r.draw(ctx, s, func(step int, b *sample.Batch) error {
			for h := range hops {
				nodes := 0
				for _, f := range b.Layers[hops-1-h].Nodes {
					nodes += len(f.Src)
				}
				sizes[h] = append(sizes[h], float64(nodes))
			}
			r.show(stage, int64(i*trials+step+1), total, "batches")
			return nil
		})
		if err != nil {
			return err
		}
		g := Growth{Sampler: kind, Batch: size, Trials: trials}
		for h, n := range sizes {
			mean, deviation := moments(n)
			g.Hops = append(g.Hops, Hop{h + 1, mean, student * deviation / math.Sqrt(trials), mean / float64(size)})
		}
		r.report.Growth = append(r.report.Growth, g)
	}
	return nil
}

// moments returns the mean of x and its standard deviation.
func moments(x []float64) (mean, deviation float64) {
	for _, v := range x {
		mean += v
	}
	mean /= float64(len(x))
	for _, v := range x {
		deviation += (v - mean) * (v - mean)
	}
	return mean, math.Sqrt(deviation / float64(len(x)-1))
}

// trace draws batches once and traces the requests for each table, one after the other.
func (r *run) trace(ctx context.Context, kind sample.Kind, kappa int) error {
	s, name := r.stream(kind, kappa)
	of := make([]*requests, 0, len(r.tables))
	defer func() {
		for _, requests := range of {
			requests.close()
		}
	}()
	for range r.tables {
		requests, err := newRequests(r.Tmp)
		if err != nil {
			return err
		}
		of = append(of, requests)
	}
	err := r.draw(ctx, s, func(step int, b *sample.Batch) error {
		inputs := b.Inputs()
		for i, t := range r.tables {
			if err := of[i].add(inputs[t.number]); err != nil {
				return err
			}
		}
		r.show("draw "+name, int64(step+1), int64(s.steps), "batches")
		return nil
	})
	for i := range of {
		if err == nil {
			err = of[i].finish()
		}
	}
	for i := range r.tables {
		if err == nil {
			err = r.judge(ctx, kind, kappa, &r.tables[i], of[i], name)
		}
	}
	return err
}

// judge measures the requests for one table, and simulates its caches.
func (r *run) judge(ctx context.Context, kind sample.Kind, kappa int, of *table, requests *requests, name string) error {
	if of.name != "" {
		name += ", of " + of.name
	}
	reuse, err := newReuse(of.nodes, r.report.Steps, groupOf(kappa, r.Smoothed))
	if err != nil {
		return err
	}
	err = requests.inBatches(ctx, reuse.add)
	reuse.close()
	if err != nil {
		return err
	}
	t := Trace{
		Sampler: kind, Kappa: kappa, Type: of.name, Requests: requests.count(), Batches: requests.batches(),
		Different: sum(reuse.fresh), WorkingSet: reuse.windows(), Overlap: reuse.overlap(), Caches: []Cache{},
	}
	from := of.warmup(reuse.fresh, kappa)
	t.WarmupSteps, t.MeasuredSteps = from, r.report.Steps-from
	t.WholePeriods = kappa == sample.Forever || t.MeasuredSteps%kappa == 0
	t.MeasuredRequests = requests.count() - requests.before(from)
	t.FirstRequests = sum(reuse.fresh[from:])
	misses, err := r.simulate(ctx, of, requests, from, name)
	if err != nil {
		return err
	}
	for _, p := range r.Policies {
		for _, size := range of.asked {
			missed := misses[cache{p, uint32(size.Rows)}]
			rate := 1 - float64(missed)/float64(max(t.MeasuredRequests, 1))
			t.Caches = append(t.Caches, Cache{p, size.Rows, t.MeasuredRequests - missed, missed, rate})
		}
	}
	r.report.Traces = append(r.report.Traces, t)
	return nil
}

// cache names one of the simulated caches.
type cache struct {
	policy Policy
	rows   uint32
}

// pass is one policy's way through the requests, for some of the sizes at once.
type pass struct {
	policy Policy
	sizes  []uint32
	start  func() (simulator, error)
}

// simulate returns the misses of all caches of a table in the batches from the given one on.
// Afterwards requests hold the places of next requests.
func (r *run) simulate(ctx context.Context, t *table, requests *requests, from int, name string) (map[cache]int64, error) {
	nodes, misses := t.nodes, map[cache]int64{}
	var byRow, byPlace []pass
	for _, p := range r.Policies {
		for _, size := range t.sizes {
			switch p {
			case Sieve:
				byRow = append(byRow, pass{p, []uint32{size}, func() (simulator, error) { return newSieve(nodes, size) }})
			case Belady:
				byPlace = append(byPlace, pass{p, []uint32{size}, func() (simulator, error) {
					return newBelady(requests.count(), size), nil
				}})
			}
		}
		switch {
		case len(t.sizes) == 0:
		case p == Static:
			byRow = append(byRow, pass{p, t.sizes, func() (simulator, error) { return &static{t.sizes}, nil }})
		case p == LRU:
			byRow = append(byRow, pass{p, t.sizes, func() (simulator, error) { return newLRU(nodes, t.sizes) }})
		}
	}
	done, total := 0, len(byRow)+len(byPlace)
	var mu sync.Mutex // of misses and done
	all := func(passes []pass) error {
		g, ctx := errgroup.WithContext(ctx)
		g.SetLimit(r.Threads)
		for _, p := range passes {
			g.Go(func() error {
				s, err := p.start()
				if err != nil {
					return err
				}
				defer s.close()
				missed, err := requests.replay(ctx, s, len(p.sizes))
				if err != nil {
					return err
				}
				mu.Lock()
				defer mu.Unlock()
				for i, n := range missed[from*len(p.sizes):] {
					misses[cache{p.policy, p.sizes[i%len(p.sizes)]}] += n
				}
				done++
				r.show("simulate caches under "+name, int64(done), int64(total), "passes")
				return nil
			})
		}
		return g.Wait()
	}
	r.show("simulate caches under "+name, 0, int64(total), "passes")
	err := all(byRow)
	if err == nil && len(byPlace) > 0 {
		if err = requests.link(ctx, nodes); err == nil {
			err = all(byPlace)
		}
	}
	return misses, err
}

func sum(x []int64) (n int64) {
	for _, v := range x {
		n += v
	}
	return n
}
