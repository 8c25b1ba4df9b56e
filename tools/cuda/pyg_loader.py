"""Trains GraphSAGE with PyTorch Geometric's NeighborLoader and times it end to end: sampling, rows, copies, steps. It prints
milliseconds a step, to compare with the same network on the same graph in

    gnnstore-cuda train large.gnn --device cuda --batch 1000 --fanout 15,10,5 --hidden 256 --model sage

    python3 pyg_loader.py --data large.gnn [--device cuda] [--steps 100] [--seconds 4] [--workers 8,14,14t]
        [--features device,main,worker] [--edges index,sorted,matrix] [--index 32] [--tf32]

--data is a sealed dataset, or the folder that "gnnstore export --format graphbolt" wrote. NeighborLoader needs pyg-lib: set
PYTHONPATH to the folder that holds it.

--workers: K processes of DataLoader, 0 for none; Kt: K threads that call the loader, since pyg-lib lets go of Python's lock.
--features: device, all rows on the GPU, gathered there; main, rows in host memory, which the main process gathers into pinned
memory; worker, rows in host memory, which workers gather and PyTorch pins.
--edges: the forms of edges that SAGEConv gets. Each is timed first, on batches that are on the device; the fastest one trains.
--index: bits of ids in the graph and in batches. PyTorch Geometric's own are 64; 32 move half the bytes.

Copies to the GPU run on a second stream, one batch ahead. Timing begins after more steps than the loader holds batches ready,
and ends after --steps or --seconds, whichever comes first. --steps 0 times an epoch, from asking for the first batch to the end
of the last step. If a variant fails, its error is printed, and the next one runs.
"""

import argparse
import concurrent.futures
import gc
import glob
import itertools
import json
import os
import shutil
import statistics
import time
import warnings

import numpy as np
import torch
import torch.nn.functional as F
import torch_geometric
from torch_geometric import EdgeIndex
from torch_geometric.data import Data
from torch_geometric.index import index2ptr
from torch_geometric.loader import NeighborLoader
from torch_geometric.nn import SAGEConv
from torch_geometric.sampler import NeighborSampler

PREFETCH = 2  # batches that a worker keeps ready
PAGE = 4096  # bytes of a section's header, see store/FORMAT.md


class Graph:
    """A graph on the host: colptr and row (in-neighbours), x (float16), y, train; ids as in its folder."""

    def __init__(self, folder, bits):
        read = sealed if os.path.exists(os.path.join(folder, "topo")) else exported
        colptr, row, self.x, self.y, train, self.classes = read(folder)
        kind = np.int32 if bits == 32 else np.int64
        # NumPy allocates them, since it asks for huge pages, which make sampling faster.
        self.colptr, self.row = (torch.from_numpy(a.astype(kind)) for a in (colptr, row))
        self.train = torch.from_numpy(train.astype(np.int64))

    def csr(self):  # of the transposed matrix: what NeighborSampler asks of Data.adj_t, without a sort
        return self.colptr, self.row, None


def sealed(folder):
    """The arrays of a dataset of one node type and one relation. It checks nothing: gnnstore verify does."""
    with open(os.path.join(folder, "manifest.json")) as f:
        manifest = json.load(f)
    kinds = {"u32": np.int32, "i32": np.int32, "u64": np.int64, "f16": np.float16}

    def section(s):
        kind = np.dtype(kinds[s["elem"]])
        shape = s["rows"], s["stride"] // kind.itemsize
        rows = np.memmap(os.path.join(folder, s["path"]), kind, "r", PAGE, shape)[:, : s["cols"]]
        return rows[:, 0] if s["cols"] == 1 else rows

    (relation,), table, label = manifest["relations"], manifest["tables"][0], manifest["labels"][0]
    nodes = manifest["node_types"][0]["count"]
    x = np.empty((nodes, table["dim"]), np.float16)
    for shard in table["shards"]:
        x[shard["first"] : shard["first"] + shard["rows"]] = section(shard)
    return (section(relation["offsets"]), section(relation["neighbors"]), torch.from_numpy(x),
            torch.from_numpy(section(label["values"]).copy()).long(), section(manifest["splits"][0]["train"]),
            label["classes"])


def exported(folder):
    """The arrays of an export for GraphBolt. Edges get sorted by their destinations."""
    load = lambda name: np.load(os.path.join(folder, name + ".npy"), mmap_mode="r")
    (train,) = glob.glob(os.path.join(folder, "split/*-train.npy"))
    src, dst = load("node__to__node/edge_index")
    y = torch.from_numpy(np.array(load("node/label"))).long()
    colptr = np.zeros(len(y) + 1, np.int64)
    np.cumsum(np.bincount(dst, minlength=len(y)), out=colptr[1:])
    row = src.astype(np.int32)[np.argsort(dst, kind="stable")]
    x = torch.from_numpy(np.array(load("node/feat"), np.float16))
    return colptr, row, x, y, np.load(train), int(y.max()) + 1


class Sage(torch.nn.Module):
    """The network that gnnstore trains by default, with as many layers as there are fanouts."""

    def __init__(self, inputs, hidden, classes, layers):
        super().__init__()
        widths = [inputs] + [hidden] * (layers - 1) + [classes]
        self.layers = torch.nn.ModuleList(SAGEConv(a, b) for a, b in zip(widths, widths[1:]))
        self.norms = torch.nn.ModuleList(torch.nn.LayerNorm(hidden) for _ in range(layers - 1))

    def forward(self, x, edges, rows):
        for i, (layer, e, n) in enumerate(zip(self.layers, edges, rows)):
            x = layer((x, x[:n]), e)
            if i < len(self.norms):
                x = F.dropout(self.norms[i](x).relu(), 0.5, self.training)
        return x


def as_index(index, sources, rows):
    return index.long()  # scatter takes no others


def as_sorted(index, sources, rows):
    return EdgeIndex(index.long(), sparse_size=(sources, rows), sort_order="col")


def as_matrix(index, sources, rows):
    ones = torch.ones(index.shape[1], device=index.device)
    return torch.sparse_csr_tensor(index2ptr(index[1], rows), index[0], ones, (rows, sources), check_invariants=False)


FORMS = {"index": as_index, "sorted": as_sorted, "matrix": as_matrix}


def blocks(batch, form):
    """The edges and the number of destinations of each layer: only what a layer's output needs.

    Nodes and edges of a batch lie in the order of hops, and edges ascend by destination within the whole.
    """
    nodes = list(itertools.accumulate(batch.num_sampled_nodes))
    ends = list(itertools.accumulate(batch.num_sampled_edges))
    edges, rows = [], []
    for sources, destinations, end in zip(nodes[:0:-1], nodes[-2::-1], ends[::-1]):
        edges.append(form(batch.edge_index[:, :end], sources, destinations))
        rows.append(destinations)
    return edges, rows


class Trainer:
    def __init__(self, graph, args):
        torch.manual_seed(1)
        self.device = args.device
        self.model = Sage(graph.x.shape[1], args.hidden, graph.classes, len(args.fanout)).to(self.device)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=0.003, fused=args.device == "cuda")
        self.y = graph.y.to(self.device)
        self.x = None  # all rows, where they are on the device
        self.losses = []

    def step(self, batch, form):
        x = batch.x if self.x is None else self.x.index_select(0, batch.n_id)
        seeds = batch.n_id[: batch.num_sampled_nodes[0]]
        self.optimizer.zero_grad(set_to_none=True)
        loss = F.cross_entropy(self.model(x.float(), *blocks(batch, form)), self.y.index_select(0, seeds))
        loss.backward()
        self.optimizer.step()
        self.losses.append(loss.detach())

    def loss(self):
        return torch.stack(self.losses[-20:]).mean().item()


def lean(batch):
    """Drops what training does not read, before a worker sends it."""
    for name in ("e_id", "input_id", "seed_time", "batch"):
        if name in batch:
            del batch[name]
    return batch


class Loader:
    """Batches by K processes, or by K threads, epoch after epoch."""

    def __init__(self, graph, sampler, args, workers, rows=False):
        self.threads = int(workers[:-1]) if workers.endswith("t") else 0
        self.processes = 0 if self.threads else int(workers)
        self.held = (self.threads or self.processes) * PREFETCH
        self.pin = args.device == "cuda"
        data = Data(num_nodes=len(graph.y), edge_index=graph.row.new_empty((2, 0)))
        if rows:
            data.x = graph.x
        more = {"persistent_workers": True, "prefetch_factor": PREFETCH} if self.processes else {}
        self.loader = NeighborLoader(
            data, args.fanout, input_nodes=graph.train, neighbor_sampler=sampler, batch_size=args.batch, shuffle=True,
            transform=lean, filter_per_worker=True, num_workers=self.processes, pin_memory=self.pin and not self.threads,
            **more)

    def epoch(self):
        if not self.threads:
            yield from self.loader
            return
        draw = lambda seeds: self.loader(seeds).pin_memory() if self.pin else self.loader(seeds)
        order = iter(torch.randperm(len(self.loader.dataset)).split(self.loader.batch_size))
        # One thread each, as in DataLoader's processes; on the CPU steps need theirs.
        alone = torch.set_num_threads if self.pin else None
        with concurrent.futures.ThreadPoolExecutor(self.threads, initializer=alone, initargs=(1,)) as pool:
            coming = [pool.submit(draw, seeds) for seeds in itertools.islice(order, self.held)]
            while coming:
                batch = coming.pop(0).result()
                coming += [pool.submit(draw, seeds) for seeds in itertools.islice(order, 1)]
                try:
                    yield batch
                except GeneratorExit:
                    for f in coming:
                        f.cancel()
                    raise

    def forever(self):
        while True:
            yield from self.epoch()


def gathered(batches, x, pin):
    """Adds rows, which the calling thread gathers; PyTorch's allocator keeps pinned memory for the next batch."""
    for batch in batches:
        rows = torch.empty((len(batch.n_id), x.shape[1]), dtype=x.dtype, pin_memory=pin)
        batch.x = torch.index_select(x, 0, batch.n_id, out=rows)
        yield batch


def ahead(batches, device):
    """Copies each batch to the device on a second stream, one batch ahead."""
    if device != "cuda":
        yield from batches
        return
    side, ready = torch.cuda.Stream(), None
    for batch in batches:
        with torch.cuda.stream(side):
            batch = batch.to(device, non_blocking=True)
            came = side.record_event()
        if ready:
            yield await_copy(*ready)
        ready = batch, came
    if ready:
        yield await_copy(*ready)


def await_copy(batch, came):
    stream = torch.cuda.current_stream()
    stream.wait_event(came)
    batch.record_stream(stream)  # else a later copy could reuse its memory while a step reads it
    return batch


class Clock:
    def __init__(self, args):
        self.device, self.steps, self.seconds = args.device, args.steps, args.seconds

    def now(self):
        if self.device == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter()

    def run(self, make, held, work):
        """Runs work on the batches of make(forever). Returns milliseconds a step, and the number of steps."""
        if not self.steps:
            begin, count = self.now(), 0
            for batch in make(False):
                work(batch)
                count += 1
            return 1e3 * (self.now() - begin) / count, count
        batches = make(True)
        warm, begin, count = 2 * held + 3, time.perf_counter(), 0
        for batch in batches:  # more than were ready before the first step
            work(batch)
            count += 1
            if count >= warm or count > held and time.perf_counter() - begin > self.seconds:
                break
        begin, count = self.now(), 0
        for batch in batches:
            work(batch)
            count += 1
            if count == self.steps or time.perf_counter() - begin > self.seconds:
                break
        took = 1e3 * (self.now() - begin) / count
        batches.close()
        return took, count


def guarded(what, work):
    """Runs a variant. If it fails, the next one may work."""
    try:
        return work()
    except Exception as e:
        print(f"{what}: {type(e).__name__}: {str(e)[:300]}", flush=True)
        return None


def fastest_form(trainer, batches, names, clock):
    """Times steps in a row on batches that are on the device, and returns the fastest form of edges."""
    took = {}
    for name in names:

        def steps():
            for batch in batches:
                trainer.step(batch, FORMS[name])
            times = []
            for _ in range(5 if trainer.device == "cuda" else 1):
                begin = clock.now()
                for batch in batches:
                    trainer.step(batch, FORMS[name])
                times.append(1e3 * (clock.now() - begin) / len(batches))
            took[name] = statistics.median(times)
            print(f"step alone, {name}: {took[name]:.3f} ms a step", flush=True)

        guarded(f"step alone, {name}", steps)
    return min(took, key=took.get)


def describe(workers):
    kind, count = ("threads", workers[:-1]) if workers.endswith("t") else ("processes", workers)
    return f"{count} {kind}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", required=True)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--batch", type=int, default=1000)
    parser.add_argument("--fanout", type=lambda text: [int(n) for n in text.split(",")], default=[15, 10, 5])
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--workers", default="8,14,14t")
    parser.add_argument("--features", default="device,main,worker")
    parser.add_argument("--edges", default="index,sorted,matrix")
    parser.add_argument("--index", type=int, choices=(32, 64), default=32)
    parser.add_argument("--tf32", action="store_true")
    args = parser.parse_args()
    warnings.simplefilter("ignore")  # PyTorch warns that sparse matrices are in beta
    torch.backends.cuda.matmul.allow_tf32 = args.tf32
    precision = "TF32" if args.tf32 else "f32"
    import pyg_lib

    print(f"torch {torch.__version__}, torch_geometric {torch_geometric.__version__}, pyg_lib {pyg_lib.__version__}, "
          f"{os.cpu_count()} processors, {torch.get_num_threads()} threads, "
          f"{shutil.disk_usage('/dev/shm').free / 2**30:.1f} GiB free in /dev/shm")
    begin = time.perf_counter()
    graph = Graph(args.data, args.index)
    print(f"{len(graph.y):,} nodes, {len(graph.row):,} edges, {len(graph.train):,} to train on, {args.index}-bit ids, "
          f"read in {time.perf_counter() - begin:.1f} s; batch {args.batch}, fanout {args.fanout}, "
          f"prefetch {PREFETCH}", flush=True)
    data = Data(num_nodes=len(graph.y))
    data.adj_t = graph
    sampler = NeighborSampler(data, args.fanout)
    clock, trainer = Clock(args), Trainer(graph, args)
    loaders = {w: Loader(graph, sampler, args, w) for w in args.workers.split(",")}
    first = list(itertools.islice(Loader(graph, sampler, args, "0").epoch(), 8 if args.device == "cuda" else 2))
    mean = lambda counts: sum(map(sum, counts)) / len(first)
    print(f"{mean(b.num_sampled_nodes for b in first):,.0f} rows and "
          f"{mean(b.num_sampled_edges for b in first):,.0f} edges a step")

    for workers, loader in loaders.items():
        what = f"sampler alone, {describe(workers)}"

        def alone():
            took, count = clock.run(lambda on: loader.forever() if on else loader.epoch(), loader.held, lambda b: None)
            print(f"{what}: {took:.3f} ms a batch, {count} batches", flush=True)

        guarded(what, alone)

    trainer.x = graph.x.to(args.device)
    form = fastest_form(trainer, list(ahead(iter(first), args.device)), args.edges.split(","), clock)
    del first
    for features in args.features.split(","):
        trainer.x = graph.x.to(args.device) if features == "device" else None
        for workers, loader in loaders.items():
            what = f"features {features}, {describe(workers)}, {form}, {precision}"

            def train():
                gc.collect()  # ends the workers of the last loader, so that new workers do not inherit them
                by = Loader(graph, sampler, args, workers, rows=True) if features == "worker" else loader

                def make(on):
                    batches = by.forever() if on else by.epoch()
                    if features == "main":
                        batches = gathered(batches, graph.x, by.pin)
                    return ahead(batches, args.device)

                took, count = clock.run(make, by.held, lambda b: trainer.step(b, FORMS[form]))
                print(f"{what}: {took:.3f} ms a step, {count} steps, loss {trainer.loss():.4f}", flush=True)

            guarded(what, train)


if __name__ == "__main__":
    main()
