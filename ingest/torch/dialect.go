package torch

import (
	"fmt"
	"slices"

	"github.com/gnnstore/gnnstore/ingest/pickle"
)

var (
	storageClasses = map[pickle.Global]elem{"torch.storage.UntypedStorage": untyped, "torch.UntypedStorage": untyped}
	dtypes         = map[pickle.Global]elem{}
	names          = map[pickle.Global]bool{wrapped: true}
)

// wrapped makes a subclass of Tensor that wraps a tensor, which its state has.
const wrapped = "torch._utils._rebuild_wrapper_subclass"

// subclasses of Tensor are read as the tensor that they are or have.
var subclasses = []pickle.Global{
	"torch_geometric.edge_index.EdgeIndex", "torch_geometric.index.Index", "torch.nn.parameter.Buffer",
	"torch.nn.parameter.Parameter", "torch.Tensor", "torch._tensor.Tensor",
}

// enums are read as the name of their value.
var enums = []pickle.Global{"torch_geometric.data.storage.AttrType", "torch_geometric.edge_index.SortOrder"}

// getter makes a Batch. PyTorch Geometric derives the Batch's class from the class of its graphs.
const getter = "torch_geometric.data.batch.DynamicInheritanceGetter"

// objects are the classes of graphs whose state says all there is.
var objects = map[pickle.Global]bool{
	"torch_geometric.data.data.Data":             true,
	"torch_geometric.data.data.DataEdgeAttr":     true,
	"torch_geometric.data.data.DataTensorAttr":   true,
	"torch_geometric.data.batch.Batch":           true,
	"torch_geometric.data.batch.DataBatch":       true,
	"torch_geometric.data.batch.HeteroDataBatch": true,
	getter: true,
	"torch_geometric.data.hetero_data.HeteroData":   true,
	"torch_geometric.data.temporal.TemporalData":    true,
	"torch_geometric.data.storage.BaseStorage":      true,
	"torch_geometric.data.storage.GlobalStorage":    true,
	"torch_geometric.data.storage.NodeStorage":      true,
	"torch_geometric.data.storage.EdgeStorage":      true,
	"torch_geometric.data.feature_store.TensorAttr": true,
	"torch_geometric.data.graph_store.EdgeAttr":     true,
	"torch_sparse.tensor.SparseTensor":              true,
	"torch_sparse.storage.SparseStorage":            true,

	"dgl.graphbolt.impl.fused_csc_sampling_graph.FusedCSCSamplingGraph": true,
	"torch._C.ScriptObject": true, // (its state, the name of its class)
}

func init() {
	for class, name := range classes {
		storageClasses[pickle.Global("torch."+class)] = elems[name]
	}
	for name, e := range elems {
		dtypes[pickle.Global("torch."+name)] = e
	}
	for g := range storageClasses {
		names[g] = true
	}
	for g := range dtypes {
		names[g] = true
	}
	for _, g := range subclasses {
		names[g] = true
	}
}

// dialect is the allow-list of torch.save.
func (l *loader) dialect() *pickle.Dialect {
	d := &pickle.Dialect{
		Names:      names,
		Remedy:     `torch.save({"x": g.x, "edge_index": g.edge_index, "y": g.y}, "graph.pt")`,
		Objects:    objects,
		Persistent: l.persistent,
		Memory:     l.memory,
		Calls: map[pickle.Global]func(pickle.Tuple) (any, error){
			"torch._utils._rebuild_tensor":        l.rebuild,
			"torch._utils._rebuild_tensor_v2":     l.rebuild,
			"torch._utils._rebuild_tensor_v3":     l.rebuildTyped,
			"torch._tensor._rebuild_from_type_v2": l.rebuildSubclass,
			getter: func(args pickle.Tuple) (any, error) { // (Batch, its class)
				if len(args) == 2 {
					if class, ok := args[0].(pickle.Global); ok && objects[class] {
						return &pickle.Object{Class: string(class)}, nil
					}
				}
				return nil, fmt.Errorf("a batch of no known class")
			},
			"__builtin__.getattr": attribute,
			"builtins.getattr":    attribute,
			"torch._utils._rebuild_parameter": func(args pickle.Tuple) (any, error) { // (tensor, requires grad, hooks)
				if len(args) == 3 {
					if t, ok := args[0].(*Tensor); ok {
						return t, nil
					}
				}
				return nil, fmt.Errorf("a parameter that is no tensor")
			},
			"torch._utils._rebuild_sparse_tensor": func(args pickle.Tuple) (any, error) { // (layout, its data)
				return &pickle.Object{Class: "sparse tensor", State: args}, nil
			},
			"torch.serialization._get_layout": first,
			"torch.device":                    first,
			"torch.Size": func(args pickle.Tuple) (any, error) {
				if len(args) != 1 {
					return nil, fmt.Errorf("a size of %d arguments", len(args))
				}
				n, err := integers(args[0])
				if err != nil {
					return nil, err
				}
				t := make(pickle.Tuple, len(n))
				for i, v := range n {
					t[i] = v
				}
				return t, nil
			},
		},
	}
	for _, g := range enums {
		d.Calls[g] = first
	}
	return d
}

// attribute makes (class, name) the name of an enum's value, as Python 3.11 writes it.
func attribute(args pickle.Tuple) (any, error) {
	if len(args) == 2 {
		class, ok := args[0].(pickle.Global)
		if _, isName := pickle.Text(args[1]); ok && isName && slices.Contains(enums, class) {
			return args[1], nil
		}
	}
	return nil, fmt.Errorf("it is called in a way that data does not need; this file is refused")
}

// first makes values that are no more than their name.
func first(args pickle.Tuple) (any, error) {
	if len(args) > 0 && len(args) <= 2 {
		if _, ok := pickle.Text(args[0]); ok {
			return args[0], nil
		}
	}
	return nil, fmt.Errorf("it is called in a way that data does not need; this file is refused")
}

// Fields returns what a user stored in one of PyTorch Geometric's objects by name: of a Data or of
// one store of a HeteroData. It is nil for anything else.
func Fields(v any) *pickle.Dict {
	for range 4 { // a Data has a store, and that a mapping
		switch w := v.(type) {
		case *pickle.Dict:
			return w
		case *pickle.Object:
			state, ok := w.State.(*pickle.Dict)
			if !ok {
				return nil
			}
			if m := state.Get("_mapping"); m != nil {
				v = m
			} else if s := state.Get("_store"); s != nil {
				v = s
			} else {
				return state // before version 2, a Data was its own store
			}
		default:
			return nil
		}
	}
	return nil
}
