"""Compares datasets and runs read by tools/python with PyTorch Geometric, pandas and polars.

    gnnstore generate reddit graph.gnn --nodes 20k --edges 200k --undirected
    gnnstore train graph.gnn --run runs/graph --epochs 3 --hidden 32
    env/bin/python tools/peers/python.py graph.gnn runs/graph

It needs the wheel of tools/python, torch, torch_geometric, pandas and polars. The loader also
needs pyg-lib or torch-sparse. It prints a line for each comparison, and exits 1 if one fails.
"""

import sys

import numpy as np
import polars
import torch
from torch_geometric.loader import NeighborLoader

from gnnstore import Dataset, Run


def metrics(run):
    frame = run.dataframe()
    same = (
        polars.DataFrame(run.metrics)["loss"].to_list()
        == frame["loss"].tolist()
        == [e["loss"] for e in run.metrics]
    )
    print(f"{len(frame)} epochs in pandas and in polars: {'equal' if same else 'NOT EQUAL'}")
    return same


def logits(ds, run):
    """Compares the run's module on the whole graph with what the binary predicts."""
    nodes, (edges, *_) = next(iter(ds.nodes.values())), ds.relations.values()
    x = torch.from_numpy(next(iter(nodes.tables.values())).rows().astype(np.float32))
    with torch.no_grad():
        theirs = run.model()(x, torch.from_numpy(edges.edge_index())).numpy()
    found = run.predict("logits.npy", what="logits", force=True)
    off, size = (
        np.abs(theirs[nodes.find(found["id"])] - found["values"]).max(),
        np.abs(theirs).max(),
    )
    print(
        f"logits of {len(theirs)} nodes by {type(run.model()).__name__}: differ by at most {off:.1e}, the largest is {size:.3g}"
    )
    return off <= 1e-4 * size


def loader(ds):
    """Compares the batches of a loader with the rows, labels and edges of the dataset."""
    kind, nodes = next(iter(ds.nodes.items()))
    seeds = torch.from_numpy(next(iter(nodes.splits.values())).train.astype(np.int64))
    batches, good = 0, True
    for batch in NeighborLoader(
        ds.to_pyg(), num_neighbors=[10, 5], input_nodes=(kind, seeds), batch_size=256
    ):
        here = batch[kind]
        ids = here.n_id.numpy()
        good &= np.array_equal(
            here.x.numpy(), next(iter(nodes.tables.values())).rows(ids).astype(np.float32)
        )
        good &= np.array_equal(here.y.numpy(), next(iter(nodes.labels.values())).values[ids])
        for r in ds.relations.values():
            sub = batch[r.src, r.name, r.dst].edge_index.numpy()
            src, dst = batch[r.src].n_id.numpy()[sub[0]], batch[r.dst].n_id.numpy()[sub[1]]
            good &= all(
                u in r.neighbors[r.offsets[v] : r.offsets[v + 1]]
                for u, v in zip(src[:200], dst[:200])
            )
        batches += 1
    print(
        f"{batches} batches of NeighborLoader: {'rows, labels and edges as in the dataset' if good else 'NOT EQUAL'}"
    )
    return good


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: python.py DATASET RUN")
    ds, run = Dataset(sys.argv[1]), Run(sys.argv[2])
    sys.exit(0 if metrics(run) & logits(ds, run) & loader(ds) else 1)


if __name__ == "__main__":
    main()
