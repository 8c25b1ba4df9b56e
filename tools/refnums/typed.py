"""Records what PyTorch Geometric computes for the typed networks, for the tests of train/model.

    env/bin/python tools/refnums/typed.py train/model/testdata/refnums/typed.json

It is to graphs of several types what refnums.py is to those of one, and needs what that needs. The graph has papers, which are
classified, authors, venues and fields, with relations of repeated edges and of nodes without neighbours; to fields there is none.
Each network has two layers and sees the whole graph. The second layer makes papers only, so it has the relations to them and no
others.

Edges of two relations have values, in two columns and in one, which the last case reads, as GATConv's edge_attr.

RSAGE, RGAT and HGT are HeteroConv of SAGEConv and of GATConv, and HGTConv with a Linear for the logits; RGCN is RGCNConv on all
nodes one behind the other. A case says how many columns of each type's features it reads, and has the parameters that reach the logits.
"""

import json
import platform
import sys

import numpy as np
import torch
import torch_geometric
from torch_geometric.nn import GATConv, HeteroConv, HGTConv, RGCNConv, SAGEConv

from refnums import LR, STEPS, WEIGHT_DECAY, numbers, tensors

NODES = {"paper": 30, "author": 20, "venue": 6, "field": 4}
COLUMNS = {"paper": 12, "author": 5, "venue": 7, "field": 5}
ALIKE = dict.fromkeys(COLUMNS, 5)
RELATIONS = [("paper", "cites", "paper"), ("author", "writes", "paper"), ("paper", "by", "author"), ("venue", "prints", "paper"),
             ("paper", "in", "venue"), ("field", "tags", "paper")]
HIDDEN, CLASSES = 8, 5
EDGE_COLUMNS = [2, 0, 0, 1, 0, 0]
LAYERS = [RELATIONS, [r for r in RELATIONS if r[2] == "paper"]]
MADE = [list(NODES), ["paper"]]


def draw_lists(rng, relation):
    """In-neighbours of every node of the relation's destinations, ascending."""
    src, _, dst = relation
    lists = []
    for v in range(NODES[dst]):
        lists.append([] if v % 7 == 3 else sorted(int(u) for u in rng.integers(0, NODES[src], rng.integers(1, 6))))
        if v % 5 == 0:
            lists[-1] = sorted(lists[-1] + lists[-1][:1])
    return lists


class Net(torch.nn.Module):
    def __init__(self, case):
        super().__init__()
        kind, self.columns, self.edges = case["model"], case["columns"], dict(zip(RELATIONS, case.get("edges", [0] * len(RELATIONS))))
        self.kind, self.convs = kind, torch.nn.ModuleList()
        if kind == "hgt" or kind == "rgcn" and (case["bases"] or len(set(self.columns.values())) > 1):
            self.inputs = torch.nn.ModuleDict({t: torch.nn.Linear(i, HIDDEN) for t, i in self.columns.items()})
        if kind in ("rsage", "rgat"):
            self.skips = torch.nn.ModuleList()
        for l, relations in enumerate(LAYERS):
            width = self.columns if l == 0 and not hasattr(self, "inputs") else dict.fromkeys(NODES, HIDDEN)
            out, heads = (HIDDEN, case["heads"]) if l == 0 else (CLASSES, 1)
            if kind == "rsage":
                conv = lambda s, d, _: SAGEConv((width[s], width[d]), out, root_weight=False, bias=False)
            elif kind == "rgat":
                ends = lambda s, d: width[s] if width[s] == width[d] else (width[s], width[d])
                conv = lambda s, d, e: GATConv(ends(s, d), out // heads, heads=heads, add_self_loops=False, bias=False, edge_dim=e or None)
            if kind in ("rsage", "rgat"):
                self.convs.append(HeteroConv({r: conv(r[0], r[2], self.edges[r]) for r in relations}, aggr="sum"))
                self.skips.append(torch.nn.ModuleDict({t: torch.nn.Linear(width[t], out) for t in MADE[l]}))
            elif kind == "rgcn":
                self.convs.append(RGCNConv(width["paper"], out, len(relations), num_bases=case["bases"] or None))
            else:
                self.convs.append(HGTConv(HIDDEN, HIDDEN, (list(NODES), relations), heads=case["heads"]))
        if kind == "hgt":
            self.lin = torch.nn.Linear(HIDDEN, CLASSES)

    def forward(self, x, edges, values):
        if hasattr(self, "inputs"):
            x = {t: self.inputs[t](rows) for t, rows in x.items()}
        for l, relations in enumerate(LAYERS):
            if l > 0:
                activation = torch.nn.functional.elu if self.kind == "rgat" else torch.relu
                x = {t: activation(rows) for t, rows in x.items()}
            drawn = {r: edges[r] for r in relations}
            if self.kind == "rgcn":
                x = self.joined(l, x, drawn)
                continue
            read = {r: values[r] for r in relations if self.edges[r]}
            y = self.convs[l](x, drawn, **({"edge_attr_dict": read} if read else {}))
            own = {t: self.alone(l, t, x[t]) for t in MADE[l] if self.kind != "hgt" or t not in y}
            x = {t: sum(rows[t] for rows in (own, y) if t in rows) for t in MADE[l]}
        return self.lin(x["paper"]) if self.kind == "hgt" else x["paper"]

    def alone(self, l, t, x):
        """What type t's rows come to without neighbours. HGTConv leaves out types that no relation leads to: this is its formula."""
        if self.kind != "hgt":
            return self.skips[l][t](x)
        share = self.convs[l].skip[t].sigmoid()
        return share * self.convs[l].out_lin.lins[t].bias + (1 - share) * x

    def joined(self, l, x, drawn):
        """RGCNConv's rows: nodes of one type behind those of another."""
        first, n = {}, 0
        for t in NODES:
            first[t], n = n, n + NODES[t]
        index = [e + torch.tensor([[first[r[0]]], [first[r[2]]]]) for r, e in drawn.items()]
        types = [torch.full((e.shape[1],), k) for k, e in enumerate(index)]
        y = self.convs[l](torch.cat(list(x.values())), torch.cat(index, 1), torch.cat(types))
        return {t: y[first[t] : first[t] + NODES[t]] for t in NODES}


def ours(name):
    """The name that train/model gives to a parameter: HeteroConv holds its convolutions in a module of its own."""
    parts = name.split(".")
    return ".".join(parts[:2] + parts[3:]) if parts[2:] and parts[0] == parts[2] == "convs" else name


def run(case, seed, features, edges, values, labels, seeds):
    torch.manual_seed(seed)
    net = Net(case)
    with torch.no_grad():
        for p in net.parameters():  # biases start at 0, where a missing one would go unseen
            p += 0.1 * torch.randn_like(p)
    weights = tensors((ours(name), p) for name, p in net.named_parameters())
    net = net.double()
    x = {t: features[t][:, : case["columns"][t]].double() for t in NODES}
    target = torch.tensor([labels[v] for v in seeds])
    values = {r: v.double() for r, v in values.items()}
    logits = net(x, edges, values)[seeds]
    torch.nn.functional.cross_entropy(logits, target).backward()
    case["logits"] = numbers(logits)
    case["gradients"] = tensors((ours(name), p.grad) for name, p in net.named_parameters() if p.grad is not None)
    case["weights"] = {name: w for name, w in weights.items() if name in case["gradients"]}
    optimizer = torch.optim.Adam(net.parameters(), lr=LR, weight_decay=WEIGHT_DECAY)
    case["losses"] = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(net(x, edges, values)[seeds], target)
        case["losses"].append(float(f"{loss.item():.9g}"))
        loss.backward()
        optimizer.step()
    return case


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: typed.py OUT.json")
    rng = np.random.default_rng(20180)
    lists = {r: draw_lists(rng, r) for r in RELATIONS}
    edges = {r: torch.tensor([[u for l in lists[r] for u in l], [v for v, l in enumerate(lists[r]) for _ in l]]) for r in RELATIONS}
    features = {t: torch.tensor(rng.standard_normal((n, COLUMNS[t])), dtype=torch.float32) for t, n in NODES.items()}
    labels, seeds = [int(c) for c in rng.integers(0, CLASSES, NODES["paper"])], [0, 3, 5, 7, 10, 12, 17, 18, 22, 26, 29]
    values = {r: torch.tensor(rng.standard_normal((edges[r].shape[1], n)), dtype=torch.float32) for r, n in zip(RELATIONS, EDGE_COLUMNS) if n}
    cases = [("rsage", 1, 0, COLUMNS), ("rsage", 1, 0, ALIKE), ("rgcn", 1, 0, ALIKE), ("rgcn", 1, 0, COLUMNS), ("rgcn", 1, 2, ALIKE),
             ("rgcn", 1, 4, COLUMNS), ("rgat", 2, 0, COLUMNS), ("rgat", 4, 0, ALIKE), ("hgt", 2, 0, COLUMNS)]
    out = {
        "made_with": {"python": platform.python_version(), "numpy": np.__version__, "torch": torch.__version__,
                      "torch_geometric": torch_geometric.__version__},
        "hidden": HIDDEN, "classes": CLASSES, "lr": LR, "weight_decay": WEIGHT_DECAY,
        "types": [{"name": t, "columns": COLUMNS[t], "features": numbers(features[t])} for t in NODES],
        "relations": [{"name": "___".join(r), "src": list(NODES).index(r[0]), "dst": list(NODES).index(r[2]), "in_neighbors": lists[r],
                       **({"edge_values": numbers(values[r])} if r in values else {})} for r in RELATIONS],
        "labels": labels, "seeds": seeds,
        "cases": [run({"model": kind, "heads": heads, "bases": bases, "columns": columns}, 30 + i, features, edges, values, labels, seeds)
                  for i, (kind, heads, bases, columns) in enumerate(cases)],
    }
    with_edges = {"model": "rgat", "heads": 2, "bases": 0, "columns": COLUMNS, "edges": EDGE_COLUMNS}
    out["cases"].append(run(with_edges, 30 + len(cases), features, edges, values, labels, seeds))
    with open(sys.argv[1], "w") as f:
        json.dump(out, f, separators=(",", ":"))
        f.write("\n")
    print(json.dumps(out["made_with"]))


if __name__ == "__main__":
    main()
