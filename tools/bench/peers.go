package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/store"
)

const cacheShare = 20 // percent of the feature bytes, on both sides

// peerTurn has the seconds of fetching rows, or of training, in a Python.
type peerTurn struct {
	Seconds float64 `json:"seconds"`
	Rows    float64 `json:"rows"`
	Sum     uint64  `json:"sum"`
	stepMS  float64 // of training, by either side
}

var peerColumns = []column[peerTurn]{
	{name: "rows fetched, k/s", format: "%.0f", of: func(t peerTurn) float64 { return t.Rows / t.Seconds / 1e3 }},
	{name: "ms a step of training", format: "%.1f", of: func(t peerTurn) float64 { return t.stepMS }},
}

// comparePeers alternates training, and the fetching of the rows of the same steps, with NumPy and
// DGL. On a graph of several types it alternates training alone, with PyTorch Geometric over
// NumPy's memory maps.
func comparePeers(ctx context.Context, c *comparison) error {
	var job *peerJob
	var err error
	if len(c.ds.Manifest().Relations) > 1 {
		job, err = c.writeTypedJob()
	} else {
		job, err = c.writePeerJob(ctx)
	}
	if err != nil {
		return err
	}
	defer job.close()
	c.confine(c.limit)
	var ready struct {
		Versions string         `json:"versions"`
		Loader   string         `json:"loader"`
		Skipped  []string       `json:"skipped"`
		Variants map[string]int `json:"variants"`
		Advice   string         `json:"advice"`
	}
	peer, err := c.startPython(ctx, &ready, job.script, job.path)
	if err != nil {
		return err
	}
	defer peer.close() //nolint:errcheck // what matters was read
	us := &side[peerTurn]{name: "gnnstore", turn: func(ctx context.Context) (turn peerTurn, err error) {
		if m := job.fetcher; m != nil {
			turn.Seconds, err = m.fetch(ctx, c.batches)
			turn.Rows, turn.Sum = m.rows, m.sum
		}
		if err == nil && ready.Loader != "" {
			turn.stepMS, err = c.trainBesidePeer(ctx, job)
		}
		return turn, err
	}}
	them := &side[peerTurn]{name: strings.TrimPrefix(ifAny("NumPy, ", ready.Advice)+ifAny("; ", ready.Loader), "; "),
		turn: func(context.Context) (turn peerTurn, err error) {
			if job.fetcher != nil {
				err = peer.ask("rows", &turn)
			}
			if err == nil && ready.Loader != "" {
				var epoch peerTurn
				err = peer.ask("epoch", &epoch)
				turn.stepMS = 1e3 * epoch.Seconds / float64(c.batches)
			}
			return turn, err
		}}
	t := turns[peerTurn]{sides: []*side[peerTurn]{us, them}, check: func(_ *side[peerTurn], t peerTurn) error {
		if want := us.turns[0].Sum; t.Sum != want {
			return fmt.Errorf("the same rows add up to %d, and in another turn to %d", t.Sum, want)
		}
		return nil
	}}
	if job.fetcher != nil {
		t.columns = append(t.columns, peerColumns[0])
	}
	if ready.Loader != "" {
		t.columns = append(t.columns, peerColumns[1])
	}
	if err := t.run(ctx, c.rounds); err != nil {
		return err
	}
	c.printSkipped(ready.Skipped)
	peak, hits := c.group.Peak()
	fmt.Fprintf(c.out, "%s: %s, batch %d, a cache of %d %% of the feature bytes; the device: %s. Theirs: %s; "+
		"ms a step while choosing: %v; at most %d MiB with the page cache, limit reached %d times. "+
		"%d turns of %d steps and of %d, median (smallest–largest):\n\n",
		c.base(), job.about, c.batch, cacheShare, c.device, ready.Versions, ready.Variants, peak>>20, hits, c.rounds, c.steps, c.batches)
	t.print(c.out, "")
	var faster []series
	for i, column := range t.columns {
		if column.name == peerColumns[1].name { // less is more
			faster = append(faster, t.over(them, us, i))
		} else {
			faster = append(faster, t.over(us, them, i))
		}
	}
	ratios(c.out, "as fast", faster...)
	return nil
}

// peerJob has the work of both sides.
type peerJob struct {
	about        string
	script, path string   // of the Python
	fetcher      *fetcher // nil: rows are not fetched by themselves
	cache        int64    // bytes of rows in memory
	args         []string // of gnnstore train
}

func (j *peerJob) close() {
	if j.fetcher != nil {
		j.fetcher.close()
	}
}

// trainBesidePeer trains on a job, and returns the milliseconds of a step.
func (c *comparison) trainBesidePeer(ctx context.Context, j *peerJob) (float64, error) {
	args := append(j.args[:len(j.args):len(j.args)], "--norm", "none", "--dropout", "0", "--memory", c.memory, "--host-memory", strconv.FormatInt(j.cache, 10))
	e, err := c.secondEpoch(ctx, c.train(args...))
	return 1e3 * e.seconds / e.steps, err
}

// writePeerJob writes what peers.py reads, beside the files of the dataset.
func (c *comparison) writePeerJob(ctx context.Context) (*peerJob, error) {
	ds := c.ds
	trace, err := drawTrace(ctx, ds, plain, c.batch, 2*c.steps)
	if err != nil {
		return nil, err
	}
	about, err := jobOf(ds, c.tmp)
	if err != nil {
		return nil, err
	}
	g := ds.Graph(0)
	about["hot"], about["classes"], about["batch"], about["steps"] = ds.Features(0).Rows()*cacheShare/100, ds.Labels(0).Classes(), c.batch, c.batches
	about["threads"], about["workers"] = c.threads, c.threads-1
	var ids []uint32
	var ends []int64
	for _, step := range trace[len(trace)-c.batches:] {
		ids = append(ids, step...)
		ends = append(ends, int64(len(ids)))
	}
	labels := make([]int32, g.Nodes())
	for v := range labels {
		labels[v] = ds.Labels(0).Class(uint32(v))
	}
	w := npyWriter{dir: c.tmp}
	w.write("trace", "<i4", []int{len(ids)}, ids)
	w.write("ends", "<i8", []int{len(ends)}, ends)
	w.write("labels", "<i4", []int{len(labels)}, labels)
	w.write("train", "<i4", []int{len(ds.Split(0).Train)}, ds.Split(0).Train)
	path, err := w.job(about)
	if err != nil {
		return nil, err
	}
	m, err := newFetcher(ctx, ds.Features(0), c.engine, c.device.Costs, trace)
	if err != nil {
		return nil, err
	}
	return &peerJob{about: fmt.Sprintf("fanout 15,10,5, windows of %d steps", m.window), script: "peers.py", path: path, fetcher: m, cache: m.bytes}, nil
}

// jobOf returns where the rows and lists of ds lie, for a script in Python. Files that the dataset
// lacks are written to dir.
func jobOf(ds *store.Dataset, dir string) (map[string]any, error) {
	f, g := ds.Features(0), ds.Graph(0)
	offsets, neighbors, err := listsOf(g, dir)
	return map[string]any{
		"shards": shardsOf(f), "dim": f.Dim(), "dtype": npyType[f.Elem()],
		"offsets": offsets, "neighbors": neighbors, "nodes": g.Nodes(), "edges": g.Edges(),
	}, err
}

// fetcher fetches the rows of steps through the tiers, and nothing else.
type fetcher struct {
	stack  *cachetier.Stack
	bytes  int64 // of the host tier
	window int   // steps
	trace  [][]uint32
	sum    uint64
	rows   float64 // that a fetch has
}

func newFetcher(ctx context.Context, f *store.Features, engine disk.Kind, costs disk.Costs, trace [][]uint32) (m *fetcher, err error) {
	m = &fetcher{bytes: tableBytes(f) * cacheShare / 100, trace: trace}
	m.stack, err = cachetier.Open(ctx, f, cachetier.Options{HostBytes: m.bytes, Lookahead: 1, Direct: true, Engine: engine, Costs: costs})
	if err != nil {
		return nil, err
	}
	m.window = windowSteps(m.stack, f, trace, true)
	if err := replay(ctx, m.stack, trace[:len(trace)/2], m.window, func(int, []byte) {}); err != nil {
		m.close()
		return nil, err
	}
	return m, nil
}

func (m *fetcher) close() { m.stack.Close() } //nolint:errcheck // it has nothing left to fail

// fetch fetches the rows of the second half of trace and returns the seconds that it took, planning
// included. It sets m.sum to the sum of the half-words of the last steps.
func (m *fetcher) fetch(ctx context.Context, last int) (seconds float64, err error) {
	steps := m.trace[len(m.trace)/2:]
	m.rows, m.sum = meanRows(steps)*float64(len(steps)), 0
	var summing time.Duration
	began := time.Now()
	err = replay(ctx, m.stack, steps, m.window, func(step int, rows []byte) {
		if step < len(steps)-last {
			return
		}
		now := time.Now()
		for i := 0; i < len(rows); i += 2 {
			m.sum += uint64(binary.LittleEndian.Uint16(rows[i:]))
		}
		summing += time.Since(now)
	})
	return (time.Since(began) - summing).Seconds(), err
}
