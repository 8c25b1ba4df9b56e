package arrays

import (
	"errors"
	"fmt"
	"strings"

	"github.com/gnnstore/gnnstore/ingest/lines"
	"github.com/gnnstore/gnnstore/ingest/pickle"
	"github.com/gnnstore/gnnstore/ingest/torch"
)

// torchBag has the arrays that torch.save wrote: a tensor, a dict of them, a graph of PyTorch
// Geometric, or one as its datasets keep it.
func torchBag(path string, o *Options) (*bag, []string, error) {
	f, err := torch.Open(path, o.Memory)
	if err != nil {
		return nil, nil, err
	}
	b := newBag(path)
	b.memory = o.Memory
	b.closers, b.files = append(b.closers, f), append(b.files, path)
	types, err := b.addTorch(f.Value())
	if err != nil {
		b.close()
		return nil, nil, err
	}
	return b, types, nil
}

// maxEntries bounds what is known by name, some 200 bytes each.
const maxEntries = 1 << 16

// addTorch adds the arrays of a value to a bag, and returns the types of a HeteroData.
func (b *bag) addTorch(v any) (types []string, err error) {
	path := b.path
	values := map[string]any{}
	entries := 0
	add := func(prefix string, d *pickle.Dict) {
		if entries += len(d.Keys); entries > maxEntries { // one dict may be the store of many types
			return
		}
		for i, k := range d.Keys {
			if key, ok := pickle.Text(k); ok {
				if _, again := values[prefix+key]; !again {
					b.keys = append(b.keys, prefix+key)
				}
				values[prefix+key] = d.Values[i]
			}
		}
	}
	if t, ok := v.(pickle.Tuple); ok && len(t) > 0 { // (data, slices, class), as an InMemoryDataset keeps them
		if len(t) > 1 {
			if n := graphs(t[1]); n > 1 {
				return nil, severalGraphs(path, n)
			}
		}
		if len(t) > 2 {
			class, _ := t[2].(pickle.Global)
			b.class = string(class)
		}
		v = t[0]
	}
	if l, ok := v.(*pickle.List); ok && len(l.Items) > 0 && isGraph(l.Items[0]) {
		if len(l.Items) > 1 {
			return nil, severalGraphs(path, int64(len(l.Items)))
		}
		v = l.Items[0]
	}
	if o, ok := v.(*pickle.Object); ok {
		b.class = o.Class
	}
	d := torch.Fields(v)
	nodes, edges := stores(d, strings.HasSuffix(b.class, ".HeteroData"))
	switch {
	case isArray(v) && (d == nil || b.class == "" || isMatrixObject(v)):
		b.keys, values["edges"] = []string{"edges"}, v
	case nodes != nil && edges != nil:
		if types, err = hetero(nodes, edges, add); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	case d != nil && d.Get("_node_store_dict") != nil:
		return nil, fmt.Errorf("%s: a HeteroData without its stores; save it again", path)
	case d != nil:
		add("", d)
		for i, w := range d.Values { // a split in a dict of its own
			key, _ := pickle.Text(d.Keys[i])
			if inner, ok := w.(*pickle.Dict); ok && (key == "split_idx" || key == "split") {
				add(key+".", inner)
			}
		}
	default:
		return nil, fmt.Errorf("%s: it holds %s; a tensor, a dict of tensors or a Data of PyTorch Geometric is expected", path, pickle.Kind(v))
	}
	if entries > maxEntries {
		return nil, fmt.Errorf("%s: more than %d entries in its dicts; save the arrays of the graph alone", path, maxEntries)
	}
	keys := b.keys
	b.keys = nil
	for _, key := range keys {
		if !lines.Printable(key) {
			return nil, fmt.Errorf("%s: key %q: such a name is no key; the file may be damaged, save it again", path, key)
		}
		v := values[key]
		if l, ok := v.(*pickle.List); ok && len(l.Items) == 1 && last(key) == "num_nodes" { // as older data sets keep it
			v = l.Items[0]
		}
		if n, ok := v.(int64); ok {
			b.numbers[key] = n
		}
		switch {
		case isArray(v):
			b.keys = append(b.keys, key)
		case v != nil:
			b.others[key] = v
		}
	}
	b.open = func(key string) (*array, error) { return b.value(key, path+": "+key, values[key]) }
	return types, nil
}

// isArray reports whether something is an array, or can be one: numbers and texts in lists, too.
func isArray(v any) bool {
	switch v := v.(type) {
	case *torch.Tensor, *pickle.Array:
		return true
	case *pickle.List:
		return len(v.Items) > 0
	case pickle.Tuple:
		return len(v) > 0
	}
	return isMatrixObject(v)
}

func isMatrixObject(v any) bool {
	o, ok := v.(*pickle.Object)
	return ok && isMatrix(o)
}

// isGraph reports whether something is a graph of PyTorch Geometric.
func isGraph(v any) bool {
	o, ok := v.(*pickle.Object)
	return ok && !isMatrix(o) && torch.Fields(o) != nil
}

// graphs returns the number of graphs in a data set. slices holds, for every array, the bounds of
// the graphs in it; for a HeteroData, the arrays of a type are in a dict.
func graphs(slices any) (n int64) {
	d, ok := slices.(*pickle.Dict)
	if !ok {
		return 0
	}
	for _, v := range d.Values {
		inner, ok := v.(*pickle.Dict)
		if !ok {
			n = max(n, length(v)-1)
			continue
		}
		for _, w := range inner.Values {
			n = max(n, length(w)-1)
		}
	}
	return n
}

func severalGraphs(path string, n int64) error {
	return fmt.Errorf(`%s: it holds %d graphs, and one is read; save one, torch.save(dataset[0], "graph.pt"), `+
		`or all as the parts of one: torch.save(Batch.from_data_list(list(dataset)), "graph.pt")`, path, n)
}

// typeName reports whether a type of nodes or a part of a relation may have this name.
func typeName(name string) bool {
	return name != "" && !strings.Contains(name, "/") && !strings.Contains(name, "__") && lines.Printable(name)
}

// stores returns the stores of a HeteroData by type. It reads the object itself, or the dict that
// its to_dict returns. It returns nil if d is no HeteroData.
func stores(d *pickle.Dict, isHetero bool) (nodes, edges *pickle.Dict) {
	if d == nil {
		return nil, nil
	}
	if d.Get("_node_store_dict") != nil {
		nodes, _ = d.Get("_node_store_dict").(*pickle.Dict)
		edges, _ = d.Get("_edge_store_dict").(*pickle.Dict)
		return nodes, edges
	}
	nodes, edges = &pickle.Dict{}, &pickle.Dict{}
	for i, k := range d.Keys {
		inner, ok := d.Values[i].(*pickle.Dict)
		if !ok {
			continue
		}
		to := nodes
		if t, isTriple := k.(pickle.Tuple); isTriple && len(t) == 3 {
			to = edges
		} else if name, isText := pickle.Text(k); !isText || name == "_global_store" {
			continue
		}
		to.Keys, to.Values = append(to.Keys, k), append(to.Values, inner)
	}
	if len(edges.Keys) == 0 && !isHetero {
		return nil, nil
	}
	return nodes, edges
}

// hetero adds the stores of a HeteroData, each under its type and a slash, and gives the types:
// nodes "paper/", relations "author__writes__paper/".
func hetero(nodes, edges *pickle.Dict, add func(prefix string, d *pickle.Dict)) ([]string, error) {
	if len(nodes.Keys)+len(edges.Keys) > 1<<16 {
		return nil, errors.New("a HeteroData of more than 65536 types; save those to train on")
	}
	var types []string
	for i, k := range nodes.Keys {
		name, _ := pickle.Text(k)
		fields := torch.Fields(nodes.Values[i])
		if fields == nil || !typeName(name) {
			return nil, fmt.Errorf("a HeteroData with the node type %q, which has no store, or a name that is empty, has / or __ in it, or cannot be printed", name)
		}
		types = append(types, name+"/")
		add(name+"/", fields)
	}
	for i, k := range edges.Keys {
		t, _ := k.(pickle.Tuple)
		fields := torch.Fields(edges.Values[i])
		if len(t) != 3 || fields == nil {
			return nil, errors.New("a HeteroData with a relation that is no triple or has no store")
		}
		var part [3]string
		for j, p := range t {
			if part[j], _ = pickle.Text(p); !typeName(part[j]) {
				return nil, fmt.Errorf("a relation is called %q; rename it without / and __, in characters that can be printed", part[j])
			}
		}
		types = append(types, strings.Join(part[:], "__")+"/")
		add(types[len(types)-1], fields)
	}
	return types, nil
}
