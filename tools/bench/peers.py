"""Feature rows out of core the way NumPy and PyTorch users do it, for `go run ./tools/bench peers`: the hottest rows in an
array, all others by a memory map of the file, sorted; under DGL's loader, and a GraphSAGE of its layers. The files are
those of the sealed dataset, which stores the hottest rows first, so that the cache is a prefix here as well.

Each line on stdin is one turn: "rows" fetches those of recorded steps, "epoch" trains. Each answers with a line of JSON.
"""

import json
import mmap
import os
import sys
import time

import numpy as np
import torch
import torch.nn.functional as F

import epoch as loaders


class Rows:
    """The feature table: rows[ids] is a float32 tensor, as a loader wants it."""

    def __init__(self, job):
        dtype, self.dim = np.dtype(job["dtype"]), job["dim"]
        self.shards, self.first, self.fetched = [], [], 0
        for s in job["shards"]:
            width = s["stride"] // dtype.itemsize
            table = np.memmap(s["path"], dtype, "r", s["offset"], (s["rows"], width))
            self.shards.append(table)
            self.first.append(s["first"])
        self.hot = np.empty((job["hot"], self.dim), dtype)
        for at in range(0, job["hot"], 1 << 16):  # what NumPy takes out of a map is in memory once more
            ids = np.arange(at, min(at + (1 << 16), job["hot"]))
            self.copy(self.hot, ids, ids)

    def advise(self, advice):
        """From here on, with nothing in the page cache."""
        for table in self.shards:
            table._mmap.madvise(mmap.MADV_DONTNEED)
            with open(table.filename, "rb") as f:
                os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            table._mmap.madvise(advice)

    def copy(self, out, ids, places):
        """Rows of ids, which ascend, to places of out."""
        ends = np.searchsorted(ids, self.first[1:] + [1 << 62])
        at = 0
        for table, first, end in zip(self.shards, self.first, ends):
            if end > at:
                out[places[at:end]] = table[ids[at:end] - first, : self.dim]
            at = end

    def fetch(self, ids):
        out = np.empty((len(ids), self.dim), self.hot.dtype)
        is_hot = ids < len(self.hot)
        out[is_hot] = self.hot[ids[is_hot]]
        cold = np.flatnonzero(~is_hot)
        cold = cold[np.argsort(ids[cold])]
        self.copy(out, ids[cold], cold)
        self.fetched += len(ids)
        return out

    def __getitem__(self, ids):
        return torch.from_numpy(self.fetch(ids.numpy())).float()


def whole(section, dtype, count):
    """A section of the topology as 64-bit numbers, converted a piece at a time."""
    stored = np.memmap(section["path"], dtype, "r", section["offset"], (count,))
    numbers = torch.empty(count, dtype=torch.int64)
    for at in range(0, count, 1 << 22):
        numbers[at : at + (1 << 22)] = torch.from_numpy(stored[at : at + (1 << 22)].astype(np.int64))
    return numbers


def main():
    answers, sys.stdout = sys.stdout, sys.stderr  # libraries print as well
    os.environ.setdefault("DGLBACKEND", "pytorch")
    job = json.load(open(sys.argv[1]))
    torch.set_num_threads(job["threads"])
    loaders.BATCH = job["batch"]
    rows = Rows(job)
    load = lambda name: np.load(os.path.join(os.path.dirname(sys.argv[1]), name + ".npy"))
    trace = np.split(load("trace"), load("ends")[:-1])
    report = {"versions": f"NumPy {np.__version__}, PyTorch {torch.__version__}", "loader": "", "skipped": [], "variants": {}, "advice": ""}
    try:
        import dgl.graphbolt  # noqa: F401
    except Exception as e:  # its C++ part fails in many ways to load
        report["skipped"].append(f"GraphBolt: {e}")
    # Reading ahead helps a dense batch and hurts a sparse one: what some steps say.
    advices = {"readahead": mmap.MADV_NORMAL, "random": mmap.MADV_RANDOM}
    for name, advice in advices.items():
        rows.advise(advice)
        start = time.perf_counter()
        for ids in trace[:4]:
            rows.fetch(ids)
        report["variants"][name] = round((time.perf_counter() - start) / 4 * 1e3)
    report["advice"] = min(report["variants"], key=report["variants"].get)
    side = None
    try:
        offsets = whole(job["offsets"], np.int64, job["nodes"] + 1)
        neighbors = whole(job["neighbors"], np.uint32, job["edges"])  # DGL 1.1.3 crashes on ids of 32 bits
        labels, train = torch.from_numpy(load("labels").astype(np.int64)), torch.from_numpy(load("train").astype(np.int64))
        loader = loaders.dgl_loader((offsets, neighbors, rows, labels, train))
        report["loader"] = loader[0]
        side = loaders.Side(loader, rows.dim, job["classes"], job["workers"])
    except (ImportError, OSError, RuntimeError) as e:
        report["skipped"].append(f"DGL: {e}")
    print(json.dumps(report), file=answers, flush=True)
    for line in sys.stdin:
        rows.advise(advices[report["advice"]])
        answer, before = {"loss": 0.0}, rows.fetched
        if line.strip() == "epoch":
            answer["seconds"], answer["loss"] = side.epoch(job["steps"])
            answer["sum"] = 0
        else:
            total, start, spent = 0, 0.0, 0.0
            for ids in trace[-job["steps"] :]:
                start = time.perf_counter()
                out = rows.fetch(ids)
                spent += time.perf_counter() - start
                total += int(out.view(np.uint16).sum(dtype=np.uint64))
            answer["seconds"], answer["sum"] = spent, total
        answer["rows"] = rows.fetched - before
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
