"""A training step of GraphSAGE in PyTorch Geometric, on blocks of a batch of 1,000 at fanout 15, 10, 5: 500 k inputs, 130 k, 14 k and
1 k nodes, fanout 5, 10 and 15. It prints milliseconds a step, to compare with a step of gnnstore.

    python3 pyg.py [--device cuda] [--scale 1] [--steps 20] [--blocks FOLDER] [--compile]

FOLDER has the blocks of a batch, as tools/gpu/step writes them. Without it, sources are drawn at random. --compile adds variants
whose network torch.compile has compiled, which takes minutes.

A step is timed alone, from its first launch until it is done, and as one of 20 in a row, which are launched without waiting, as
in training. In a row, the next step's rows are copied up on a second stream while a step computes.
If a variant fails, its error is printed, and the next one runs.
"""

import argparse
import itertools
import json
import logging
import os
import statistics
import time
import warnings

import torch
import torch.nn.functional as F
import torch_geometric
from torch_geometric.nn import SAGEConv

INPUTS, HIDDEN, CLASSES = 128, 256, 172
NODES = [500_000, 130_000, 14_000, 1_000]
FANOUT = [5, 10, 15]
IN_A_ROW = 20


def blocks(scale, device):
    """The edges of each layer: a list of (sources, destinations, edge_index), sources drawn at random."""
    nodes = [max(16, int(n * scale)) for n in NODES]
    torch.manual_seed(1)
    made = []
    for fanout, sources, rows in zip(FANOUT, nodes, nodes[1:]):
        dst = torch.arange(rows).repeat_interleave(fanout)
        src = torch.randint(sources, (rows * fanout,))
        made.append((sources, rows, torch.stack([src, dst]).to(device)))
    return made


def read_blocks(folder, device):
    """The layers that tools/gpu/step has written."""
    with open(os.path.join(folder, "blocks.json")) as f:
        nodes = json.load(f)["nodes"]
    made = []
    for l, (sources, rows) in enumerate(zip(nodes, nodes[1:])):
        ends = []
        for end in ("src", "dst"):
            path = os.path.join(folder, f"{l}.{end}")
            ends.append(torch.from_file(path, size=os.path.getsize(path) // 4, dtype=torch.int32).long())
        made.append((sources, rows, torch.stack(ends).to(device)))
    return made


def as_index(layer):
    return layer[2]


def as_sorted(layer):
    """An EdgeIndex sorted by destination. Both its compressed forms are made before the clock starts."""
    from torch_geometric import EdgeIndex

    sources, rows, index = layer
    return EdgeIndex(index, sparse_size=(sources, rows), sort_order="col").fill_cache_()


def as_matrix(layer):
    sources, rows, index = layer
    ones = torch.ones(index.shape[1], device=index.device)
    return torch.sparse_coo_tensor(index.flip(0), ones, (rows, sources)).coalesce().to_sparse_csr()


class Sage(torch.nn.Module):
    def __init__(self):
        super().__init__()
        widths = [INPUTS, HIDDEN, HIDDEN, CLASSES]
        self.layers = torch.nn.ModuleList(SAGEConv(a, b) for a, b in zip(widths, widths[1:]))

    def forward(self, x, edges, rows):
        for i, (layer, e, n) in enumerate(zip(self.layers, edges, rows)):
            x = layer((x, x[:n]), e)
            if i < len(self.layers) - 1:
                x = x.relu()
        return x


class Clock:
    """Times work by events on a GPU, else by the host's clock."""

    def __init__(self, device):
        self.cuda = device == "cuda"

    def once(self, work):
        if not self.cuda:
            begin = time.perf_counter()
            work()
            return 1e3 * (time.perf_counter() - begin)
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        work()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end)

    def show(self, what, steps, work):
        for _ in range(5 if self.cuda else 1):
            work()
        times = sorted(self.once(work) for _ in range(steps))
        peak = f", peak {torch.cuda.max_memory_allocated() / 2**30:.2f} GiB" if self.cuda else ""
        print(f"{what}: {statistics.median(times):.3f} ms a step ({times[0]:.3f} … {times[-1]:.3f}){peak}", flush=True)

    def row(self, what, steps, work):
        """Times steps that are launched without waiting, by the host's clock. Prints the median of some turns."""
        times = []
        for _ in range(3 if self.cuda else 1):
            begin = self.now()
            for _ in range(steps):
                work()
            times.append(1e3 * (self.now() - begin) / steps)
        print(f"{what} in a row: {statistics.median(times):.3f} ms a step", flush=True)

    def now(self):
        if self.cuda:
            torch.cuda.synchronize()
        return time.perf_counter()


class Uploads:
    """Copies rows to the device on a second stream, one step ahead."""

    def __init__(self, host, device):
        self.host, self.device = host, device
        self.side = torch.cuda.Stream() if device == "cuda" else None
        self.ready = None

    def begin(self):
        with torch.cuda.stream(self.side):
            rows = self.host.to(self.device, non_blocking=True)
            return rows, self.side.record_event()

    def next(self):
        """The rows of this step. The copy for the next one begins."""
        if not self.side:
            return self.host.float()
        rows, came = self.ready or self.begin()
        stream = torch.cuda.current_stream()
        stream.wait_event(came)
        rows.record_stream(stream)  # else a later copy could reuse its memory while a step reads it
        self.ready = self.begin()
        return rows.float()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--scale", type=float, default=1)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--blocks")
    parser.add_argument("--compile", action="store_true")
    args = parser.parse_args()
    warnings.simplefilter("ignore")  # PyTorch warns that sparse matrices are in beta
    logging.getLogger("torch._dynamo").setLevel(logging.CRITICAL)  # it reports each break in the compiled graph
    device, clock = args.device, Clock(args.device)
    print(f"torch {torch.__version__}, torch_geometric {torch_geometric.__version__}, with {extensions()}")
    layers = read_blocks(args.blocks, device) if args.blocks else blocks(args.scale, device)
    rows = [layer[1] for layer in layers]
    x = torch.randn(layers[0][0], INPUTS, device=device)
    labels = torch.randint(CLASSES, (rows[-1],), device=device)
    host = torch.randn(layers[0][0], INPUTS).half()
    if clock.cuda:
        host = host.pin_memory()

    ways = (False, True) if args.compile else (False,)
    for form, compiled in itertools.product((as_index, as_sorted, as_matrix), ways):
        for tf32 in (False, True):
            torch.backends.cuda.matmul.allow_tf32 = tf32
            what = f"{form.__name__[3:]}{'-compiled' if compiled else ''}, {'TF32' if tf32 else 'f32'}"
            try:
                edges = [form(layer) for layer in layers]
                torch.manual_seed(2)
                model = Sage().to(device)
                if compiled:
                    torch.compiler.reset()
                    model = torch.compile(model, dynamic=False)
                optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=clock.cuda)

                def step(inputs=None):
                    optimizer.zero_grad(set_to_none=True)
                    loss = F.cross_entropy(model(x if inputs is None else inputs, edges, rows), labels)
                    loss.backward()
                    optimizer.step()
                    return loss

                first = step().item()
                clock.show(f"{what}, step", args.steps, step)
                clock.show(f"{what}, upload of f16 rows and step", args.steps,
                           lambda: step(host.to(device, non_blocking=True).float()))
                uploads = Uploads(host, device)
                in_a_row = IN_A_ROW if clock.cuda else args.steps
                clock.row(f"{what}, steps", in_a_row, step)
                clock.row(f"{what}, upload of f16 rows and steps", in_a_row, lambda: step(uploads.next()))
                print(f"{what}, loss {first:.4f} then {step().item():.4f}")
            except Exception as e:  # the next variant may work
                print(f"{what}: {type(e).__name__}: {str(e)[:300]}", flush=True)
            if clock.cuda:
                torch.cuda.reset_peak_memory_stats()
    clock.show("upload of f16 rows alone", args.steps, lambda: host.to(device, non_blocking=True))


def extensions():
    """The compiled companions of PyTorch Geometric that are installed; without them it is slower."""
    found = [name for name in ("pyg_lib", "torch_scatter", "torch_sparse") if has(name)]
    return ", ".join(found) or "no compiled companion"


def has(name):
    try:
        __import__(name)
        return True
    except Exception:
        return False


if __name__ == "__main__":
    main()
