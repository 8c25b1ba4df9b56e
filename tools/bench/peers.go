package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/tools/cli"
)

const cacheShare = 20 // percent of the feature bytes, on both sides

// comparePeers alternates the fetching of the rows of the same steps, and training, with NumPy and
// DGL.
func comparePeers(ctx context.Context, c *comparison) error {
	ds, device, err := c.open(ctx, c.dataset)
	if err != nil {
		return err
	}
	defer ds.Close()
	if len(ds.Manifest().Relations) > 1 {
		return compareTypedPeers(ctx, c, ds, device)
	}
	trace, err := drawTrace(ctx, ds, plain, c.batch, 2*c.steps)
	if err != nil {
		return err
	}
	mine, err := newFetcher(ctx, ds.Features(0), c.engine, device.Costs, trace)
	if err != nil {
		return err
	}
	defer mine.close()
	defer func() { c.group.Close() }() // after the Python that is in it
	peer, ready, err := c.startPeer(ctx, ds, trace)
	if err != nil {
		return err
	}
	defer peer.close() //nolint:errcheck // what matters was read
	var ours, theirs, ourStep, theirStep series
	for range c.rounds {
		seconds, err := mine.fetch(ctx, c.batches)
		if err != nil {
			return err
		}
		var r peerTurn
		if err := peer.ask("rows", &r); err != nil {
			return err
		}
		if r.Sum != mine.sum {
			return fmt.Errorf("the same rows add up to %d, and to %d in NumPy", mine.sum, r.Sum)
		}
		ours, theirs = append(ours, mine.rows/seconds/1e3), append(theirs, r.Rows/r.Seconds/1e3)
		if ready.Loader == "" {
			continue
		}
		e, err := c.secondEpoch(ctx, "--norm", "none", "--dropout", "0", "--memory", c.memory, "--host-memory", strconv.FormatInt(mine.bytes, 10))
		if err != nil {
			return err
		}
		if err := peer.ask("epoch", &r); err != nil {
			return err
		}
		ourStep, theirStep = append(ourStep, 1e3*e.seconds/e.steps), append(theirStep, 1e3*r.Seconds/float64(c.batches))
	}
	for _, s := range ready.Skipped {
		fmt.Fprintf(c.out, "skipped: %s\n\n", strings.Join(strings.Fields(s), " "))
	}
	peak, hits := c.group.Peak()
	fmt.Fprintf(c.out, "%s, batch %d, fanout 15,10,5, a cache of %d %% of the feature bytes; windows of %d steps. Theirs: %s; ms a step by advice to the memory map: %v; at most %d MiB with the page cache, limit reached %d times. %d turns, median (smallest–largest):\n\n",
		filepath.Base(c.dataset), c.batch, cacheShare, mine.window, ready.Versions, ready.Variants, peak>>20, hits, c.rounds)
	tableHead(c.out, "| | rows fetched, k/s | ms a step of training |")
	if ready.Loader == "" {
		fmt.Fprintf(c.out, "| gnnstore | %s | |\n| NumPy, %s | %s | |\n| ours / theirs | %s | |\n", ours.spread("%.0f"), ready.Advice,
			theirs.spread("%.0f"), ours.over(theirs).spread("%.2f"))
		return nil
	}
	fmt.Fprintf(c.out, "| gnnstore | %s | %s |\n", ours.spread("%.0f"), ourStep.spread("%.1f"))
	fmt.Fprintf(c.out, "| NumPy, %s; %s | %s | %s |\n", ready.Advice, ready.Loader, theirs.spread("%.0f"), theirStep.spread("%.1f"))
	fmt.Fprintf(c.out, "| as fast | %s | %s |\n", ours.over(theirs).spread("%.2f"), theirStep.over(ourStep).spread("%.2f"))
	return nil
}

// peerReady is the message of peers.py when it has loaded everything, and peerTurn the figures of a
// turn.
type peerReady struct {
	Versions string         `json:"versions"`
	Loader   string         `json:"loader"`
	Skipped  []string       `json:"skipped"`
	Variants map[string]int `json:"variants"`
	Advice   string         `json:"advice"`
}

type peerTurn struct {
	Seconds float64 `json:"seconds"`
	Rows    float64 `json:"rows"`
	Sum     uint64  `json:"sum"`
}

// startPeer starts peers.py on the files of ds, in a memory cgroup.
func (c *comparison) startPeer(ctx context.Context, ds *store.Dataset, trace [][]uint32) (*python, peerReady, error) {
	about, g := jobOf(ds), ds.Graph(0)
	about["hot"], about["classes"], about["batch"], about["steps"] = ds.Features(0).Rows()*cacheShare/100, ds.Labels(0).Classes(), c.batch, c.batches
	about["threads"], about["workers"] = c.threads, c.threads-1
	job, err := json.Marshal(about)
	if err != nil {
		return nil, peerReady{}, err
	}
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
	path := filepath.Join(c.tmp, "job.json")
	if w.err == nil {
		w.err = os.WriteFile(path, job, 0o666)
	}
	if w.err != nil {
		return nil, peerReady{}, w.err
	}
	limit, err := bytesOf(c.memory)
	if err == nil {
		c.group, err = cli.NewCgroup(fmt.Sprint(os.Getpid()), limit)
	}
	if err != nil {
		fmt.Fprintf(c.out, "note: %v; so the page cache that NumPy has is without bounds\n\n", err)
	}
	var ready peerReady
	p, err := c.startPython(ctx, &ready, "peers.py", path)
	return p, ready, err
}

// jobOf says to a Python where the files of ds have its rows and lists.
func jobOf(ds *store.Dataset) map[string]any {
	type file struct {
		Path   string `json:"path"`
		Offset int64  `json:"offset"`
		First  int64  `json:"first"`
		Rows   int64  `json:"rows"`
		Stride int64  `json:"stride"`
	}
	f, g := ds.Features(0), ds.Graph(0)
	offsets, neighbors := g.Sections()
	var shards []file
	for _, s := range f.Shards() {
		shards = append(shards, file{s.Path, s.DataOffset, s.FirstRow, s.Rows, s.Stride})
	}
	return map[string]any{
		"shards": shards, "dim": f.Dim(), "dtype": npyType[f.Elem()],
		"offsets": file{Path: offsets.Path, Offset: store.PageSize}, "neighbors": file{Path: neighbors.Path, Offset: store.PageSize},
		"nodes": g.Nodes(), "edges": g.Edges(),
	}
}

// bytesOf reads 2560MiB.
func bytesOf(size string) (int64, error) {
	for shift, unit := range map[int]string{10: "KiB", 20: "MiB", 30: "GiB"} {
		if number, ok := strings.CutSuffix(size, unit); ok {
			n, err := strconv.ParseFloat(number, 64)
			return int64(n * float64(int64(1)<<shift)), err
		}
	}
	return strconv.ParseInt(size, 10, 64)
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
