package arrays

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/gnnstore/gnnstore/ingest/lines"
	"github.com/gnnstore/gnnstore/ingest/pickle"
	"github.com/gnnstore/gnnstore/ingest/torch"
)

// isTorch reports whether a file has the name of one that torch.save wrote.
func isTorch(path string) bool {
	ext := strings.ToLower(filepath.Ext(path))
	return ext == ".pt" || ext == ".pth"
}

// torchBag opens the arrays that torch.save wrote: a tensor, a dict of tensors, or a graph or a
// dataset of PyTorch Geometric.
func torchBag(path string, o *Options) (*bag, []string, error) {
	f, err := torch.Open(path, o.Memory)
	if err != nil {
		return nil, nil, err
	}
	b := newBag(path, o.Memory)
	b.closers, b.files = append(b.closers, f), append(b.files, path)
	types, err := b.addTorch(f.Value())
	if err != nil {
		b.close()
		return nil, nil, err
	}
	return b, types, nil
}

// maxEntries bounds the named values of a file. Each takes some 200 bytes.
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
	if v, err = b.oneGraph(v); err != nil {
		return nil, err
	}
	if o, ok := v.(*pickle.Object); ok {
		b.class = o.Class
	}
	d := torch.Fields(v)
	nodes, edges := stores(d, strings.HasSuffix(b.class, ".HeteroData"))
	switch {
	case isArray(v):
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
		// Older datasets have num_nodes in a list.
		if l, ok := v.(*pickle.List); ok && len(l.Items) == 1 && last(key) == "num_nodes" {
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

// oneGraph returns the graph in a value, and refuses several. A dataset of PyTorch Geometric is the
// tuple (data, slices, class). A list or a tuple may also hold graphs themselves.
func (b *bag) oneGraph(v any) (any, error) {
	var items []any
	switch w := v.(type) {
	case *pickle.List:
		items = w.Items
	case pickle.Tuple:
		if len(w) > 1 && isDataset(w[0], w[1]) {
			if n := graphs(w[1]); n > 1 {
				return nil, severalGraphs(b.path, n)
			}
			if len(w) > 2 {
				class, _ := w[2].(pickle.Global)
				b.class = string(class)
			}
			return w[0], nil
		}
		items = w
	}
	n, dicts := 0, 0
	for _, item := range items {
		switch _, isDict := item.(*pickle.Dict); {
		case isDict:
			dicts++
		case torch.Fields(item) != nil && !isMatrixObject(item):
			n++
		}
	}
	if n == 0 { // a dict beside a Data may be its split
		n = dicts
	}
	switch {
	case n > 1:
		return nil, severalGraphs(b.path, int64(n))
	case n == 1 && len(items) == 1:
		return items[0], nil
	case n == 1:
		return nil, fmt.Errorf(`%s: it holds a graph and %s beside it; save the graph alone: torch.save(data, "graph.pt")`,
			b.path, plural(int64(len(items)-1), "value"))
	}
	return v, nil
}

// isArray reports whether a value is an array or can become one, as lists of numbers or of texts
// can.
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

// isDataset reports whether (data, slices) is a dataset of PyTorch Geometric. For each array of
// data, slices has a vector of bounds: where each graph begins, and where the last one ends. It is
// None for one graph. For a HeteroData each type has its vectors in a dict.
func isDataset(data, slices any) bool {
	fields := torch.Fields(data)
	d, ok := slices.(*pickle.Dict)
	if fields == nil || !ok {
		return fields != nil && slices == nil
	}
	shared := len(d.Keys) == 0 || fields.Get("_node_store_dict") != nil
	names := map[string]bool{}
	for _, k := range fields.Keys {
		name, isText := pickle.Text(k)
		names[name] = isText
	}
	for i, k := range d.Keys {
		name, isText := pickle.Text(k)
		shared = shared || isText && names[name]
		if a := viewOf(d.Values[i]); a != nil && len(a.Shape) != 1 {
			return false
		}
	}
	return shared
}

// graphs returns the number of graphs in a dataset, by its slices.
func graphs(slices any) (n int64) {
	d, ok := slices.(*pickle.Dict)
	if !ok {
		return 0
	}
	for _, v := range d.Values {
		inner, isType := v.(*pickle.Dict)
		if !isType {
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
