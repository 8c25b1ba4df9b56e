"""Times an epoch of DGL's GraphBolt in memory, in turns with one of gnnstore.

    gnnstore export arxiv.gnn arxiv-gb --format graphbolt
    env/bin/python tools/peers/graphbolt.py arxiv-gb arxiv.gnn --gnnstore ./gnnstore

Both train GraphSAGE of 3 layers, 256 hidden, with fanouts 15, 10 and 5, batches of 1000, no dropout and no normalisation, by Adam at
0.003. GraphBolt is used as its documents say: OnDiskDataset, ItemSampler, sample_neighbor, fetch_feature, DataLoader, dgl.nn.SAGEConv.
Its features are float32 in memory, and the fastest number of worker processes is chosen first, by steps that are not timed. gnnstore's
features are as they are in the dataset; its time is that of the last of two epochs. With --matmul bf16, ours multiplies in bfloat16, and
GraphBolt trains with torch.autocast too, if that works and is faster. The script prints a line for each turn, and the median and the
range of theirs divided by ours.

It needs Python 3.11 and torch==2.2.1 torchdata==0.7.1 dgl==2.1.0 "numpy<2" pandas pydantic pyyaml scipy scikit-learn.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

# These name another processor, or pin threads.
UNSET = ("OPENBLAS_CORETYPE", "KMP_AFFINITY", "GOMP_CPU_AFFINITY")
FANOUTS, HIDDEN, BATCH, RATE = (15, 10, 5), 256, 1000, 0.003


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("folder", type=pathlib.Path, help="what gnnstore export --format graphbolt wrote")
    p.add_argument("dataset", help="the dataset that was exported")
    p.add_argument("--gnnstore", default="gnnstore", help="the program")
    p.add_argument("--threads", type=int, default=os.cpu_count())
    p.add_argument("--turns", type=int, default=5)
    p.add_argument("--matmul", choices=("f32", "bf16"), default="f32", help="precision of products")
    args = p.parse_args()
    for name in UNSET:
        os.environ.pop(name, None)
    os.environ["OMP_NUM_THREADS"] = str(args.threads)  # torch reads it when it is imported
    theirs = GraphBolt(args.folder, args.threads, args.matmul == "bf16")
    way = "autocast" if theirs.autocast else "float32"
    print(f"DGL {theirs.version}, torch {theirs.torch.__version__}, {way}, {theirs.workers} workers, {args.threads} threads", flush=True)
    ratios = []
    for turn in range(1, args.turns + 1):
        our, their = ours(args), theirs.epoch()
        ratios.append(their / our)
        print(f"turn {turn}: gnnstore {our:.2f} s, GraphBolt {their:.2f} s", flush=True)
    print(f"theirs / ours: {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})")


def ours(args):
    """Returns the seconds of the second epoch of a run."""
    fanout = ",".join(map(str, FANOUTS))
    with tempfile.TemporaryDirectory() as tmp:
        flags = f"--layers 3 --hidden {HIDDEN} --fanout {fanout} --batch {BATCH} --lr {RATE} --norm none --dropout 0 --epochs 2"
        flags += f" --eval-memory 0 --eval-nodes 1 --matmul {args.matmul} --json --run {tmp}/run"
        env = dict(os.environ, GOMAXPROCS=str(args.threads))
        out = subprocess.run([args.gnnstore, "train", args.dataset, *flags.split()], env=env, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        return json.loads(out.stdout)["epochs"][-1]["seconds"]


class GraphBolt:
    def __init__(self, folder, threads, narrow):
        import dgl
        import dgl.graphbolt as gb
        import numpy as np
        import torch

        torch.set_num_threads(threads)
        torch.manual_seed(1)
        self.torch, self.gb, self.version = torch, gb, dgl.__version__
        dataset = gb.OnDiskDataset(str(folder)).load()
        self.graph, self.items = dataset.graph, dataset.tasks[0].train_set
        [file] = folder.glob("*/feat.npy")
        rows = torch.from_numpy(np.load(file)).float()
        self.rows = gb.BasicFeatureStore({("node", None, "feat"): gb.TorchBasedFeature(rows)})
        widths = [rows.shape[1]] + [HIDDEN] * (len(FANOUTS) - 1) + [dataset.tasks[0].metadata["num_classes"]]
        self.layers = torch.nn.ModuleList(dgl.nn.SAGEConv(i, o, "mean") for i, o in zip(widths, widths[1:]))
        self.adam = torch.optim.Adam(self.layers.parameters(), lr=RATE, foreach=True)
        tried, self.autocast = {}, False
        for self.workers in range(3):
            tried[self.epoch(steps=20)] = self.workers, False
        if narrow:
            for self.workers in range(3):
                try:
                    self.autocast = True
                    tried[self.epoch(steps=20)] = self.workers, True
                except Exception as e:  # of DGL, of a type of its own
                    print(f"autocast: {str(e).splitlines()[0]}", flush=True)
                    break
        self.workers, self.autocast = tried[min(tried)]

    def loader(self):
        gb, torch = self.gb, self.torch
        pipe = gb.ItemSampler(self.items, batch_size=BATCH, shuffle=True)
        pipe = pipe.sample_neighbor(self.graph, [torch.LongTensor([n]) for n in reversed(FANOUTS)])  # the last one is for the seeds
        pipe = pipe.fetch_feature(self.rows, node_feature_keys=["feat"]).copy_to(device=torch.device("cpu"))
        return gb.DataLoader(pipe, num_workers=self.workers)

    def epoch(self, steps=None, warm=5):
        """Returns the seconds of an epoch, or of so many steps after those that warm up."""
        relu, loss = self.torch.nn.functional.relu, self.torch.nn.functional.cross_entropy
        start = time.perf_counter()
        for n, batch in enumerate(self.loader()):
            if steps and n == warm:
                start = time.perf_counter()
            x = batch.node_features["feat"]
            with self.torch.autocast("cpu", dtype=self.torch.bfloat16, enabled=self.autocast):
                for layer, block in zip(self.layers, batch.blocks):
                    x = layer(block, x)
                    if layer is not self.layers[-1]:
                        x = relu(x)
                missed = loss(x, batch.labels.long())
            self.adam.zero_grad(set_to_none=True)
            missed.backward()
            self.adam.step()
            if steps and n + 1 == warm + steps:
                return time.perf_counter() - start
        return time.perf_counter() - start


if __name__ == "__main__":
    sys.exit(main())
