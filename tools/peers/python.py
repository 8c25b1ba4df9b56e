"""Compares datasets and runs read by tools/python with PyTorch Geometric, pandas and polars.

    gnnstore generate reddit graph.gnn --nodes 20k --edges 200k --undirected
    gnnstore train graph.gnn --run runs/graph --epochs 3 --hidden 32
    env/bin/python tools/peers/python.py graph.gnn runs/graph

It needs the wheel of tools/python, torch, torch_geometric, pandas and polars. The loader also
needs pyg-lib or torch-sparse. It prints a line for each comparison, and exits 1 if one fails. The
dataset may have several node types and relations. The run's network must be one that Run.model
builds: without a run, only the loader is compared.
"""

import sys

import numpy as np
import pandas
import polars
import torch
from torch_geometric.loader import NeighborLoader

from gnnstore import Dataset, Run

FANOUT = [10, 5]


def says(good, what):
    print(f"{what}: {'equal' if good else 'NOT EQUAL'}")
    return good


def metrics(run):
    frame, losses = run.dataframe(), [e["loss"] for e in run.metrics]
    good = isinstance(frame, pandas.DataFrame) and frame["loss"].tolist() == losses
    good &= polars.DataFrame(run.metrics)["loss"].to_list() == losses
    return says(good, f"{len(frame)} epochs in pandas and in polars")


def close(theirs, ours, what):
    off, size = np.abs(theirs - ours).max(), np.abs(ours).max()
    print(
        f"logits of {len(ours)} nodes by {what}: "
        f"differ by at most {off:.1e}, the largest is {size:.3g}"
    )
    return off <= 1e-4 * size


def logits(ds, run):
    """Compares the run's module with what the binary predicts: on the whole graph, and on batches.

    The batches are a NeighborLoader's, with all neighbours.
    """
    (kind, nodes), (edges, *_) = next(iter(ds.nodes.items())), ds.relations.values()
    found, net = run.predict("logits.npy", what="logits", force=True), run.model()
    ours = np.empty_like(found["values"])
    ours[nodes.find(found["id"])] = found["values"]
    x = torch.from_numpy(next(iter(nodes.tables.values())).rows().astype(np.float32))
    name = type(net).__name__
    with torch.no_grad():
        theirs = net(x, torch.from_numpy(edges.edge_index())).numpy()
        good = close(theirs, ours, f"{name} of the whole graph")
        if run.options["model"] == "gcn":  # it divides by degrees, which a batch does not have
            return good
        seeds = torch.arange(0, nodes.count, max(1, nodes.count // 500))
        batches = NeighborLoader(
            ds.to_pyg(), [-1] * run.options["layers"], input_nodes=(kind, seeds), batch_size=64
        )
        some = []
        for batch in batches:
            here, sub = batch[kind], batch[edges.src, edges.name, edges.dst].edge_index
            some.append(net(here.x, sub)[: here.batch_size].numpy())
    return good & close(np.concatenate(some), ours[seeds.numpy()], f"{name} of batches")


def keys(relation, sources):
    """Returns a number for each edge of the dataset, ascending: by destination, then source."""
    src, dst = relation.edge_index()
    return dst * sources + src


def loader(ds):
    """Compares the batches of a loader with the rows, labels and edges of the dataset.

    A batch must have no edge more often than the dataset has it. A seed must have as many
    neighbours in each relation as the fanout and its degree allow. A node type without labels or
    tables must have none in the batch.
    """
    kind, nodes = next((k, n) for k, n in ds.nodes.items() if n.splits)
    seeds = torch.from_numpy(next(iter(nodes.splits.values())).train.astype(np.int64))
    known = {r: keys(r, ds.nodes[r.src].count) for r in ds.relations.values()}
    batches, rows, labels, edges, degrees, drawn = 0, True, True, True, True, 0
    for batch in NeighborLoader(
        ds.to_pyg(), num_neighbors=FANOUT, input_nodes=(kind, seeds), batch_size=256
    ):
        batches += 1
        rows &= np.array_equal(
            batch[kind].n_id[: batch[kind].batch_size].numpy(),
            seeds[(batches - 1) * 256 : batches * 256].numpy(),
        )
        for name, of in ds.nodes.items():
            here = batch[name]
            ids = here.n_id.numpy()
            for i, t in enumerate(of.tables.values()):
                got = here.x if i == 0 else here[t.name]
                rows &= np.array_equal(got.numpy(), t.rows(ids).astype(np.float32))
            for i, y in enumerate(of.labels.values()):
                got = (here.y if i == 0 else here[y.name]).numpy()
                labels &= np.array_equal(got, y.values[ids], equal_nan=got.dtype.kind == "f")
            rows &= bool(of.tables) == ("x" in here) and bool(of.labels) == ("y" in here)
        for r, all_edges in known.items():
            sub = batch[r.src, r.name, r.dst].edge_index.numpy()
            src, dst = batch[r.src].n_id.numpy()[sub[0]], batch[r.dst].n_id.numpy()[sub[1]]
            pairs = dst.astype(np.int64) * ds.nodes[r.src].count + src
            found, times = np.unique(pairs, return_counts=True)
            first, end = (np.searchsorted(all_edges, found, side) for side in ("left", "right"))
            edges &= bool((times <= end - first).all())  # 0 where the dataset has no such edge
            drawn += sub.shape[1]
            if r.dst == kind:
                own = batch[kind].n_id[: batch[kind].batch_size].numpy()
                want = np.minimum(np.diff(r.offsets)[own], FANOUT[0])
                degrees &= np.array_equal(np.bincount(sub[1], minlength=len(own))[: len(own)], want)
    what = f"NeighborLoader, batches: {batches}, node types: {len(ds.nodes)}"
    return (
        says(rows, f"{what}, seeds and rows of tables")
        & says(labels, f"{what}, labels")
        & says(edges, f"{what}, relations: {len(ds.relations)}, edges: {drawn:,}")
        & says(degrees, f"{what}, neighbours of each seed")
    )


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit("usage: python.py DATASET [RUN]")
    ds, good = Dataset(sys.argv[1]), True
    if len(sys.argv) == 3:
        run = Run(sys.argv[2])
        good = metrics(run) & logits(ds, run)
    sys.exit(0 if good & loader(ds) else 1)


if __name__ == "__main__":
    main()
