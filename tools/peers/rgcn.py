"""Trains PyTorch Geometric's R-GCN on an exported dataset of one node type, by the settings of the paper.

    gnnstore export mutag.gnn mutag-npy
    env/bin/python tools/peers/rgcn.py mutag-npy label_mutagenic --seeds 10

The settings are those of Schlichtkrull et al. 2018, section 5.1, and of PyTorch Geometric's example: all neighbours, two layers of 16,
30 bases, nodes told apart by one-hot inputs, Adam at 0.01, L2 of 5e-4, 50 epochs, no validation. --rows has a learnt row of 16 for
each node in their place, as gnnstore's embed:16. --free-rows leaves these rows out of L2, as gnnstore does. It prints a line for each
seed, and mean and deviation of the test accuracy.
It needs what tools/refnums needs.
"""

import argparse
import pathlib

import numpy as np
import torch
import torch.nn.functional as F
from torch_geometric.nn import RGCNConv


class Net(torch.nn.Module):
    def __init__(self, nodes, relations, classes, hidden, bases, rows):
        super().__init__()
        self.rows = torch.nn.Embedding(nodes, hidden) if rows else None
        if rows:
            torch.nn.init.uniform_(self.rows.weight, -(3 / hidden) ** 0.5, (3 / hidden) ** 0.5)
        self.first = RGCNConv(hidden if rows else nodes, hidden, relations, num_bases=bases)
        self.last = RGCNConv(hidden, classes, relations, num_bases=bases)

    def forward(self, edges, types):
        x = self.first(None if self.rows is None else self.rows.weight, edges, types)
        return self.last(F.relu(x), edges, types)


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("dataset", type=pathlib.Path, help="what gnnstore export wrote as npy")
    p.add_argument("label", help="name of the label")
    p.add_argument("--seeds", type=int, default=10)
    p.add_argument("--epochs", type=int, default=50)
    p.add_argument("--hidden", type=int, default=16)
    p.add_argument("--bases", type=int, default=30, help="0: a matrix for each relation")
    p.add_argument("--rows", action="store_true", help="learnt rows for inputs, not one-hot ones")
    p.add_argument("--free-rows", action="store_true", help="with --rows: no L2 on learnt rows")
    args = p.parse_args()
    if args.free_rows and not args.rows:
        p.error("--free-rows is for --rows")
    [file] = args.dataset.glob(f"*/{args.label}.npy")
    labels = torch.from_numpy(np.load(file))
    train, test = (torch.from_numpy(np.load(args.dataset / "split" / f"given-{part}.npy")) for part in ("train", "test"))
    lists = [torch.from_numpy(np.load(f)) for f in sorted(args.dataset.glob("*/edge_index.npy"))]
    edges = torch.cat(lists, 1)
    types = torch.cat([torch.full((e.shape[1],), i) for i, e in enumerate(lists)])
    classes, got = int(labels.max()) + 1, []
    for seed in range(1, args.seeds + 1):
        torch.manual_seed(seed)
        model = Net(len(labels), len(lists), classes, args.hidden, args.bases or None, args.rows)
        rows = list(model.rows.parameters()) if args.rows and args.free_rows else []
        others = [w for name, w in model.named_parameters() if not (rows and name.startswith("rows."))]
        adam = torch.optim.Adam([{"params": others, "weight_decay": 5e-4}, {"params": rows}], lr=0.01)
        for _ in range(args.epochs):
            adam.zero_grad()
            F.cross_entropy(model(edges, types)[train], labels[train]).backward()
            adam.step()
        with torch.no_grad():
            right = (model(edges, types)[test].argmax(1) == labels[test]).double().mean().item()
        got.append(100 * right)
        print(f"seed {seed}: {got[-1]:.1f}", flush=True)
    largest = 100 * torch.bincount(labels[test]).max().item() / len(test)
    print(f"test accuracy of {args.seeds} seeds: {np.mean(got):.1f} ± {np.std(got, ddof=1):.1f}; the largest class is {largest:.1f}")


if __name__ == "__main__":
    main()
