"""The newest neighbours of a stream's nodes by PyTorch Geometric's LastNeighborLoader, for `go run ./tools/bench newest`, which exports the
events, starts this, and asks for turns. A batch is that of its examples/tgn.py: look up sources, destinations and negatives, each node once,
then insert the events."""

import json
import os
import sys
import time

import numpy as np
import torch
import torch_geometric
from torch_geometric.nn.models.tgn import LastNeighborLoader

folder = sys.argv[1]
with open(os.path.join(folder, "job.json")) as f:
    job = json.load(f)
torch.set_num_threads(1)
SRC, DST, NEGATIVE = (torch.from_numpy(np.load(os.path.join(folder, name + ".npy")).astype(np.int64)) for name in ("src", "dst", "negative"))
loader = LastNeighborLoader(job["nodes"], job["fanout"])


def neighbours_of_each(events):
    """The numbers of the events that lead to the neighbours of each event's source and destination, event by event, the newest first."""
    loader.reset_state()
    lists = []
    for e in range(events):
        for node in (SRC[e], DST[e]):
            lists.append(sorted(loader(node.view(1))[2].tolist(), reverse=True))
        loader.insert(SRC[e : e + 1], DST[e : e + 1])
    return lists


def turn(batch):
    loader.reset_state()
    roots = neighbours = 0
    start, before = time.perf_counter(), time.process_time()
    for lo in range(0, len(SRC), batch):
        src, dst = SRC[lo : lo + batch], DST[lo : lo + batch]
        nodes = torch.cat([src, dst, NEGATIVE[lo : lo + batch]]).unique()
        _, edges, _ = loader(nodes)
        loader.insert(src, dst)
        roots, neighbours = roots + len(nodes), neighbours + edges.size(1)
    return {"seconds": time.perf_counter() - start, "processor": time.process_time() - before, "roots": roots, "neighbors": neighbours}


def say(what):
    print(json.dumps(what), flush=True)


say({"versions": f"PyTorch {torch.__version__}, PyTorch Geometric {torch_geometric.__version__}", "lists": neighbours_of_each(job["compared"])})
for line in sys.stdin:
    say(turn(int(line)))
