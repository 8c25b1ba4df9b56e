"""A step of TGN in plain PyTorch, for `go run ./tools/bench stream`, which exports batches and weights, starts this, and asks for turns.

Rows are nodes at a time. "distinct" computes each once, as gnnstore does; "every row" computes one for each event's ends and negatives, and for
each of their neighbours, as TGL does. Attention is over neighbours padded to the fanout, or over lists without padding: whichever is faster.
"""

import json
import os
import sys
import time

import numpy as np
import torch
import torch.nn.functional as F

folder = sys.argv[1]
with open(os.path.join(folder, "job.json")) as f:
    job = json.load(f)
torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
HIDDEN, HEADS, FANOUT = job["hidden"], job["heads"], job["fanout"]
RATES = torch.from_numpy((10 ** (-9 * np.arange(job["time"]) / max(1, job["time"] - 1))).astype(np.float32))


def read(name):
    return np.load(os.path.join(folder, name + ".npy"))


class Batch:
    """A batch whose rows, roots and lists are laid out before the clock starts."""

    def __init__(self, i, every_row):
        def get(name):
            return read(f"{i}.{name}")

        node, age, root = get("node").astype(np.int64), get("age"), get("root").astype(np.int64)
        start, end, near = get("start").astype(np.int64), get("end").astype(np.int64), get("near").astype(np.int64)
        event, since = get("event").astype(np.int64), get("since")
        ends = np.concatenate([get("src"), get("dst"), get("negative")]).astype(np.int64)
        if every_row:  # each end is a root, and each root and neighbour a row
            lists = [np.arange(start[e], end[e]) for e in ends]
            positions = np.concatenate(lists)
            lengths = np.array([len(p) for p in lists])
            rows = np.concatenate([root[ends], near[positions]])
            node, age = node[rows], age[rows]
            root = np.arange(len(ends))
            near, event, since = len(ends) + np.arange(len(positions)), event[positions], since[positions]
            end = np.cumsum(lengths)
            start, ends = end - lengths, np.arange(len(ends))
        third = len(ends) // 3
        t = torch.from_numpy
        self.node, self.age, self.root = t(node), t(age.astype(np.float32)), t(root)
        self.near, self.event, self.since = t(near), t(event), t(since.astype(np.float32))
        self.of = t(np.repeat(np.arange(len(root)), end - start))
        self.src, self.dst, self.negative = t(ends[:third]), t(ends[third : 2 * third]), t(ends[2 * third :])
        self.mail, self.features = t(get("mail")), t(get("features"))
        slots = np.zeros((len(root), FANOUT), np.int64)
        mask = np.zeros((len(root), FANOUT), bool)
        for r in range(len(root)):
            n = end[r] - start[r]
            slots[r, :n], mask[r, :n] = np.arange(start[r], end[r]), True
        self.slots, self.mask, self.empty = t(slots), t(mask), t(~mask.any(1))


class TGN(torch.nn.Module):
    def __init__(self):
        super().__init__()
        mail = 2 * HIDDEN + job["event"]
        self.cell = torch.nn.GRUCell(mail + job["time"], HIDDEN)
        self.query = torch.nn.Linear(HIDDEN + job["time"], HIDDEN)
        self.key = torch.nn.Linear(HIDDEN + job["event"] + job["time"], HIDDEN)
        self.value = torch.nn.Linear(HIDDEN + job["event"] + job["time"], HIDDEN)
        self.mix = torch.nn.Linear(2 * HIDDEN, HIDDEN)
        self.norm = torch.nn.LayerNorm(HIDDEN)
        self.source, self.destination, self.out = torch.nn.Linear(HIDDEN, HIDDEN), torch.nn.Linear(HIDDEN, HIDDEN), torch.nn.Linear(HIDDEN, 1)

    NAMES = {
        "cell.weight_ih": "memory_updater.updater.weight_ih", "cell.weight_hh": "memory_updater.updater.weight_hh",
        "cell.bias_ih": "memory_updater.updater.bias_ih", "cell.bias_hh": "memory_updater.updater.bias_hh",
        "query": "layers.l0h0.w_q", "key": "layers.l0h0.w_k", "value": "layers.l0h0.w_v", "mix": "layers.l0h0.w_out", "norm": "layers.l0h0.layer_norm",
        "source": "edge_predictor.src_fc", "destination": "edge_predictor.dst_fc", "out": "edge_predictor.out_fc",
    }

    def restart(self):
        with torch.no_grad():
            for name, p in self.named_parameters():
                ours = self.NAMES.get(name)
                if ours is None:
                    module, kind = name.rsplit(".", 1)
                    ours = self.NAMES[module] + "." + kind
                p.copy_(torch.from_numpy(read(ours)).reshape(p.shape))

    def forward(self, b, padded):
        mail = b.mail[b.node]
        h = self.cell(torch.cat([mail, torch.cos(b.age[:, None] * RATES)], 1), mail[:, :HIDDEN])
        own = h[b.root]
        q = self.query(torch.cat([own, torch.ones(len(own), job["time"])], 1))
        inputs = torch.cat([h[b.near], b.features[b.event], torch.cos(b.since[:, None] * RATES)], 1)
        k, v = self.key(inputs), self.value(inputs)
        if padded:
            k, v = k[b.slots].view(len(own), FANOUT, HEADS, -1), v[b.slots].view(len(own), FANOUT, HEADS, -1)
            scores = F.leaky_relu((q.view(len(own), 1, HEADS, -1) * k).sum(-1), 0.2).masked_fill(~b.mask[:, :, None], -1e9)
            alpha = torch.softmax(scores, 1).masked_fill(b.empty[:, None, None], 0)
            o = (alpha[..., None] * v).sum(1).reshape(len(own), HIDDEN)
        else:
            scores = F.leaky_relu((q[b.of] * k).view(-1, HEADS, HIDDEN // HEADS).sum(-1), 0.2)
            most = torch.full((len(own), HEADS), -torch.inf).index_reduce_(0, b.of, scores.detach(), "amax")
            e = torch.exp(scores - most[b.of])
            total = torch.zeros(len(own), HEADS).index_add_(0, b.of, e)
            weighted = (e / total[b.of])[..., None] * v.view(-1, HEADS, HIDDEN // HEADS)
            o = torch.zeros(len(own), HIDDEN).index_add_(0, b.of, weighted.reshape(-1, HIDDEN))
        z = self.norm(torch.relu(self.mix(torch.cat([o, own], 1))))
        source = self.source(z[b.src])
        there = self.out(torch.relu(source + self.destination(z[b.dst])))
        others = self.out(torch.relu(source + self.destination(z[b.negative])))
        return F.softplus(-there).mean() + F.softplus(others).mean()


model = TGN()
layouts = {"distinct": [Batch(i, False) for i in range(job["batches"])], "every row": [Batch(i, True) for i in range(job["batches"])]}


def turn(batches, padded, some):
    model.restart()
    optimizer = torch.optim.Adam(model.parameters(), lr=job["rate"])
    losses, began, processor = [], time.perf_counter(), time.process_time()
    for b in batches[:some]:
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=job["bf16"]):
            loss = model(b, padded)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return {"seconds": time.perf_counter() - began, "processor": time.process_time() - processor, "losses": losses}


variants, chosen = {}, {}
for layout, batches in layouts.items():
    for padded in (True, False):
        turn(batches, padded, 2)
        some = min(5, len(batches))
        variants[f"{layout}, {'padded' if padded else 'lists'}"] = round(1e3 * turn(batches, padded, some)["seconds"] / some, 1)
    chosen[layout] = min((True, False), key=lambda p: variants[f"{layout}, {'padded' if p else 'lists'}"])
print(json.dumps({"torch": torch.__version__, "variants": variants, "rivals": list(layouts)}), flush=True)
for line in sys.stdin:
    layout = line.strip()
    print(json.dumps(turn(layouts[layout], chosen[layout], None)), flush=True)
