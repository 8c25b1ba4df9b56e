package main

import (
	"fmt"
	"slices"

	"github.com/gnnstore/gnnstore/store/setting"
	"github.com/gnnstore/gnnstore/train/data"
	"github.com/gnnstore/gnnstore/train/sample"
)

// typedPeerFanouts has the fanouts of R-GraphSAGE beside PyTorch Geometric, from the seeds outward.
var typedPeerFanouts = []int{15, 10}

// writeTypedJob writes what typedpeers.py reads.
func (c *comparison) writeTypedJob() (*peerJob, error) {
	d, err := data.Open(c.ds, data.Options{})
	if err != nil {
		return nil, err
	}
	fanouts := setting.FormatInts(typedPeerFanouts)
	j := &peerJob{about: fmt.Sprintf("%s, R-GraphSAGE of hidden %d, fanout %s", extent(d), hidden, fanouts), script: "typedpeers.py",
		args: []string{"--model", "rsage", "--fanout", fanouts}}
	shape := shapeOf(d, sample.Config{Fanouts: typedPeerFanouts})
	var types, relations []map[string]any
	for i, t := range d.Types {
		f := t.Features
		if f == nil {
			return nil, fmt.Errorf("%s: type %s has no features, and they are needed", d.Set.Path(), t.Name)
		}
		hot := f.Rows() * cacheShare / 100
		j.cache += int64(hot) * int64(f.RowBytes())
		types = append(types, map[string]any{"name": t.Name, "nodes": t.Nodes, "dim": shape.In[i], "dtype": npyType[f.Elem()], "hot": hot, "shards": shardsOf(f)})
	}
	for i, r := range d.Relations {
		offsets, neighbors, err := listsOf(r.Graph, c.tmp)
		if err != nil {
			return nil, err
		}
		relations = append(relations, map[string]any{
			"key": [3]string{r.Relation.Src, r.Relation.Name, r.Relation.Dst}, "src": shape.Relations[i].Src, "dst": shape.Relations[i].Dst, "edges": r.Graph.Edges(),
			"offsets": offsets, "neighbors": neighbors,
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
	j.path, err = w.job(map[string]any{
		"types": types, "relations": relations, "target": d.Target, "fanouts": typedPeerFanouts, "makes": shape.Reach.Types[1:], "draws": shape.Reach.Relations,
		"hidden": hidden, "classes": shape.Out, "rate": rate, "batch": c.batch, "steps": c.batches, "threads": c.threads, "workers": c.threads - 1,
	})
	return j, err
}
