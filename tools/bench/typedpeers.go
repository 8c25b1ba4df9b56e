package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/tools/cli"
	"github.com/gnnstore/gnnstore/train/data"
	"github.com/gnnstore/gnnstore/train/sample"
)

// typedPeerFanouts has the fanouts of R-GraphSAGE beside PyTorch Geometric, from the seeds outward.
var typedPeerFanouts = []int{15, 10}

// compareTypedPeers alternates training on a graph of several types with PyTorch Geometric over
// NumPy's memory maps.
func compareTypedPeers(ctx context.Context, c *comparison, ds *store.Dataset, device device) error {
	d, err := data.Open(ds, data.Options{})
	if err != nil {
		return err
	}
	limit, err := bytesOf(c.memory)
	if err == nil {
		c.group, err = cli.NewCgroup(fmt.Sprint(os.Getpid()), limit)
	}
	if err != nil {
		fmt.Fprintf(c.out, "note: %v; so the page cache that NumPy has is without bounds\n\n", err)
	}
	defer func() { c.group.Close() }() // after the Python that is in it
	cache, err := c.writeTypedJob(d)
	if err != nil {
		return err
	}
	var ready struct {
		Versions string         `json:"versions"`
		Loader   string         `json:"loader"`
		Variants map[string]int `json:"variants"`
	}
	peer, err := c.startPython(ctx, &ready, "typedpeers.py", filepath.Join(c.tmp, "job.json"))
	if err != nil {
		return err
	}
	defer peer.close() //nolint:errcheck // what matters was read
	var ours, theirs series
	for range c.rounds {
		e, err := c.secondEpoch(ctx, "--model", "rsage", "--fanout", numbers(typedPeerFanouts), "--norm", "none", "--dropout", "0",
			"--memory", c.memory, "--host-memory", strconv.FormatInt(cache, 10))
		if err != nil {
			return err
		}
		var r peerTurn
		if err := peer.turn(&r); err != nil {
			return err
		}
		ours, theirs = append(ours, 1e3*e.seconds/e.steps), append(theirs, 1e3*r.Seconds/float64(c.batches))
	}
	peak, hits := c.group.Peak()
	fmt.Fprintf(c.out, "%s: %s, R-GraphSAGE of hidden %d, fanout %s, batch %d, a cache of %d %% of the feature bytes; the device: %s. Theirs: %s; ms a step while choosing: %v; at most %d MiB with the page cache, limit reached %d times. %d turns of %d steps and of %d, median (smallest–largest):\n\n",
		filepath.Base(c.dataset), extent(d), hidden, numbers(typedPeerFanouts), c.batch, cacheShare, device, ready.Versions, ready.Variants,
		peak>>20, hits, c.rounds, c.steps, c.batches)
	tableHead(c.out, "| | ms a step of training |")
	fmt.Fprintf(c.out, "| gnnstore | %s |\n| %s | %s |\n| as fast | %s |\n", ours.spread("%.0f"), ready.Loader, theirs.spread("%.0f"),
		theirs.over(ours).spread("%.2f"))
	return nil
}

// writeTypedJob writes what typedpeers.py reads, and returns the bytes of the rows that it holds.
func (c *comparison) writeTypedJob(d *data.Data) (cache int64, err error) {
	type file struct {
		Path   string `json:"path"`
		Offset int64  `json:"offset"`
		First  int64  `json:"first"`
		Rows   int64  `json:"rows"`
		Stride int64  `json:"stride"`
	}
	shape := shapeOf(d, sample.Config{Fanouts: typedPeerFanouts})
	var types, relations []map[string]any
	for i, t := range d.Types {
		f := t.Features
		if f == nil {
			return 0, fmt.Errorf("%s: type %s has no features, and they are needed", d.Set.Path(), t.Name)
		}
		var shards []file
		for _, s := range f.Shards() {
			shards = append(shards, file{s.Path, s.DataOffset, s.FirstRow, s.Rows, s.Stride})
		}
		hot := f.Rows() * cacheShare / 100
		cache += int64(hot) * int64(f.RowBytes())
		types = append(types, map[string]any{"name": t.Name, "nodes": t.Nodes, "dim": shape.In[i], "dtype": npyType[f.Elem()], "hot": hot, "shards": shards})
	}
	for i, r := range d.Relations {
		offsets, neighbors := r.Graph.Sections()
		relations = append(relations, map[string]any{
			"key": [3]string{r.Relation.Src, r.Relation.Name, r.Relation.Dst}, "src": shape.Relations[i].Src, "dst": shape.Relations[i].Dst, "edges": r.Graph.Edges(),
			"offsets": file{Path: offsets.Path, Offset: store.PageSize}, "neighbors": file{Path: neighbors.Path, Offset: store.PageSize},
		})
	}
	labels := make([]int32, d.Types[d.Target].Nodes)
	for v := range labels {
		labels[v] = max(d.Labels.Class(uint32(v)), 0)
	}
	train := slices.DeleteFunc(slices.Clone(d.Train), func(v uint32) bool { return d.Labels.Class(v) < 0 })
	w := npyWriter{dir: c.tmp}
	w.write("labels", "<i4", []int{len(labels)}, labels)
	w.write("train", "<i4", []int{len(train)}, train)
	job, err := json.Marshal(map[string]any{
		"types": types, "relations": relations, "target": d.Target, "fanouts": typedPeerFanouts, "makes": shape.Reach.Types[1:], "draws": shape.Reach.Relations,
		"hidden": hidden, "classes": shape.Out, "rate": rate, "batch": c.batch, "steps": c.batches, "threads": c.threads, "workers": c.threads - 1,
	})
	if err = errors.Join(err, w.err); err != nil {
		return 0, err
	}
	return cache, os.WriteFile(filepath.Join(c.tmp, "job.json"), job, 0o666)
}
