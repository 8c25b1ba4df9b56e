"""The C++ samplers of DGL and PyTorch Geometric, for `go run ./tools/bench samplers`: what turns seeds into blocks, and nothing
of the loaders around it, on graphs of one type or of several. One thread, on the processor that it is told.

Each line on stdin is one turn: a sampler and its fanouts, from the seeds outward. It answers with a line of JSON: the seconds
of the processor that all batches took, and how many edges and different nodes they have.
"""

import glob
import importlib.util
import json
import os
import sys
import time

import numpy as np
import torch

from peers import whole


class Graph:
    """nodes has the number of each type, lists the offsets and in-neighbours of each relation (source, name, destination)."""

    def __init__(self, job):
        self.nodes = {t["name"]: t["count"] for t in job["types"]}
        self.target = job["target"]
        self.lists = {
            tuple(r["name"]): (whole(r["offsets"], np.int64, r["nodes"] + 1), whole(r["neighbors"], np.uint32, r["edges"]))
            for r in job["relations"]
        }
        self.typed = len(self.nodes) > 1 or len(self.lists) > 1

    def only(self):
        """The offsets and neighbours of a graph that has one relation."""
        (lists,) = self.lists.values()
        return lists


def total(sizes):
    return sum(len(x) for x in sizes.values())


def dgl_samplers(graph):
    """DGL's, in the ways that each has. Its LABOR-0 keeps as many neighbours as chance will, as --poisson does."""
    import dgl

    csc = {r: ("csc", (*lists, torch.tensor([], dtype=torch.int64))) for r, lists in graph.lists.items()}
    if graph.typed:
        g = dgl.heterograph(csc, graph.nodes).formats("csc")
    else:
        (only,), (nodes,) = csc.values(), graph.nodes.values()
        g = dgl.graph(only, num_nodes=nodes).formats("csc")
    made = {}

    def run(make, *how):
        def sample(seeds, fanouts):
            key = (*how, tuple(fanouts))
            if key not in made:
                made[key] = make(fanouts[::-1])
            inputs, _, blocks = made[key].sample_blocks(g, {graph.target: seeds} if graph.typed else seeds)
            return sum(b.num_edges() for b in blocks), total(inputs) if graph.typed else len(inputs)

        return sample

    d = dgl.dataloading
    name = f"DGL {dgl.__version__}"
    yield "ns", f"{name} NeighborSampler", run(lambda f: d.NeighborSampler(f), "ns", True)
    yield "ns", f"{name} NeighborSampler, not fused", run(lambda f: d.NeighborSampler(f, fused=False), "ns", False)
    yield "labor0 --poisson", f"{name} LaborSampler", run(lambda f: d.LaborSampler(f), "labor")


def sparse_samplers(graph):
    """torch-sparse's, under PyTorch Geometric. sample_adj makes a block for every hop, as DGL's do, but of k among d neighbours its
    n-th draw is from the first d-k+n-1, where Floyd's algorithm has one more: late ones are drawn too seldom, and a batch has
    fewer different nodes. neighbor_sample, which NeighborLoader uses, draws so as well, and expands a node only at the hop that
    reaches it first, which is less work a batch."""
    if graph.typed:
        raise ImportError("torch-sparse is compared on graphs of one type alone")
    offsets, neighbors = graph.only()
    spec = importlib.util.find_spec("torch_sparse")
    if spec is None:
        raise ImportError("torch-sparse is not installed")
    for part in ("sample", "neighbor_sample"):  # its Python wants torch-scatter besides
        torch.ops.load_library(glob.glob(os.path.join(os.path.dirname(spec.origin), f"_{part}_cpu*.so"))[0])
    ops = torch.ops.torch_sparse

    def blocks(seeds, fanouts):
        edges = 0
        for k in fanouts:
            _, cols, seeds, _ = ops.sample_adj(offsets, neighbors, seeds, k, False)
            edges += len(cols)
        return edges, len(seeds)

    def subgraph(seeds, fanouts):
        nodes, rows, _, _ = ops.neighbor_sample(offsets, neighbors, seeds, fanouts, False, True)
        return len(rows), len(nodes)

    yield "biased", "torch-sparse sample_adj", blocks
    yield "once", "torch-sparse neighbor_sample", subgraph


def pyg_samplers(graph):
    """pyg-lib's, which NeighborLoader prefers to torch-sparse's."""
    import pyg_lib

    torch.ops.pyg.neighbor_sample  # noqa: B018 there is none where its library did not load

    def typed(seeds, fanouts):
        rows, _, nodes, *_ = pyg_lib.sampler.hetero_neighbor_sample(
            offsets, neighbors, {graph.target: seeds}, {r: fanouts for r in graph.lists}, csc=True
        )
        return total(rows), total(nodes)

    if graph.typed:
        offsets = {r: lists[0] for r, lists in graph.lists.items()}
        neighbors = {r: lists[1] for r, lists in graph.lists.items()}
        yield "once", f"pyg-lib {pyg_lib.__version__} hetero_neighbor_sample", typed
        return
    offsets, neighbors = graph.only()

    def subgraph(seeds, fanouts):
        rows, _, nodes, *_ = pyg_lib.sampler.neighbor_sample(offsets, neighbors, seeds, fanouts)
        return len(rows), len(nodes)

    yield "once", f"pyg-lib {pyg_lib.__version__} neighbor_sample", subgraph


def main():
    answers, sys.stdout = sys.stdout, sys.stderr  # libraries print as well
    os.environ.setdefault("DGLBACKEND", "pytorch")
    job = json.load(open(sys.argv[1]))
    if job["processor"] >= 0:
        os.sched_setaffinity(0, {job["processor"]})
    torch.set_num_threads(1)
    graph = Graph(job)
    seeds = np.load(os.path.join(os.path.dirname(sys.argv[1]), "seeds.npy")).astype(np.int64)
    batches = [torch.from_numpy(s.copy()) for s in seeds]
    report, samplers = {"versions": f"PyTorch {torch.__version__}", "samplers": [], "skipped": []}, []
    for make in (dgl_samplers, sparse_samplers, pyg_samplers):
        try:
            for kind, name, sample in make(graph):
                report["samplers"].append({"kind": kind, "name": name})
                samplers.append(sample)
        except (ImportError, OSError, RuntimeError, IndexError, AttributeError) as e:
            report["skipped"].append(f"{make.__name__}: {e}")
    print(json.dumps(report), file=answers, flush=True)
    for line in sys.stdin:
        turn = json.loads(line)
        sample, edges, nodes, start = samplers[turn["sampler"]], 0, 0, time.process_time()
        for s in batches:
            e, n = sample(s, turn["fanouts"])
            edges, nodes = edges + e, nodes + n
        print(json.dumps({"seconds": time.process_time() - start, "edges": edges, "nodes": nodes}), file=answers, flush=True)


if __name__ == "__main__":
    main()
