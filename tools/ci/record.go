package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"

	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
	"github.com/gnnstore/gnnstore/train"
	"github.com/gnnstore/gnnstore/train/graph"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/run"
	"github.com/gnnstore/gnnstore/train/sample"
	"github.com/gnnstore/gnnstore/train/trace"
)

// recordFile has what each run of recordedRuns came to when it was last recorded: what a change
// that is none must leave alone.
const recordFile = "tools/ci/record.json"

// options has the options of a run that are not the defaults, by their names in run.json.
type options map[string]any

// recordedRun is a training run on one of the datasets of makeRecorded.
type recordedRun struct {
	name, dataset string
	options       options
}

// small trains on some thousand nodes in seconds; with more, or other, options.
func small(more options) options {
	o := options{"layers": 2, "hidden": 16, "fanout": []int{5, 4}, "batch": 200, "epochs": 2, "topology_bytes": 16 << 10,
		"memory_bytes": 1 << 30}
	maps.Copy(o, more)
	return o
}

// large trains for some steps out of core, in a memory that the features and the lists do not fit.
func large(more options) options {
	o := options{
		"layers": 3, "hidden": 16, "fanout": []int{6, 4, 3}, "batch": 40, "epochs": 2, "epoch_steps": 12, "eval_nodes": 400,
		"eval_bytes": 0, "memory_bytes": 136 << 20,
	}
	maps.Copy(o, more)
	return o
}

// cached are the options of the tiers.
func cached(more options) options {
	o := options{"engine": disk.Pread, "host_bytes": run.Auto, "device_bytes": 0, "policy": "", "readers": 0}
	maps.Copy(o, more)
	return o
}

// constant has the authors of the typed dataset do without rows of their own.
var constant = map[string]string{"author": "constant"}

// recordedRuns has every network, sampler and policy in it, tasks of one class and of several,
// evaluation of both kinds, and memory that is split by the plan and by hand.
var recordedRuns = []recordedRun{
	{"in memory", "one", small(options{"topology_bytes": run.Auto, "epochs": 3})},
	{"gcn, labor0, poisson, nested", "one", small(options{"model": "gcn", "sampler": "labor0", "poisson": true, "kappa": 4,
		"cache": cached(options{"host_bytes": 64 << 10})})},
	{"gat, labor0, smoothed", "one", small(options{"model": "gat", "sampler": "labor0", "kappa": 4, "dependent": "smoothed",
		"attn_dropout": 0.2, "cache": cached(options{"host_bytes": 64 << 10, "policy": "lru"})})},
	{"mlp, weighted classes, cosine", "one", small(options{"model": "mlp", "class_weights": "balanced", "metric": "macro-f1",
		"schedule": options{"schedule": "cosine", "warmup": 3}, "optim": options{"optimizer": "adamw", "weight_decay": 0.01, "clip_norm": 1}})},
	{"weighted edges, sampled evaluation", "one", small(options{"weighted": true, "eval_bytes": 0, "eval_nodes": 300,
		"cache": cached(options{"host_bytes": 16 << 10, "policy": "lru"})})},
	{"random walks, sieve", "one", small(options{"sampler": "rw", "cache": cached(options{"host_bytes": 48 << 10, "policy": "sieve"})})},
	{"labor-star, look-ahead", "one", small(options{"sampler": "labor-star", "lookahead": 2, "workers": 1,
		"cache": cached(options{"host_bytes": 48 << 10})})},
	{"several classes, no host cache", "several", small(options{"metric": "roc-auc", "norm": "none", "eval_test": "epoch",
		"cache": cached(options{"host_bytes": 0})})},
	{"several types, rsage, labor0", "typed", small(options{"input": constant, "model": "rsage", "sampler": "labor0", "kappa": 4, "dependent": "smoothed",
		"topology_bytes": 64 << 10, "cache": cached(options{"host_bytes": 40 << 10})})},
	{"several types, rgcn, labor-star", "typed", small(options{"input": constant, "model": "rgcn", "bases": 2, "sampler": "labor-star",
		"topology_bytes": 64 << 10, "cache": cached(options{"host_bytes": 24 << 10, "policy": "lru", "device_bytes": 8 << 10})})},
	{"several types, rgat, sampled evaluation", "typed", small(options{"input": constant, "model": "rgat", "attn_dropout": 0.2, "eval_bytes": 0, "eval_nodes": 300,
		"topology_bytes": 64 << 10})},
	{"several types, learnt rows", "typed", small(options{"input": map[string]string{"author": "embed:8"}, "model": "rsage",
		"optim": options{"clip_norm": 1, "embed_optimizer": "adam"}, "cache": cached(options{"host_bytes": 100 << 10}), "topology_bytes": 64 << 10})},
	{"several types, hgt, no host cache", "typed", small(options{"input": constant, "model": "hgt", "topology_bytes": 64 << 10,
		"cache": cached(options{"host_bytes": 0})})},
	{"links, gcn, labor0", "links", small(options{"task": "link", "metric": "roc-auc", "model": "gcn", "sampler": "labor0", "kappa": 4,
		"cache": cached(options{"host_bytes": 64 << 10})})},
	{"links, mlp decoder, softmax", "links", small(options{"task": "link", "decoder": "mlp", "loss": "ce", "negatives": "shared:20", "corrupt": "both",
		"metric": "mrr", "eval_negatives": "uniform:30", "eval_bytes": 0, "eval_nodes": 300})},
	{"edges, labor0, out of core", "edges", small(options{"task": "edge", "edge_label": "rating:sign", "model": "rsage", "sampler": "labor0", "kappa": 4,
		"edge_input": map[string][]string{"rates": {"rating", "time"}, "rev_rates": {"rating"}}, "class_weights": "balanced", "metric": "roc-auc",
		"input": map[string]string{"user": "embed:8"}, "topology_bytes": 64 << 10, "cache": cached(options{"host_bytes": 64 << 10})})},
	{"numbers of edges, sampled evaluation", "edges", small(options{"task": "edge", "edge_label": "rating:value", "model": "rsage", "decoder": "linear",
		"eval_bytes": 0, "eval_nodes": 300})},
	{"rows of edges, rgat, labor0", "edge rows", small(options{"model": "rgat", "sampler": "labor0", "kappa": 4,
		"edge_input": map[string][]string{"to": {"table"}}, "cache": cached(options{"host_bytes": 128 << 10})})},
	{"hidden rows used again", "one", small(options{"layers": 3, "fanout": []int{5, 4, 3}, "history": true, "p_grad": 0.8, "t_stale": 6, "history_start": 3,
		"history_lag": 3, "history_bytes": 32 << 10, "cache": cached(options{"host_bytes": 64 << 10})})},
	{"planned windows, belady", "large", large(options{"cache": cached(nil)})},
	{"planned windows, none", "large", large(options{"cache": cached(options{"policy": "none"})})},
	{"windows of 3, lru", "large", large(options{"window": 3, "cache": cached(options{"policy": "lru"})})},
	{"given tiers, static", "large", large(options{"topology_bytes": 4 << 20, "cache": cached(options{"policy": "static",
		"device_bytes": 2 << 20, "host_bytes": 12 << 20})})},
	{"one-step windows, labor0", "large", large(options{"window": 1, "sampler": "labor0", "kappa": 8,
		"cache": cached(options{"host_bytes": 8 << 20})})},
	{"stream, tgn", "stream", options{"model": "tgn", "hidden": 16, "fanout": []int{5}, "batch": 400, "epochs": 2, "memory_bytes": 1 << 30,
		"cache": cached(options{"host_bytes": 32 << 10})}},
	{"stream, jodie, staleness 3", "stream", options{"model": "jodie", "hidden": 16, "batch": 400, "epochs": 2, "memory_bytes": 1 << 30, "staleness": 3,
		"publish": "late", "warm_events": 2000, "negative_population": "nodes", "cache": cached(options{"host_bytes": 32 << 10, "policy": "lru"})}},
}

// record trains recordedRuns, plans some of them and traces a graph, by fixed costs of the disk and
// with the portable kernels, and compares what they come to, all but times, with recordFile. With
// -write it writes that instead. It also compares what eval and predict make of the runs, and
// finishes the runs of cutFile.
func record(ctx context.Context, a *arxiv) error {
	runtime.GOMAXPROCS(2) // which has a part in how much memory a step takes, and so in how the rest is split
	datasets, err := a.makeRecorded(ctx)
	if err != nil {
		return err
	}
	if err := writePairs(a.tmp); err != nil {
		return err
	}
	got := map[string]any{}
	for _, r := range recordedRuns {
		if err := withDataset(datasets[r.dataset], func(ds *store.Dataset) error {
			o, err := r.trainOptions()
			if err != nil {
				return fmt.Errorf("%s: %w", r.name, err)
			}
			dir := filepath.Join(a.tmp, "recorded")
			result, err := trainIn(ctx, ds, func() (*run.Dir, error) { return run.Create(dir) }, o, nil)
			if err != nil {
				return fmt.Errorf("%s: %w", r.name, err)
			}
			if got[r.name], err = timeless(result); err != nil {
				return err
			}
			if r.dataset != "large" {
				if got["use of "+r.name], err = a.uses(ctx, dir, r, o); err != nil {
					return err
				}
			}
			if r.dataset == "large" {
				plan, err := graph.MakePlan(ctx, ds, o)
				if err != nil {
					return fmt.Errorf("plan of %s: %w", r.name, err)
				}
				if got["plan of "+r.name], err = timeless(plan); err != nil {
					return err
				}
			}
			return os.RemoveAll(dir)
		}); err != nil {
			return err
		}
	}
	if err := withDataset(datasets["one"], func(ds *store.Dataset) error {
		o := trace.DefaultOptions()
		o.Samplers, o.Kappas, o.Batch, o.Fanouts, o.Tmp = sample.Kinds, []int{1, 4, sample.Forever}, 100, []int{5, 4}, a.tmp
		report, err := trace.Run(ctx, ds, o)
		if err == nil {
			got["trace"], err = timeless(report)
		}
		return err
	}); err != nil {
		return err
	}
	if a.write {
		if a.cut {
			if err := a.writeCut(ctx, datasets); err != nil {
				return err
			}
		} else if _, err := a.finishCut(ctx, datasets, got); err != nil {
			return fmt.Errorf("%w: runs of an earlier commit no longer resume; where that is meant, add -cut", err)
		}
		text, err := json.MarshalIndent(got, "", " ")
		if err != nil {
			return err
		}
		return os.WriteFile(recordFile, append(text, '\n'), 0o666)
	}
	text, err := os.ReadFile(recordFile)
	if err != nil {
		return err
	}
	var want map[string]any
	if err := json.Unmarshal(text, &want); err != nil {
		return fmt.Errorf("%s: %w", recordFile, err)
	}
	if err := compare("", want, got); err != nil {
		return fmt.Errorf("%w: a change of results; where it is meant, go run ./tools/ci record -write", err)
	}
	finished, err := a.finishCut(ctx, datasets, got)
	if err != nil {
		return err
	}
	fmt.Printf("%d results equal %s; %d interrupted runs of an earlier commit were resumed and ended alike\n", len(got), recordFile, finished)
	return nil
}

// trainIn trains on a graph or a stream, and calls step after each step unless it is nil.
func trainIn(ctx context.Context, ds *store.Dataset, dir func() (*run.Dir, error), o run.Options, step func(epoch, step, steps int)) (*run.Result, error) {
	note := func(epoch, at, steps int, _ float64) {
		if step != nil {
			step(epoch, at, steps)
		}
	}
	return train.Run(ctx, ds, dir, o, "", run.Hooks{Step: note})
}

// makeRecorded makes a stream, and seven graphs: one class a node with weights of edges, several
// classes a node, links with some held out, edges with rows of features, several types of nodes,
// edges with ratings and some held out, and a graph that is larger than the memory of large.
func (a *arxiv) makeRecorded(ctx context.Context) (map[string]string, error) {
	datasets := map[string]string{}
	for _, name := range []string{"one", "several", "links", "edge rows"} {
		datasets[name] = filepath.Join(a.tmp, name+".gnn")
		w, err := store.Create(datasets[name], store.WriterOptions{ShardBytes: 64 << 10})
		if err != nil {
			return nil, err
		}
		spec := storetest.Communities(3000, 5, 8, 40, 7)
		switch name {
		case "links":
			spec = spec.Linked()
		case "edge rows":
			withEdgeRows(&spec)
		}
		spec.Weight = func(v, i int) float32 { return 1 + float32((v+i)%5) }
		if class := spec.Class; name == "several" {
			spec.Bits = func(v int) []uint8 {
				bits := make([]uint8, spec.Classes)
				bits[class(v)], bits[v%3] = 1, 1
				return bits
			}
		}
		if _, err := storetest.Write(w, spec); err != nil {
			return nil, err
		}
	}
	datasets["typed"] = filepath.Join(a.tmp, "typed.gnn")
	w, err := store.Create(datasets["typed"], store.WriterOptions{})
	if err != nil {
		return nil, err
	}
	if err := storetest.WriteTyped(w, storetest.Library(3000, 5, 7)); err != nil {
		return nil, err
	}
	datasets["edges"] = filepath.Join(a.tmp, "edges.gnn")
	if w, err = store.Create(datasets["edges"], store.WriterOptions{}); err != nil {
		return nil, err
	}
	if err := storetest.WriteTyped(w, storetest.Trust(1000, true, true)); err != nil {
		return nil, err
	}
	datasets["stream"] = filepath.Join(a.tmp, "stream.gnn")
	if err := a.gnnstore.Run(ctx, "generate", "drift-s", datasets["stream"]); err != nil {
		return nil, err
	}
	datasets["large"] = filepath.Join(a.tmp, "large.gnn")
	return datasets, a.gnnstore.Run(ctx, "generate", "papers100m", datasets["large"],
		"--nodes", "200k", "--edges", "3M", "--dim", "192", "--memory", "256MiB")
}

// withEdgeRows gives the edges of s a table, in which the last of them has the first row.
func withEdgeRows(s *storetest.Spec) {
	first, edges := make([]int, len(s.Neighbors)), 0
	for v, list := range s.Neighbors {
		first[v] = edges
		edges += len(list)
	}
	s.Columns = []storetest.Column{{Name: store.EdgeID, Elem: store.U64, Value: func(v, i int) float64 { return float64(edges - 1 - first[v] - i) }}}
	s.EdgeTable = &storetest.EdgeTable{Rows: edges, Dim: 20, Elem: store.F16, Row: func(i int) []float32 {
		row := make([]float32, 20)
		for c := range row {
			row[c] = float32((i*31+c*17)%64) / 64
		}
		return row
	}}
}

// trainOptions are r's, by costs of the disk that no machine changes.
func (r recordedRun) trainOptions() (o run.Options, err error) {
	defaults := run.DefaultOptions()
	if kind := model.Kind(fmt.Sprint(r.options["model"])); slices.Contains(model.TemporalKinds, kind) {
		defaults = run.DefaultStreamOptions(kind)
	}
	text, err := json.Marshal(defaults)
	if err != nil {
		return o, err
	}
	all := options{}
	if err := json.Unmarshal(text, &all); err != nil {
		return o, err
	}
	for _, name := range []string{"input", "task", "edge_label", "edge_input", "decoder", "loss", "negatives", "eval_negatives", "corrupt",
		"staleness", "identity", "pair_features", "publish", "warm_events", "negative_population", "history", "p_grad", "t_stale", "history_start", "history_lag", "history_bytes"} {
		all[name] = nil // which run.json leaves out where they are empty
	}
	for name := range r.options {
		if _, ok := all[name]; !ok {
			return o, fmt.Errorf("run.json has no option %s", name)
		}
	}
	maps.Copy(all, r.options)
	if text, err = json.Marshal(all); err != nil {
		return o, err
	}
	err = json.Unmarshal(text, &o)
	o.Kernels = string(kernels.Portable)
	o.Cache.Costs = disk.Costs{SecondsPerRead: 10e-6, BytesPerSecond: 1.5e9}
	return o, err
}

// timed are the keys of what the clock, the machine or the place of a run decides, and of what went
// in. A report follows from the weights, and is long.
var timed = []string{
	"run", "dataset", "seal", "options", "report", "disk_engine", "seconds", "stage_seconds", "limiting_stage", "latency_seconds",
	"peak_rss_bytes", "peak_file_bytes", "sample_seconds", "list_seconds", "step_seconds", "epoch_seconds", "status",
}

// timeless is v as JSON has it, without the keys of timed.
func timeless(v any) (any, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	var x any
	if err := json.Unmarshal(text, &x); err != nil {
		return nil, err
	}
	drop(x, timed)
	return x, nil
}

// drop removes keys from all objects in x, a value as a JSON decoder gives it.
func drop(x any, keys []string) {
	switch x := x.(type) {
	case map[string]any:
		maps.DeleteFunc(x, func(key string, _ any) bool { return slices.Contains(keys, key) })
		for _, v := range x {
			drop(v, keys)
		}
	case []any:
		for _, v := range x {
			drop(v, keys)
		}
	}
}

// compare names the first place at which got is not want. What only got has is new, and no
// difference.
func compare(at string, want, got any) error {
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			return fmt.Errorf("%s is %v, and was %v", at, got, want)
		}
		for _, key := range slices.Sorted(maps.Keys(w)) {
			if err := compare(at+"/"+key, w[key], g[key]); err != nil {
				return err
			}
		}
		return nil
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(w) {
			return fmt.Errorf("%s is %v, and was %v", at, got, want)
		}
		for i := range w {
			if err := compare(fmt.Sprintf("%s/%d", at, i), w[i], g[i]); err != nil {
				return err
			}
		}
		return nil
	}
	if !reflect.DeepEqual(want, got) {
		return fmt.Errorf("%s is %v, and was %v", at, got, want)
	}
	return nil
}

func withDataset(path string, work func(*store.Dataset) error) error {
	ds, err := store.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(work(ds), ds.Close())
}
