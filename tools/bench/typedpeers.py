"""R-GraphSAGE on a graph of several types whose rows are out of core, the way PyTorch Geometric's users do it, for
`go run ./tools/bench peers`: NeighborLoader over a feature store of NumPy memory maps, with the hottest rows of each type in an array,
and HeteroConv of SAGEConv, cut to what each layer needs. The files are those of the sealed dataset.

Each line on stdin is one epoch of a few steps, and is answered with a line of JSON.
"""

import json
import mmap
import os
import sys
import time

import numpy as np
import torch
import torch.nn.functional as F
import torch_geometric
from torch_geometric.data import FeatureStore, GraphStore
from torch_geometric.data.feature_store import TensorAttr
from torch_geometric.data.graph_store import EdgeAttr, EdgeLayout
from torch_geometric.loader import NeighborLoader
from torch_geometric.nn import HeteroConv, SAGEConv
from torch_geometric.utils import trim_to_layer

from peers import Rows, whole


class Tables(FeatureStore):
    """The rows of each type, as they are stored: half the bytes to hand over, and made float32 where they are used."""

    def __init__(self, rows):
        super().__init__()
        self.rows = rows

    def _get_tensor(self, attr):
        return torch.from_numpy(self.rows[attr.group_name].fetch(attr.index.numpy()))

    def _get_tensor_size(self, attr):
        rows = self.rows[attr.group_name]
        return (rows.nodes, rows.dim)

    def get_all_tensor_attrs(self):
        return [TensorAttr(name, "x") for name in self.rows]

    def _put_tensor(self, tensor, attr):
        raise NotImplementedError

    def _remove_tensor(self, attr):
        raise NotImplementedError


class Relations(GraphStore):
    def __init__(self):
        super().__init__()
        self.edges = {}

    def add(self, key, sizes, offsets, neighbors):
        self.edges[key] = EdgeAttr(key, EdgeLayout.CSC, is_sorted=True, size=sizes), (neighbors, offsets)

    def _get_edge_index(self, attr):
        return self.edges[attr.edge_type][1]

    def get_all_edge_attrs(self):
        return [attr for attr, _ in self.edges.values()]

    def _put_edge_index(self, index, attr):
        raise NotImplementedError

    def _remove_edge_index(self, attr):
        raise NotImplementedError


class Net(torch.nn.Module):
    """A layer makes rows of the types that the next one reads; y = S·x + b + the sum over relations of W·mean, as ours."""

    def __init__(self, job):
        super().__init__()
        types, relations, last = job["types"], job["relations"], len(job["draws"]) - 1
        self.target = types[job["target"]]["name"]
        self.convs, self.skips = torch.nn.ModuleList(), torch.nn.ModuleList()
        for l, drawn in enumerate(job["draws"]):
            width = lambda t: types[t]["dim"] if l == 0 else job["hidden"]
            out = job["classes"] if l == last else job["hidden"]
            conv = lambda r: SAGEConv((width(r["src"]), width(r["dst"])), out, root_weight=False, bias=False)
            self.convs.append(HeteroConv({tuple(r["key"]): conv(r) for r, d in zip(relations, drawn) if d}))
            self.skips.append(torch.nn.ModuleDict({t["name"]: torch.nn.Linear(width(i), out) for i, t in enumerate(types) if job["makes"][l][i]}))

    def forward(self, batch):
        x = {t: rows.float() for t, rows in batch.x_dict.items()}
        edges = dict(batch.edge_index_dict)
        nodes = {t: batch[t].num_sampled_nodes for t in batch.node_types}
        counts = {r: batch[r].num_sampled_edges for r in batch.edge_types}
        for l, (convs, skips) in enumerate(zip(self.convs, self.skips)):
            x, edges, _ = trim_to_layer(l, nodes, counts, x, edges)
            sums = convs(x, edges)
            x = {t: skip(x[t]) + sums.get(t, 0) for t, skip in skips.items() if t in x}
            if l < len(self.convs) - 1:
                x = {t: F.relu(rows) for t, rows in x.items()}
        return x[self.target][: batch[self.target].batch_size]


class Side:
    """Trains with so many worker processes."""

    def __init__(self, job, stores, labels, train, workers):
        torch.manual_seed(1)
        self.labels, self.net = labels, Net(job)
        self.adam = torch.optim.Adam(self.net.parameters(), lr=job["rate"], foreach=True)
        fanouts = {tuple(r["key"]): job["fanouts"] for r in job["relations"]}
        loader = lambda: NeighborLoader(
            stores, fanouts, input_nodes=(self.net.target, train), batch_size=job["batch"], shuffle=True, num_workers=workers,
            persistent_workers=False,
        )  # fmt: skip
        self.batches = (b for _ in iter(int, 1) for b in loader())

    def epoch(self, steps):
        total, start = 0.0, time.perf_counter()
        for _ in range(steps):
            batch = next(self.batches)
            seeds = batch[self.net.target].n_id[: batch[self.net.target].batch_size]
            loss = F.cross_entropy(self.net(batch), self.labels[seeds])
            self.adam.zero_grad(set_to_none=True)
            loss.backward()
            self.adam.step()
            total += loss.item()
        return time.perf_counter() - start, total / steps


def main():
    answers, sys.stdout = sys.stdout, sys.stderr  # libraries print as well
    job = json.load(open(sys.argv[1]))
    torch.set_num_threads(job["threads"])
    load = lambda name: torch.from_numpy(np.load(os.path.join(os.path.dirname(sys.argv[1]), name + ".npy")).astype(np.int64))
    labels, train = load("labels"), load("train")
    rows = {t["name"]: Rows(t) for t in job["types"]}
    for t in job["types"]:
        rows[t["name"]].nodes = t["nodes"]
    relations = Relations()
    for r in job["relations"]:
        src, dst = (job["types"][r[end]]["nodes"] for end in ("src", "dst"))
        relations.add(tuple(r["key"]), (src, dst), whole(r["offsets"], np.int64, dst + 1), whole(r["neighbors"], np.uint32, r["edges"]))
    stores = Tables(rows), relations
    advices = {"readahead": mmap.MADV_NORMAL, "random": mmap.MADV_RANDOM}
    # Worker processes have copies of the maps, so that what is tried is also how many there are.
    variants = {}
    for name, advice in advices.items():
        for workers in range(job["workers"] + 1):
            for table in rows.values():
                table.advise(advice)
            variants[name, workers] = Side(job, stores, labels, train, workers).epoch(3)[0] / 3 * 1e3
    advice, workers = min(variants, key=variants.get)
    side = Side(job, stores, labels, train, workers)
    for table in rows.values():
        table.advise(advices[advice])
    side.epoch(2)  # to warm up
    report = {
        "versions": f"NumPy {np.__version__}, PyTorch {torch.__version__}",
        "loader": f"PyTorch Geometric {torch_geometric.__version__} NeighborLoader, {advice}, {workers} workers",
        "variants": {f"{a}, {w} workers": round(ms) for (a, w), ms in variants.items()},
    }
    print(json.dumps(report), file=answers, flush=True)
    for _ in sys.stdin:
        seconds, loss = side.epoch(job["steps"])
        print(json.dumps({"seconds": seconds, "loss": loss}), file=answers, flush=True)


if __name__ == "__main__":
    main()
