"""Makes stores and modules of PyTorch Geometric. Only this file imports it, and PyTorch."""

import numpy as np
import torch
import torch_geometric.nn
from torch_geometric.data import EdgeAttr, FeatureStore, GraphStore, TensorAttr
from torch_geometric.data.graph_store import EdgeLayout

from .binary import Error

FIRST_TABLE, FIRST_LABEL = "x", "y"


class Rows(FeatureStore):
    """The tables and labels of a dataset, by node type and name. Rows are copied when asked for."""

    def __init__(self, ds, dtype):
        super().__init__()
        self.arrays, self.dtype = {}, getattr(torch, str(dtype).removeprefix("torch."))
        for kind, nodes in ds.nodes.items():
            for i, table in enumerate(nodes.tables.values()):
                self.arrays[kind, table.name if i else FIRST_TABLE] = table
            for i, label in enumerate(nodes.labels.values()):
                self.arrays[kind, label.name if i else FIRST_LABEL] = label

    def _get_tensor(self, attr):
        of = self.arrays.get((attr.group_name, attr.attr_name))
        if of is None:
            return None
        index = slice(None) if attr.index is None else attr.index
        if isinstance(index, torch.Tensor):
            index = index.numpy()
        if hasattr(of, "rows"):
            return torch.from_numpy(of.rows(index)).to(self.dtype)
        values = np.array(of.values[index])  # a copy, since a tensor can be written to
        return torch.from_numpy(values).to(self.dtype if of.numbers or of.multi else torch.int64)

    def _get_tensor_size(self, attr):
        of = self.arrays[attr.group_name, attr.attr_name]
        return tuple(of.shape if hasattr(of, "rows") else of.values.shape)

    def get_all_tensor_attrs(self):
        return [TensorAttr(kind, name) for kind, name in self.arrays]

    def _put_tensor(self, tensor, attr):
        raise Error("a dataset never changes: put tensors into another FeatureStore")

    def _remove_tensor(self, attr):
        raise Error("a dataset never changes")


class Edges(GraphStore):
    """The relations of a dataset, by their destinations."""

    def __init__(self, ds):
        super().__init__()
        self.relations = {(r.src, r.name, r.dst): r for r in ds.relations.values()}
        self.counts, self.made = {name: nodes.count for name, nodes in ds.nodes.items()}, {}

    def get_all_edge_attrs(self):
        return [
            EdgeAttr(
                edge_type,
                EdgeLayout.CSC,
                is_sorted=True,
                size=(self.counts[edge_type[0]], self.counts[edge_type[2]]),
            )
            for edge_type in self.relations
        ]

    def _get_edge_index(self, attr):
        r = self.relations.get(attr.edge_type)
        if r is None or attr.layout != EdgeLayout.CSC:
            return None
        if attr.edge_type not in self.made:
            self.made[attr.edge_type] = tuple(
                torch.from_numpy(a.astype(np.int64)) for a in (r.neighbors, r.offsets)
            )
        return self.made[attr.edge_type]

    def _put_edge_index(self, edge_index, edge_attr):
        raise Error("a dataset never changes: put edges into another GraphStore")

    def _remove_edge_index(self, edge_attr):
        raise Error("a dataset never changes")


def stores(ds, dtype):
    """Returns the stores of Dataset.to_pyg."""
    if not ds.relations:
        raise Error(
            f"{ds.path}: it has no relations; a stream of events is no graph of PyTorch Geometric's loaders"
        )
    return Rows(ds, dtype), Edges(ds)


def model(run, weights):
    """Returns the network of a run, built by the names and shapes of its weights."""
    nn, kind = torch_geometric.nn, run.options.get("model")
    make = {"sage": nn.GraphSAGE, "gcn": nn.GCN, "gat": nn.GAT}.get(kind)
    if make is None:
        raise Error(
            f"{run.path}: its network is {kind}, and model builds sage, gcn and gat; weights() has its weights"
        )
    layers, name = run.options.get("layers", 0), "lin_l" if kind == "sage" else "lin"
    if layers < 1 or any(f"convs.{i}.{name}.weight" not in weights for i in range(layers)):
        raise Error(
            f"{run.path}: its network is a {kind} of several node types or relations, or without "
            "layers, which model does not build; weights() has its weights"
        )
    widths = [weights["convs.0." + name + ".weight"].shape[1]]
    widths += [weights[f"convs.{i}.{name}.weight"].shape[0] for i in range(layers)]
    extra = {"dropout": float(run.options.get("dropout", 0))}
    if "norms.0.weight" in weights:
        extra |= {"norm": "layer_norm", "norm_kwargs": {"mode": "node"}}
    if kind == "gat":
        extra |= {"act": "elu", "heads": weights["convs.0.att_src"].shape[1]}
    net = make(widths[0], widths[1], layers, widths[-1], **extra)
    if kind == "gat":  # PyTorch Geometric's has as many heads in its last layer, and their mean
        _, heads, width = weights[f"convs.{layers - 1}.att_src"].shape
        net.convs[-1] = nn.GATConv(widths[-2], width, heads=heads, dropout=extra["dropout"])
    try:
        net.load_state_dict({k: torch.from_numpy(np.array(w)) for k, w in weights.items()})
    except RuntimeError as err:
        raise Error(
            f"{run.path}: its weights are not of a {type(net).__name__} alone: {' '.join(str(err).split())}"
        ) from None
    return net.eval()
