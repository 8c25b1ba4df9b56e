"""The logits of all nodes the way PyTorch Geometric's examples have it, for `go run ./tools/bench infer`: a layer at a time over
all neighbours, which NeighborLoader brings in the order of the nodes, with features and hidden rows in memory maps of NumPy. The
files are those of the sealed dataset, the weights those of a run.

Each line on stdin is one turn, and is answered with a line of JSON: the seconds of each layer, and how far the logits are from ours.
"""

import json
import mmap
import os
import resource
import struct
import sys
import time

import numpy as np
import torch
import torch.nn.functional as F
import torch_geometric
from torch_geometric.data import Data
from torch_geometric.loader import NeighborLoader
from torch_geometric.nn import SAGEConv

from peers import Rows, whole


def tensors(path):
    """Those of a safetensors file."""
    with open(path, "rb") as f:
        (size,) = struct.unpack("<Q", f.read(8))
        head, data = json.loads(f.read(size)), f.read()
    found = {}
    for name, t in head.items():
        if name != "__metadata__":
            lo, hi = t["data_offsets"]
            found[name] = torch.from_numpy(np.frombuffer(data[lo:hi], np.float32).reshape(t["shape"]).copy())
    return found


class Hidden:
    """Rows of a layer in a memory map: rows[ids] is a tensor."""

    def __init__(self, path, nodes, width):
        self.table = np.lib.format.open_memmap(path, "w+", np.float32, (nodes, width))

    def __getitem__(self, ids):
        ids = ids.numpy()
        order = np.argsort(ids)  # in the order of the file, which is kinder to the disk
        out = np.empty((len(ids), self.table.shape[1]), np.float32)
        out[order] = self.table[ids[order]]
        return torch.from_numpy(out)

    def forget(self):
        self.table.flush()
        self.table._mmap.madvise(mmap.MADV_DONTNEED)
        with open(self.table.filename, "rb") as f:
            os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def main():
    answers, sys.stdout = sys.stdout, sys.stderr  # libraries print as well
    job = json.load(open(sys.argv[1]))
    torch.set_num_threads(job["threads"])
    features = Rows(job)
    offsets = whole(job["offsets"], np.int64, job["nodes"] + 1)
    neighbors = whole(job["neighbors"], np.uint32, job["edges"])
    dst = torch.repeat_interleave(torch.arange(job["nodes"]), offsets.diff())
    data = Data(edge_index=torch.stack([neighbors, dst]), num_nodes=job["nodes"])
    del neighbors, dst
    loader = NeighborLoader(data, [-1], batch_size=job["batch"], shuffle=False, is_sorted=True)
    weights = tensors(job["weights"])
    convs = []
    for layer in range(job["layers"]):
        out, dim = weights[f"convs.{layer}.lin_r.weight"].shape
        conv = SAGEConv(dim, out)
        conv.load_state_dict({k.removeprefix(f"convs.{layer}."): v for k, v in weights.items() if k.startswith(f"convs.{layer}.")})
        convs.append(conv.eval())
    print(json.dumps({"versions": f"PyTorch Geometric {torch_geometric.__version__}, PyTorch {torch.__version__}"}), file=answers, flush=True)
    where = os.path.dirname(sys.argv[1])
    for _ in sys.stdin:
        rows, report = features, {"seconds": []}
        features.advise(mmap.MADV_NORMAL)
        with torch.no_grad():
            for layer, conv in enumerate(convs):
                began = time.perf_counter()
                made = Hidden(os.path.join(where, f"hidden-{layer}.npy"), job["nodes"], conv.out_channels)
                last = layer == len(convs) - 1
                for b in loader:
                    x = rows[b.n_id]
                    y = conv((x, x[: b.batch_size]), b.edge_index[:, b.edge_index[1] < b.batch_size])
                    if not last:
                        if f"norms.{layer}.weight" in weights:
                            y = F.layer_norm(y, y.shape[1:], weights[f"norms.{layer}.weight"], weights[f"norms.{layer}.bias"])
                        y = F.relu(y)
                    made.table[b.n_id[: b.batch_size].numpy()] = y.numpy()
                made.forget()
                if layer > 0:
                    os.remove(os.path.join(where, f"hidden-{layer - 1}.npy"))
                rows = made
                report["seconds"].append(time.perf_counter() - began)
        ours = np.load(job["ours"], mmap_mode="r")
        report["furthest"] = report["largest"] = 0.0
        for at in range(0, job["nodes"], 1 << 16):
            theirs = rows.table[at : at + (1 << 16)]
            report["furthest"] = max(report["furthest"], float(np.abs(theirs - ours[at : at + (1 << 16)]).max()))
            report["largest"] = max(report["largest"], float(np.abs(theirs).max()))
        report["peak"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
        print(json.dumps(report), file=answers, flush=True)


main()
