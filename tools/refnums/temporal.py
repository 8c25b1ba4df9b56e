"""Records what PyTorch computes for the networks for streams, for the tests of train/model.

    env/bin/python tools/refnums/temporal.py train/model/testdata/refnums/temporal.json

It needs what refnums.py needs. The modules are written as the equations are, one row at a time and with inputs side by side: GRUCell, RNNCell,
Linear and LayerNorm are PyTorch's, names are those of TGL's checkpoints. A batch has nodes with state, rows (a node at a time), of which
some are roots, neighbours of roots with the features of an event and the time since, a root without neighbours, rows that several roots
have for neighbours, and memories that were written after the time of a row.

A case has the initial weights, and what follows from them: the memory of every row, the embedding of every root, the scores of pairs,
the gradient of every parameter, and the losses of ten steps of torch.optim.Adam. Inputs are float32 numbers, all computing is in float64.
"""

import json
import platform
import sys

import numpy as np
import torch

from refnums import LR, STEPS, numbers, tensors

D, T, EVENT, FEATURES, HEADS, MAILS = 6, 4, 3, 6, 2, 3
NODES, EVENTS = 8, 7
ROOTS = [0, 1, 2, 3, 4, 5, 9, 7, 8]
THERE, OTHERS = [[0, 3], [1, 4], [2, 5], [0, 5]], [[0, 6], [1, 7], [2, 8], [2, 6]]  # of both so many that means are exact
NEAR = [[10, 11], [], [10, 3, 11], [6], [0, 10, 6], [11], [1, 2], [10], [3]]  # rows, by root


def draw(rng):
    even = lambda x: (np.round(np.asarray(x) * 1024) / 1024).tolist()  # times with few digits
    rows = [[int(v), t] for v, t in zip(rng.integers(0, NODES, 12), even(rng.uniform(1, 6, 12)))]
    rows[11][0] = rows[10][0]  # one node at two times
    f32 = lambda *shape: [float(x) for x in rng.standard_normal(shape).astype(np.float32).reshape(-1)]
    return {
        "memory": f32(NODES, D), "mail": f32(NODES, MAILS, 2 * D + EVENT), "features": f32(NODES, FEATURES), "events": f32(EVENTS, EVENT),
        "memory_time": even(rng.uniform(0, 4, NODES)), "mail_time": even(rng.uniform(0, 4, (NODES, MAILS))),
        "rows": rows, "roots": ROOTS, "there": THERE, "others": OTHERS,
        "near": [[[r, int(rng.integers(0, EVENTS)), even(rng.uniform(0, 3))] for r in list_] for list_ in NEAR],
    }


class Clock(torch.nn.Module):
    """TGL's TimeEncode."""

    def __init__(self):
        super().__init__()
        self.w = torch.nn.Linear(1, T)
        self.w.weight = torch.nn.Parameter((1 / 10 ** torch.linspace(0, 9, T, dtype=torch.float64)).float().reshape(T, 1))
        torch.nn.init.zeros_(self.w.bias)

    def forward(self, t):
        return torch.cos(self.w.weight[:, 0] * t + self.w.bias)


def attend(q, keys, values):
    """LeakyReLU of unscaled products, softmax over the list, heads side by side. The slope is a float32, as other inputs are."""
    out = []
    for h in range(HEADS):
        part = slice(h * D // HEADS, (h + 1) * D // HEADS)
        scores = torch.nn.functional.leaky_relu(torch.stack([q[part] @ k[part] for k in keys]), float(np.float32(0.2)))
        out.append(sum(a * v[part] for a, v in zip(torch.softmax(scores, 0), values)))
    return torch.cat(out)


class Updater(torch.nn.Module):
    def __init__(self, case):
        super().__init__()
        self.kind, mail = case["model"], 2 * D + case["event"]
        self.time_enc = Clock()
        if self.kind == "tgn":
            self.updater = torch.nn.GRUCell(mail + T, D)
        elif self.kind == "jodie":
            self.updater = torch.nn.RNNCell(mail + T, D)
        else:
            self.w_q, self.mlp, self.layer_norm = torch.nn.Linear(D, D), torch.nn.Linear(D, D), torch.nn.LayerNorm(D)
            self.w_k, self.w_v = torch.nn.Linear(mail + T, D), torch.nn.Linear(mail + T, D)

    def forward(self, memory, mails, age, mail_ages):
        if self.kind != "apan":
            return self.updater(torch.cat([mails[0], self.time_enc(age)])[None], memory[None])[0]
        rows = [torch.cat([mail, self.time_enc(t)]) for mail, t in zip(mails, mail_ages)]
        o = attend(self.w_q(memory), [self.w_k(m) for m in rows], [self.w_v(m) for m in rows])
        return torch.relu(self.mlp(self.layer_norm(o + memory)))


class Attention(torch.nn.Module):
    def __init__(self, width, event):
        super().__init__()
        self.time_enc, self.layer_norm = Clock(), torch.nn.LayerNorm(D)
        self.w_q, self.w_out = torch.nn.Linear(width + T, D), torch.nn.Linear(D + width, D)
        self.w_k, self.w_v = torch.nn.Linear(width + event + T, D), torch.nn.Linear(width + event + T, D)

    def forward(self, own, neighbors):
        q = self.w_q(torch.cat([own, self.time_enc(torch.zeros(()))]))
        rows = [torch.cat([h, e, self.time_enc(t)]) for h, e, t in neighbors]
        o = attend(q, [self.w_k(r) for r in rows], [self.w_v(r) for r in rows]) if rows else torch.zeros(D, dtype=own.dtype)
        return self.layer_norm(torch.relu(self.w_out(torch.cat([o, own]))))


class Norm(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.LayerNorm(D)


class Drift(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.time_emb = torch.nn.Linear(1, D)


class Predictor(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.src_fc, self.dst_fc, self.out_fc = torch.nn.Linear(D, D), torch.nn.Linear(D, D), torch.nn.Linear(D, 1)

    def forward(self, u, v):
        return self.out_fc(torch.relu(self.src_fc(u) + self.dst_fc(v)))


class Net(torch.nn.Module):
    def __init__(self, case, data):
        super().__init__()
        self.case, self.data, node, stateless = case, data, case["node"], case.get("stateless", False)
        self.memory_updater = torch.nn.Module() if stateless else Updater(case)
        if node > 0 and node != D:
            self.memory_updater.node_feat_map = torch.nn.Linear(node, D)
        width = 0 if stateless and node == 0 else D
        self.layers = torch.nn.ModuleDict({"l0h0": Attention(width, case["event"]) if case["model"] == "tgn" else Norm()})
        if case["model"] == "jodie":
            self.layers["l0h0t"] = Drift()
        self.edge_predictor = Predictor()
        tensor = lambda name, *shape: torch.tensor(data[name], dtype=torch.float64).reshape(shape)
        self.memory, self.mail = tensor("memory", NODES, D), tensor("mail", NODES, MAILS, -1)[:, :, : 2 * D + case["event"]]
        self.features, self.events = tensor("features", NODES, -1)[:, :node], tensor("events", EVENTS, -1)[:, : case["event"]]
        self.memory_time, self.mail_time = tensor("memory_time", NODES), tensor("mail_time", NODES, MAILS)

    def forward(self):
        case, scale, memories, rows = self.case, self.case["time_scale"], [], []
        for v, t in self.data["rows"]:
            parts = []
            if not case.get("stateless"):
                memories.append(self.memory_updater(self.memory[v], self.mail[v], scale * (t - self.memory_time[v]), scale * (t - self.mail_time[v])))
                parts.append(memories[-1])
            if case["node"] > 0:
                x = self.features[v]
                parts.append(self.memory_updater.node_feat_map(x) if case["node"] != D else x)
            rows.append(sum(parts) if parts else torch.zeros(0, dtype=torch.float64))
        z = []
        for r, near in zip(self.data["roots"], self.data["near"]):
            if case["model"] == "tgn":
                z.append(self.layers["l0h0"](rows[r], [(rows[n], self.events[e], torch.tensor(scale * t)) for n, e, t in near]))
                continue
            z.append(self.layers["l0h0"].norm(rows[r]))
            if case["model"] == "jodie":
                v, t = self.data["rows"][r]
                away = ((t - self.memory_time[v]) * scale / (t * scale + 1)).float().double()
                z[-1] = z[-1] * (1 + self.layers["l0h0t"].time_emb(away[None]))
        score = lambda pairs: torch.cat([self.edge_predictor(z[u], z[v]) for u, v in pairs])
        return memories, torch.stack(z), score(self.data["there"]), score(self.data["others"])


def loss(there, others):
    return torch.nn.functional.softplus(-there).mean() + torch.nn.functional.softplus(others).mean()


def run(case, seed, data):
    torch.manual_seed(seed)
    net = Net(case, data)
    with torch.no_grad():
        for p in net.parameters():  # some begin at 0 or 1, where a missing one would go unseen
            p += 0.1 * torch.randn_like(p)
        if case["fixed_time"]:
            for name, p in net.named_parameters():
                if "time_enc" in name:
                    fresh = Clock()
                    p.copy_(fresh.w.weight if p.shape == fresh.w.weight.shape else fresh.w.bias)
                    p.requires_grad_(False)
    learnt = lambda: ((name, p) for name, p in net.named_parameters() if p.requires_grad)
    case["weights"] = tensors(learnt())
    net = net.double()
    memories, z, there, others = net()
    loss(there, others).backward()
    case["memories"] = numbers(torch.stack(memories)) if memories else []
    case["embeddings"], case["scores"] = numbers(z), numbers(torch.cat([there, others]))
    case["gradients"] = tensors((name, p.grad) for name, p in learnt())
    optimizer = torch.optim.Adam([p for _, p in learnt()], lr=LR)
    case["losses"] = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        _, _, there, others = net()
        l = loss(there, others)
        case["losses"].append(float(f"{l.item():.9g}"))
        l.backward()
        optimizer.step()
    return case


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: temporal.py OUT.json")
    data = draw(np.random.default_rng(20060))
    case = lambda model, **others: {"model": model, "event": EVENT, "node": 0, "fixed_time": False, "time_scale": 1, **others}
    cases = [
        case("tgn"), case("tgn", event=0, node=5), case("tgn", node=D), case("tgn", fixed_time=True, time_scale=1e5),
        case("tgn", stateless=True), case("tgn", stateless=True, node=5),
        case("jodie"), case("jodie", node=5, fixed_time=True, time_scale=1e5), case("apan"), case("apan", event=0, fixed_time=True, time_scale=1e5),
    ]
    out = {
        "made_with": {"torch": torch.__version__, "numpy": np.__version__, "python": platform.python_version()},
        "hidden": D, "time": T, "heads": HEADS, "mails": MAILS, "lr": LR, **data,
    }
    with open(sys.argv[1], "w") as f:
        text = json.dumps({**out, "cases": [run(c, 60 + i, data) for i, c in enumerate(cases)]}, separators=(",", ":"))
        f.write(text.replace('{"model"', '\n{"model"') + "\n")
    print(json.dumps(out["made_with"]))


if __name__ == "__main__":
    main()
