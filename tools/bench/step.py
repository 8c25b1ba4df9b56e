"""A training step in PyTorch, for `go run ./tools/bench step`, which exports batches and weights, starts this, and asks for turns.
A graph of one type has a GraphSAGE in plain PyTorch. One of several has R-GraphSAGE, in plain PyTorch and as PyTorch Geometric's
HeteroConv of SAGEConv, where that is installed.

PyTorch has several ways to average neighbours. Each is tried on whole steps first, and the fastest one of each library is compared.
With bf16 each is tried by autocast too, whose fastest one is compared beside the fastest in float32.
The tensors that a step needs, transposed adjacencies included, are made before the clock starts.
"""

import json
import os
import sys
import time

import numpy as np
import torch
import torch.nn.functional as F


class Edges:
    """The edges of one relation in a layer, in every form that a variant wants."""

    def __init__(self, offsets, neighbors, sources):
        degrees = np.diff(offsets)
        dst = np.repeat(np.arange(len(degrees)), degrees)
        weights = torch.from_numpy((1 / np.maximum(degrees, 1)).astype(np.float32))
        self.count = len(degrees)
        self.offsets, self.starts = torch.from_numpy(offsets.astype(np.int64)), torch.from_numpy(offsets[:-1])
        self.neighbors32, self.neighbors = torch.from_numpy(neighbors), torch.from_numpy(neighbors.astype(np.int64))
        self.dst, self.inverse = torch.from_numpy(dst), weights[:, None]
        self.degrees = torch.from_numpy(degrees.astype(np.int64))
        by_edge = weights[self.dst]
        shape = (self.count, sources)
        self.mean = torch.sparse_csr_tensor(torch.from_numpy(offsets), self.neighbors32, by_edge, shape)
        self.ones = torch.sparse_csr_tensor(self.offsets, self.neighbors, torch.ones(len(neighbors)), shape)
        self.index = torch.stack([self.neighbors, self.dst])
        order = np.argsort(neighbors, kind="stable")
        start = np.zeros(sources + 1, np.int32)
        np.cumsum(np.bincount(neighbors, minlength=sources), out=start[1:])
        self.transposed = torch.sparse_csr_tensor(
            torch.from_numpy(start), torch.from_numpy(dst[order].astype(np.int32)), by_edge[torch.from_numpy(order)], (sources, self.count)
        )


class Layer:
    """What a layer of a batch has: how many nodes it makes of each type, and the edges of each relation that has some."""

    def __init__(self, read, relations):
        sources, self.made = read("read"), [int(n) for n in read("made")]
        self.edges = {}
        for r, relation in enumerate(relations):
            neighbors = read(f"{r}.neighbors")
            if len(neighbors) > 0:
                self.edges[r] = Edges(read(f"{r}.offsets"), neighbors, int(sources[relation["src"]]))


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


def sparse_reduce(x, e):
    return torch.sparse.mm(e.ones, x, "mean")


MEANS = [index_add, segment_reduce, embedding_bag, sparse_csr, sparse_csr_both, embedding_bag_csr, sparse_reduce]


def in_float32(mean):
    """The same mean of rows that autocast has made bfloat16."""
    widened = lambda x, e: mean(x.float(), e)
    widened.__name__ = mean.__name__ + " in float32"
    return widened


class Plain:
    """The network in plain PyTorch: y = S·x + b + the sum over relations of W·mean."""

    def __init__(self, job, mean, rows=None):
        self.job, self.mean, self.rows = job, mean, rows or torch.float32
        self.library, self.name, self.autocast = "PyTorch", mean.__name__, rows is not None
        if self.autocast:
            self.library += " autocast"
            self.name += f", rows {str(rows).removeprefix('torch.')}"

    def names(self, layer, part):
        """The parameters of a type's own row, or of a relation, as the Go side calls them."""
        if not self.job["typed"]:
            return {"weight": f"convs.{layer}.lin_r.weight", "bias": f"convs.{layer}.lin_l.bias", "lin_l": f"convs.{layer}.lin_l.weight"}
        part = part.replace(".", "#")
        return {"weight": f"skips.{layer}.{part}.weight", "bias": f"skips.{layer}.{part}.bias", "lin_l": f"convs.{layer}.<{part}>.lin_l.weight"}

    def begin(self, initial):
        weights = {name: w.clone().requires_grad_() for name, w in initial.items()}
        return list(weights.values()), lambda x, layers: self.forward(weights, x, layers)

    def forward(self, weights, x, layers):
        types, relations = self.job["types"], self.job["relations"]
        for l, layer in enumerate(layers):
            y = {}
            for t, made in enumerate(layer.made):
                if made > 0 and self.job["makes"][l][t]:
                    own = self.names(l, types[t])
                    y[t] = F.linear(x[t][:made], weights[own["weight"]], weights[own["bias"]])
            for r, e in layer.edges.items():
                relation = relations[r]
                if relation["dst"] in y:
                    w = weights[self.names(l, "___".join(relation["key"]))["lin_l"]]
                    y[relation["dst"]] = y[relation["dst"]] + F.linear(self.mean(x[relation["src"]], e), w)
            x = y if l == len(layers) - 1 else {t: F.relu(rows) for t, rows in y.items()}
        return x[self.job["target"]]


class Geometric:
    """The same network as HeteroConv of SAGEConv, beside a Linear for each type's own row. Of its ways to hold edges, form is one."""

    def __init__(self, job, form):
        import torch_geometric

        self.job, self.form, self.rows, self.autocast = job, form, torch.float32, job["bf16"]
        self.library, self.name = f"PyTorch Geometric {torch_geometric.__version__} HeteroConv" + (" autocast" if self.autocast else ""), form

    def begin(self, initial):
        from torch_geometric.nn import HeteroConv, SAGEConv

        types, relations = self.job["types"], self.job["relations"]
        net = torch.nn.ModuleDict({"convs": torch.nn.ModuleList(), "skips": torch.nn.ModuleList()})
        last = len(self.job["draws"]) - 1
        for l, drawn in enumerate(self.job["draws"]):
            out = self.job["classes"] if l == last else self.job["hidden"]
            columns = self.job["columns"] if l == 0 else [self.job["hidden"]] * len(types)
            conv = lambda r: SAGEConv((columns[r["src"]], columns[r["dst"]]), out, root_weight=False, bias=False)
            net["convs"].append(HeteroConv({tuple(r["key"]): conv(r) for r, is_drawn in zip(relations, drawn) if is_drawn}))
            linear = {t: torch.nn.Linear(columns[i], out) for i, t in enumerate(types) if self.job["makes"][l][i]}
            net["skips"].append(torch.nn.ModuleDict({t.replace(".", "#"): m for t, m in linear.items()}))
        theirs = lambda name: name.replace(".<", ".convs.<", 1)  # HeteroConv holds its convolutions in a module of its own
        net.load_state_dict({theirs(name): w for name, w in initial.items()})
        return list(net.parameters()), lambda x, layers: self.forward(net, x, layers)

    def forward(self, net, x, layers):
        types, relations = self.job["types"], self.job["relations"]
        for l, layer in enumerate(layers):
            rows, edges = {}, {}
            for r, e in layer.edges.items():
                relation = relations[r]
                name = tuple(relation["key"])
                rows[name] = (x[relation["src"]], x[relation["dst"]][: e.count])
                edges[name] = e.index if self.form == "edge_index" else e.ones
            y = net["convs"][l](rows, edges)
            sums = {}
            for t, made in enumerate(layer.made):
                if made > 0 and self.job["makes"][l][t]:
                    sums[t] = net["skips"][l][types[t].replace(".", "#")](x[t][:made])
                    if types[t] in y:
                        sums[t] = sums[t] + y[types[t]]
            x = sums if l == len(layers) - 1 else {t: F.relu(s) for t, s in sums.items()}
        return x[self.job["target"]]


class Steps:
    def __init__(self, directory, job):
        self.rate, self.initial, self.batches = job["rate"], {}, []
        read = lambda name: np.load(os.path.join(directory, f"{name}.npy"))
        for name in os.listdir(directory):
            if name.startswith(("convs.", "skips.")):
                name = name.removesuffix(".npy")
                self.initial[name] = torch.from_numpy(read(name))
        for b in range(job["batches"]):
            rows = {}
            for t in range(len(job["types"])):
                if os.path.exists(os.path.join(directory, f"{b}.{t}.rows.npy")):
                    rows[t] = torch.from_numpy(read(f"{b}.{t}.rows").astype(np.float32))
            labels = torch.from_numpy(read(f"{b}.labels").astype(np.int64))
            layers = [Layer(lambda part: read(f"{b}.{l}.{part}"), job["relations"]) for l in range(job["layers"])]
            self.batches.append((rows, labels, layers))

    def turn(self, way, count=None):
        """Trains on every batch once from the initial weights, and returns what a turn is asked for."""
        parameters, forward = way.begin(self.initial)
        adam = torch.optim.Adam(parameters, lr=self.rate, foreach=True)
        losses, batches = [], self.batches[:count]
        if way.rows != torch.float32:
            batches = [({t: r.to(way.rows) for t, r in rows.items()}, labels, layers) for rows, labels, layers in batches]
        start, before = time.perf_counter(), time.process_time()
        for rows, labels, layers in batches:
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=way.autocast):
                loss = F.cross_entropy(forward(rows, layers), labels)
            adam.zero_grad(set_to_none=True)
            loss.backward()
            adam.step()
            losses.append(loss.item())
        return {"seconds": time.perf_counter() - start, "processor": time.process_time() - before, "losses": losses}


def main():
    answers, sys.stdout = sys.stdout, sys.stderr  # libraries print as well
    directory = sys.argv[1]
    with open(os.path.join(directory, "job.json")) as f:
        job = json.load(f)
    torch.set_num_threads(job["threads"])
    steps, skipped = Steps(directory, job), []
    ways = [Plain(job, mean) for mean in MEANS]
    if job["bf16"]:
        ways += [Plain(job, mean, rows) for mean in MEANS + [in_float32(m) for m in MEANS] for rows in (torch.float32, torch.bfloat16)]
    if job["typed"]:
        try:
            ways += [Geometric(job, form) for form in ("edge_index", "sparse_csr")]
        except ImportError as e:
            skipped.append(f"PyTorch Geometric: {e}")
    count, times = min(3, job["batches"]), {}
    for way in ways:
        try:
            steps.turn(way, 1)  # to warm up
            times[way] = min(steps.turn(way, count)["processor"] for _ in range(3)) / count * 1e3
        except (RuntimeError, NotImplementedError) as e:
            print(f"{way.library}, {way.name}: {e}", file=sys.stderr)
            skipped.append(f"{way.library}, {way.name}: {str(e).splitlines()[0]}")
    label = lambda way: f"{way.library}, {way.name}"
    best = {}
    for way, took in times.items():
        if way.library not in best or took < times[best[way.library]]:
            best[way.library] = way
    rivals = {label(way): way for way in best.values()}
    report = {"torch": torch.__version__, "variants": {label(w): round(t, 1) for w, t in times.items()}, "rivals": list(rivals), "skipped": skipped}
    print(json.dumps(report), file=answers, flush=True)
    for line in sys.stdin:
        print(json.dumps(steps.turn(rivals[line.rstrip("\n")])), file=answers, flush=True)


if __name__ == "__main__":
    main()
