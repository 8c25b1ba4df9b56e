"""An epoch of GraphSAGE with a public loader, for `go run ./tools/bench epoch`: PyTorch Geometric's NeighborLoader where
pyg-lib or torch-sparse is installed, else GraphBolt's, else DGL's older DataLoader; or the one that is asked for. The model is
theirs as well, and every number of worker processes up to that of the threads is tried on some batches first.
"""

import json
import os
import sys
import time

import numpy as np
import torch
import torch.nn.functional as F

FANOUTS, HIDDEN, BATCH, RATE = [15, 10, 5], 256, 1000, 0.003  # from the seeds outward


class Net(torch.nn.Module):
    def __init__(self, conv, dim, classes):
        super().__init__()
        widths = [dim] + [HIDDEN] * (len(FANOUTS) - 1) + [classes]
        self.convs = torch.nn.ModuleList(conv(i, o) for i, o in zip(widths, widths[1:]))

    def forward(self, x, blocks, call):
        for layer, (conv, block) in enumerate(zip(self.convs, blocks)):
            x = call(conv, x, block)
            if layer < len(self.convs) - 1:
                x = F.relu(x)
        return x


def dgl_loader(graph):
    import dgl

    offsets, neighbors, rows, labels, train = graph
    count = len(offsets) - 1
    g = dgl.graph(("csc", (offsets, neighbors, torch.tensor([], dtype=torch.int64))), num_nodes=count)
    g = g.formats("csc")  # others are made ahead of time, else, and take as much again
    sampler = dgl.dataloading.NeighborSampler(FANOUTS[::-1])

    def epochs(workers):
        loader = dgl.dataloading.DataLoader(
            g, train, sampler, batch_size=BATCH, shuffle=True, num_workers=workers, persistent_workers=workers > 0
        )
        while True:
            for inputs, seeds, blocks in loader:
                yield rows[inputs], labels[seeds], blocks, len(seeds)
            yield None

    conv = lambda i, o: dgl.nn.SAGEConv(i, o, "mean")
    return f"DGL {dgl.__version__}, PyTorch {torch.__version__}", conv, lambda c, x, block: c(block, x), epochs


def graphbolt_loader(graph):
    import dgl
    import dgl.graphbolt as gb

    offsets, neighbors, rows, labels, train = graph
    g = gb.fused_csc_sampling_graph(offsets, neighbors)
    names = ("seeds" if hasattr(gb, "DiskBasedFeature") else "seed_nodes", "labels")  # master's, and 2.1.0's
    items = gb.ItemSet((train, labels[train]), names=names)
    store = gb.BasicFeatureStore({("node", None, "feat"): gb.TorchBasedFeature(rows)})

    def epochs(workers):
        pipe = gb.ItemSampler(items, batch_size=BATCH, shuffle=True)
        pipe = pipe.sample_neighbor(g, [torch.LongTensor([f]) for f in FANOUTS[::-1]])  # the last is the seeds'
        pipe = pipe.fetch_feature(store, node_feature_keys=["feat"]).copy_to(device=torch.device("cpu"))
        loader = gb.DataLoader(pipe, num_workers=workers)
        while True:
            for b in loader:
                yield b.node_features["feat"], b.labels, b.blocks, len(b.labels)
            yield None

    conv = lambda i, o: dgl.nn.SAGEConv(i, o, "mean")
    return f"GraphBolt of DGL {dgl.__version__}, PyTorch {torch.__version__}", conv, lambda c, x, block: c(block, x), epochs


def pyg_loader(graph):
    import torch_geometric
    from torch_geometric.data import Data
    from torch_geometric.loader import NeighborLoader
    from torch_geometric.nn import SAGEConv
    from torch_geometric.typing import WITH_PYG_LIB, WITH_TORCH_SPARSE

    if not WITH_PYG_LIB and not WITH_TORCH_SPARSE:
        raise ImportError("NeighborLoader wants pyg-lib or torch-sparse, and neither is installed")
    offsets, neighbors, rows, labels, train = graph
    dst = torch.repeat_interleave(torch.arange(len(offsets) - 1), offsets.diff())
    data = Data(x=rows, y=labels, edge_index=torch.stack([neighbors, dst]))

    def epochs(workers):
        loader = NeighborLoader(
            data, FANOUTS, input_nodes=train, batch_size=BATCH, shuffle=True, num_workers=workers, persistent_workers=workers > 0
        )
        while True:
            for b in loader:
                yield b.x, b.y[: b.batch_size], [b.edge_index] * len(FANOUTS), b.batch_size
            yield None

    name = f"PyTorch Geometric {torch_geometric.__version__}, PyTorch {torch.__version__}"
    return name, SAGEConv, lambda c, x, edges: c(x, edges), epochs


class Side:
    """Trains epoch after epoch with so many worker processes."""

    def __init__(self, loader, dim, classes, workers):
        _, conv, self.call, epochs = loader
        torch.manual_seed(1)
        self.model = Net(conv, dim, classes)
        self.adam = torch.optim.Adam(self.model.parameters(), lr=RATE, foreach=True)
        self.batches = epochs(workers)

    def epoch(self, limit=None):
        total, count, steps, start = 0.0, 0, 0, time.perf_counter()
        while steps != limit and (batch := next(self.batches)) is not None:
            steps += 1
            x, labels, blocks, n = batch
            loss = F.cross_entropy(self.model(x, blocks, self.call)[:n], labels)
            self.adam.zero_grad(set_to_none=True)
            loss.backward()
            self.adam.step()
            total, count = total + loss.item() * n, count + n
        return time.perf_counter() - start, total / count


def main():
    answers, sys.stdout = sys.stdout, sys.stderr  # libraries print as well
    os.environ.setdefault("DGLBACKEND", "pytorch")
    directory, classes, threads = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    loaders = {"pyg": pyg_loader, "graphbolt": graphbolt_loader, "dgl": dgl_loader}
    wanted = [loaders[sys.argv[4]]] if len(sys.argv) > 4 and sys.argv[4] else loaders.values()
    torch.set_num_threads(threads)
    read = lambda name, dtype: torch.from_numpy(np.load(f"{directory}/{name}.npy").astype(dtype))
    graph = (read("offsets", np.int64), read("neighbors", np.int64), read("rows", np.float32), read("labels", np.int64), read("train", np.int64))
    report, loader = {"loader": "", "skipped": [], "variants": {}, "chosen": ""}, None
    for make in wanted:
        try:
            loader = make(graph)
            report["loader"] = loader[0]
            break
        except (ImportError, OSError, RuntimeError, AttributeError) as e:
            report["skipped"].append(f"{make.__name__}: {e}")
    if loader is not None:
        make = lambda workers: Side(loader, graph[2].shape[1], classes, workers)
        for workers in range(threads + 1):
            side = make(workers)
            side.epoch(5)  # to warm up
            report["variants"][f"{workers} workers"] = round(side.epoch(15)[0] / 15 * 1e3)
        report["chosen"] = min(report["variants"], key=report["variants"].get)
        side = make(int(report["chosen"].split()[0]))
    print(json.dumps(report), file=answers, flush=True)
    for _ in sys.stdin:
        seconds, loss = side.epoch()
        print(json.dumps({"seconds": seconds, "loss": loss}), file=answers, flush=True)


if __name__ == "__main__":
    main()
