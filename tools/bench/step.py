"""A training step in plain PyTorch, for `go run ./tools/bench step`, which exports batches and weights, starts this, and
asks for turns.

PyTorch has several ways to average neighbours. Each is tried on whole steps first, and the fastest one is compared. The
tensors that a step needs, transposed adjacencies included, are made before the clock starts.
"""

import json
import sys
import time

import numpy as np
import torch
import torch.nn.functional as F


class Layer:
    """The edges of one layer in every form that a variant wants."""

    def __init__(self, directory, batch, layer):
        read = lambda name: np.load(f"{directory}/{batch}.{layer}.{name}.npy")
        offsets, neighbors, sources = read("offsets"), read("neighbors"), int(read("sources")[0])
        degrees = np.diff(offsets)
        dst = np.repeat(np.arange(len(degrees)), degrees)
        weights = torch.from_numpy((1 / np.maximum(degrees, 1)).astype(np.float32))
        self.count = len(degrees)
        self.offsets, self.starts = torch.from_numpy(offsets.astype(np.int64)), torch.from_numpy(offsets[:-1])
        self.neighbors32, self.neighbors = torch.from_numpy(neighbors), torch.from_numpy(neighbors.astype(np.int64))
        self.dst, self.inverse = torch.from_numpy(dst), weights[:, None]
        self.degrees = torch.from_numpy(degrees.astype(np.int64))
        by_edge = weights[self.dst]
        self.mean = torch.sparse_csr_tensor(torch.from_numpy(offsets), self.neighbors32, by_edge, (self.count, sources))
        order = np.argsort(neighbors, kind="stable")
        start = np.zeros(sources + 1, np.int32)
        np.cumsum(np.bincount(neighbors, minlength=sources), out=start[1:])
        self.transposed = torch.sparse_csr_tensor(
            torch.from_numpy(start), torch.from_numpy(dst[order].astype(np.int32)), by_edge[torch.from_numpy(order)], (sources, self.count)
        )


def index_add(x, e):
    return x.new_zeros(e.count, x.shape[1]).index_add_(0, e.dst, x.index_select(0, e.neighbors)) * e.inverse


def segment_reduce(x, e):
    return torch.segment_reduce(x.index_select(0, e.neighbors), "mean", lengths=e.degrees, initial=0)


def embedding_bag(x, e):
    return F.embedding_bag(e.neighbors32, x, e.starts, mode="mean")


def sparse_csr(x, e):
    return e.mean @ x


class BothWays(torch.autograd.Function):
    """A product with the CSR matrix, and backward with its transpose, instead of what autograd makes of it."""

    @staticmethod
    def forward(ctx, x, e):
        ctx.e = e
        return e.mean @ x

    @staticmethod
    def backward(ctx, dy):
        return ctx.e.transposed @ dy, None


def sparse_csr_both(x, e):
    return BothWays.apply(x, e)


class BagThenCSR(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, e):
        ctx.e = e
        return F.embedding_bag(e.neighbors32, x, e.starts, mode="mean")

    @staticmethod
    def backward(ctx, dy):
        return ctx.e.transposed @ dy, None


def embedding_bag_csr(x, e):
    return BagThenCSR.apply(x, e)


VARIANTS = [index_add, segment_reduce, embedding_bag, sparse_csr, sparse_csr_both, embedding_bag_csr]


class Steps:
    def __init__(self, directory, batches, layers, rate):
        self.layers, self.rate, self.initial = layers, rate, {}
        for layer in range(layers):
            for part in ("lin_l.weight", "lin_l.bias", "lin_r.weight"):
                name = f"convs.{layer}.{part}"
                self.initial[name] = torch.from_numpy(np.load(f"{directory}/{name}.npy"))
        self.batches = []
        for b in range(batches):
            rows = torch.from_numpy(np.load(f"{directory}/{b}.rows.npy").astype(np.float32))
            labels = torch.from_numpy(np.load(f"{directory}/{b}.labels.npy").astype(np.int64))
            self.batches.append((rows, labels, [Layer(directory, b, layer) for layer in range(layers)]))

    def turn(self, mean, count=None):
        """Trains on every batch once from the initial weights, and returns what a turn is asked for."""
        weights = {name: w.clone().requires_grad_() for name, w in self.initial.items()}
        adam = torch.optim.Adam(weights.values(), lr=self.rate, foreach=True)
        losses = []
        start, before = time.perf_counter(), time.process_time()
        for x, labels, edges in self.batches[:count]:
            for layer, e in enumerate(edges):
                w = lambda part: weights[f"convs.{layer}.{part}"]
                y = F.linear(mean(x, e), w("lin_l.weight"), w("lin_l.bias")) + F.linear(x[: e.count], w("lin_r.weight"))
                x = y if layer == self.layers - 1 else F.relu(y)
            loss = F.cross_entropy(x, labels)
            adam.zero_grad(set_to_none=True)
            loss.backward()
            adam.step()
            losses.append(loss.item())
        return {"seconds": time.perf_counter() - start, "processor": time.process_time() - before, "losses": losses}


def main():
    directory, batches, layers, threads, rate = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), float(sys.argv[5])
    torch.set_num_threads(threads)
    steps = Steps(directory, batches, layers, rate)
    count, times = min(3, batches), {}
    for variant in VARIANTS:
        try:
            steps.turn(variant, 1)  # to warm up
            times[variant] = min(steps.turn(variant, count)["processor"] for _ in range(3)) / count * 1e3
        except (RuntimeError, NotImplementedError) as e:
            print(f"{variant.__name__}: {e}", file=sys.stderr)
    best = min(times, key=times.get)
    report = {"torch": torch.__version__, "variants": {v.__name__: round(t, 1) for v, t in times.items()}, "chosen": best.__name__}
    print(json.dumps(report), flush=True)
    for _ in sys.stdin:
        print(json.dumps(steps.turn(best)), flush=True)


if __name__ == "__main__":
    main()
