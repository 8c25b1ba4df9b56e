package arrays

import (
	"errors"
	"fmt"
	"strings"

	"github.com/gnnstore/gnnstore/ingest/lines"
	"github.com/gnnstore/gnnstore/ingest/npy"
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
		if len(t) > 1 && t[1] != nil {
			return nil, fmt.Errorf("%s: several graphs in one file (a data set of many); save the one to train on", path)
		}
		v = t[0]
	}
	switch d := torch.Fields(v); {
	case isArray(v):
		b.keys, values["edges"] = []string{"edges"}, v
	case d != nil && d.Get("_node_store_dict") != nil:
		if types, err = hetero(d, add); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
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
		if n, ok := values[key].(int64); ok {
			b.numbers[key] = n
		}
		if isArray(values[key]) {
			b.keys = append(b.keys, key)
		}
	}
	b.open = func(key string) (*array, error) {
		a := &array{key: key, name: path + ": " + key}
		switch v := values[key].(type) {
		case *torch.Tensor:
			a.View = v.View
		case *pickle.Array:
			a.View = v.View()
		}
		if !a.Type.Number() {
			return nil, fmt.Errorf("%s: %w %s", a.name, npy.ErrUnsupported, a.Descr)
		}
		return a, nil
	}
	return types, nil
}

func isArray(v any) bool {
	switch v.(type) {
	case *torch.Tensor, *pickle.Array:
		return true
	}
	return false
}

// typeName reports whether a type of nodes or a part of a relation may have this name.
func typeName(name string) bool {
	return name != "" && !strings.Contains(name, "/") && !strings.Contains(name, "__") && lines.Printable(name)
}

// hetero adds the stores of a HeteroData, each under its type and a slash, and gives the types:
// nodes "paper/", relations "author__writes__paper/".
func hetero(d *pickle.Dict, add func(prefix string, d *pickle.Dict)) ([]string, error) {
	nodes, ok := d.Get("_node_store_dict").(*pickle.Dict)
	edges, ok2 := d.Get("_edge_store_dict").(*pickle.Dict)
	if !ok || !ok2 || len(nodes.Keys)+len(edges.Keys) > 1<<16 {
		return nil, errors.New("a HeteroData without its stores; save it again")
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
