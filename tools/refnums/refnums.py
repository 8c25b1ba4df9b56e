"""Records what PyTorch Geometric computes for GraphSAGE, GCN and GAT, for the tests of train/model.

    python -m venv env
    env/bin/pip install -r tools/refnums/requirements.txt
    env/bin/python tools/refnums/refnums.py train/model/testdata/refnums/pyg.json

It draws a small directed graph with everything that a real one has: nodes without neighbours, repeated edges, self loops,
one of them twice. Each network has two layers and runs twice. On the whole graph, PyTorch Geometric's layers are used as
they come and see every node. On blocks, they see two bipartite graphs with up to three neighbours a node, which the file
spells out; there GCN's weights are computed here, from the degrees in the whole graph.

A case has the initial weights, and what follows from them: the logits of the seeds, the gradient of every parameter, and
the losses of ten steps of torch.optim.Adam. Inputs are float32 numbers, all computing is in float64, so that what a test
sees is the rounding of the code under test. Nothing runs this but people: the file is committed.
"""

import json
import platform
import sys

import numpy as np
import torch
import torch_geometric
from torch_geometric.nn import GATConv, GCNConv, SAGEConv

NODES, DIM, HIDDEN, CLASSES, FANOUT = 40, 12, 8, 5, 3
STEPS, LR, WEIGHT_DECAY = 10, 0.01, 5e-4


def draw_graph(rng):
    """In-neighbours of every node, ascending."""
    lists = [[] for _ in range(NODES)]
    for v in range(NODES):
        if v in (7, 23):
            continue
        lists[v] = [int(u) for u in rng.integers(0, NODES, rng.integers(1, 8))]
        if v % 6 == 0:
            lists[v].append(v)
        if v == 12:
            lists[v].append(v)
        if v % 5 == 0:
            lists[v].append(lists[v][0])
        lists[v].sort()
    return lists


def draw_block(rng, lists, dst):
    """One layer: up to FANOUT neighbours of each node of dst, and the sources in the order in which they first come."""
    drawn, src = [], list(dst)
    for v in dst:
        n = len(lists[v])
        at = range(n) if n <= FANOUT else sorted(rng.choice(n, FANOUT, replace=False))
        drawn.append([lists[v][i] for i in at])
        for u in drawn[-1]:
            if u not in src:
                src.append(u)
    return {"dst": list(dst), "lists": drawn, "src": src}


def gcn_edges(lists, block):
    """Sources, destinations and weights of a block's edges as GCN has them: no self loop but one a node, the last of its
    list; 1/sqrt(d(u) d(v)) with d the in-degree without self loops plus 1, and drawn neighbours scaled to all."""
    degree = [sum(u != v for u in lists[v]) + 1 for v in range(NODES)]
    rows, cols, weights = [], [], []
    for i, v in enumerate(block["dst"]):
        drawn = block["lists"][i]
        for u in drawn:
            if u != v:
                rows.append(block["src"].index(u))
                cols.append(i)
                weights.append(len(lists[v]) / len(drawn) / (degree[u] * degree[v]) ** 0.5)
        rows.append(i)
        cols.append(i)
        weights.append(1 / degree[v])
    return rows, cols, weights


class Net(torch.nn.Module):
    def __init__(self, kind, heads=1, blocks=False):
        super().__init__()
        self.kind, self.blocks = kind, blocks
        if kind == "sage":
            convs = [SAGEConv(DIM, HIDDEN), SAGEConv(HIDDEN, CLASSES)]
        elif kind == "gcn":
            alone = {"normalize": False, "add_self_loops": False} if blocks else {}
            convs = [GCNConv(DIM, HIDDEN, **alone), GCNConv(HIDDEN, CLASSES, **alone)]
        else:
            convs = [GATConv(DIM, HIDDEN // heads, heads=heads), GATConv(HIDDEN, CLASSES, heads=1)]
        self.convs = torch.nn.ModuleList(convs)

    def forward(self, x, edges):
        """edges has an item a layer: edge_index, and for blocks the number of destinations and GCN's weights."""
        for l, (conv, (index, dsts, weights)) in enumerate(zip(self.convs, edges)):
            if l > 0:
                x = torch.nn.functional.elu(x) if self.kind == "gat" else torch.relu(x)
            if not self.blocks:
                x = conv(x, index)
            elif self.kind == "gcn":
                x = conv(x, index, weights)[:dsts]
            else:
                x = conv((x, x[:dsts]), index)
        return x


def numbers(t):
    return [float(f"{v:.9g}") for v in t.detach().reshape(-1).tolist()]


def tensors(named):
    return {name: {"shape": list(t.shape), "data": numbers(t)} for name, t in named}


def run(kind, heads, blocks, seed, data):
    torch.manual_seed(seed)
    net = Net(kind, heads, blocks is not None)
    with torch.no_grad():
        for p in net.parameters():  # biases start at 0, where a missing one would go unseen
            p += 0.1 * torch.randn_like(p)
    weights = tensors(net.named_parameters())
    net = net.double()

    lists, x, labels, seeds = data["lists"], data["x"].double(), data["labels"], data["seeds"]
    if blocks is None:
        index = torch.tensor([[u for l in lists for u in l], [v for v, l in enumerate(lists) for _ in l]])
        edges = [(index, None, None)] * 2
        logits_of = lambda: net(x, edges)[seeds]
    else:
        edges = []
        for b in blocks:
            if kind == "gcn":
                rows, cols, w = gcn_edges(lists, b)
            else:
                rows = [b["src"].index(u) for l in b["lists"] for u in l]
                cols, w = [i for i, l in enumerate(b["lists"]) for _ in l], []
            edges.append((torch.tensor([rows, cols]), len(b["dst"]), torch.tensor(w, dtype=torch.float64)))
        logits_of = lambda: net(x[blocks[0]["src"]], edges)
    target = torch.tensor([labels[v] for v in seeds])

    logits = logits_of()
    torch.nn.functional.cross_entropy(logits, target).backward()
    gradients = tensors((name, p.grad) for name, p in net.named_parameters())
    optimizer = torch.optim.Adam(net.parameters(), lr=LR, weight_decay=WEIGHT_DECAY)
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(logits_of(), target)
        losses.append(float(f"{loss.item():.9g}"))
        loss.backward()
        optimizer.step()
    case = {"model": kind, "heads": heads, "on": "whole graph" if blocks is None else "blocks", "weights": weights,
            "logits": numbers(logits), "gradients": gradients, "losses": losses}
    if blocks is not None and kind == "gcn":
        case["edge_weights"] = [numbers(w) for _, _, w in edges]
    return case


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: refnums.py OUT.json")
    rng = np.random.default_rng(20170)
    lists = draw_graph(rng)
    x = torch.tensor(rng.standard_normal((NODES, DIM)), dtype=torch.float32)
    seeds = [0, 5, 7, 12, 13, 18, 22, 30, 31, 35, 38, 39]
    data = {"lists": lists, "x": x, "labels": [int(c) for c in rng.integers(0, CLASSES, NODES)], "seeds": seeds}
    last = draw_block(rng, lists, seeds)
    blocks = [draw_block(rng, lists, last["src"]), last]
    cases = []
    for seed, (kind, heads) in enumerate([("sage", 1), ("gcn", 1), ("gat", 2)]):
        cases += [run(kind, heads, None, 10 + seed, data), run(kind, heads, blocks, 20 + seed, data)]
    out = {
        "made_with": {"python": platform.python_version(), "numpy": np.__version__, "torch": torch.__version__,
                      "torch_geometric": torch_geometric.__version__},
        "dim": DIM, "hidden": HIDDEN, "classes": CLASSES, "lr": LR, "weight_decay": WEIGHT_DECAY,
        "in_neighbors": lists, "features": numbers(x), "labels": data["labels"], "seeds": seeds, "blocks": blocks,
        "cases": cases,
    }
    with open(sys.argv[1], "w") as f:
        json.dump(out, f, separators=(",", ":"))
        f.write("\n")
    print(json.dumps(out["made_with"]))


if __name__ == "__main__":
    main()
