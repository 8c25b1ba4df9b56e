"""Reads the directory of a run, and trains by the binary."""

import csv
import json
import math
import os
import struct

import numpy as np

from .binary import Error, call, flags
from .dataset import Dataset

DTYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "U8": "u1"}


class Run:
    """The directory of a run, which may still be at work. No link in it is followed."""

    def __init__(self, path):
        self.path = os.path.abspath(os.fspath(path))
        if not os.path.exists(self.path):
            raise Error(f"{self.path}: no such run")
        record = self._json("run.json")
        if not isinstance(record, dict) or not isinstance(record.get("options"), dict):
            raise Error(f"{self.path}: run.json has no options: it is not of a run, or was damaged")
        self.options, self.dataset, self.seal = (
            record["options"],
            record.get("dataset"),
            record.get("seal"),
        )

    def __repr__(self):
        return f"Run({self.path!r}: {self.options.get('model')} on {self.dataset})"

    @property
    def result(self):
        """The result, as train --json prints it, or None before the run has ended."""
        return (
            self._json("result.json")
            if os.path.lexists(os.path.join(self.path, "result.json"))
            else None
        )

    @property
    def metrics(self):
        """A dictionary for each epoch so far."""
        return self._lines("epoch")

    @property
    def steps(self):
        """A dictionary for every --log-every steps."""
        return self._lines("step")

    def dataframe(self):
        """Returns metrics as a pandas DataFrame, a row an epoch."""
        import pandas

        frame = pandas.DataFrame(self.metrics)
        return frame.set_index("epoch") if "epoch" in frame else frame

    def weights(self, which="best"):
        """Maps the weights of the best or the last epoch by PyTorch Geometric's names."""
        if which not in ("best", "last"):
            raise Error(f"weights {which!r}: there are best and last")
        name = which + ".safetensors"
        bad = f"{self.path}: {name}: %s"
        with self._open(name) as f:
            size = os.fstat(f.fileno()).st_size
            start = f.read(8)
            length = struct.unpack("<Q", start)[0] if len(start) == 8 else size
            if 8 + length > size:
                raise Error(bad % "it is cut short: it was damaged")
            try:
                header = json.loads(f.read(length))
                header.pop("__metadata__", None)
                data = np.memmap(f, "u1", "r") if size > 8 + length else np.empty(8 + length, "u1")
                weights = {}
                for key, spec in header.items():
                    dtype, shape = np.dtype(DTYPES[spec["dtype"]]), spec["shape"]
                    begin, end = spec["data_offsets"]
                    if (
                        not 0 <= begin <= end <= size - 8 - length
                        or end - begin != math.prod(shape) * dtype.itemsize
                    ):
                        raise ValueError(f"{key} does not lie in the file")
                    weights[key] = (
                        data[8 + length + begin : 8 + length + end].view(dtype).reshape(shape)
                    )
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as err:
                raise Error(
                    bad
                    % f"no safetensors file that this package reads: {type(err).__name__}: {err}"
                ) from None
        return weights

    def model(self, which="best"):
        """Returns a module of PyTorch Geometric with the run's weights, in eval mode.

        It is a GraphSAGE, GCN or GAT of one node type and one relation; other networks are refused.
        Its input is the rows of the run's table as float32, and Relation.edge_index.
        """
        from .pyg import model

        return model(self, self.weights(which))

    def predict(self, out, dataset=None, progress=None, **options):
        """Has the binary write predictions to the file out, and reads them from it."""
        data = (
            [] if dataset is None else [dataset.path if isinstance(dataset, Dataset) else dataset]
        )
        call("predict", *flags(options), "--", self.path, *data, out, progress=progress)
        return predictions(out)

    def _open(self, name):
        path = os.path.join(self.path, name)
        try:
            return os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb")
        except OSError as err:
            if os.path.islink(path):
                raise Error(f"{path}: it is a link, which no run has; it is not followed") from None
            raise Error(f"{path}: {err.strerror}: it is no run, or has not written this yet") from None

    def _json(self, name):
        with self._open(name) as f:
            try:
                return json.loads(f.read())
            except (ValueError, OSError, RecursionError) as err:
                raise Error(f"{self.path}: {name}: it was damaged: {err}") from None

    def _lines(self, kind):
        found = []
        with self._open("metrics.jsonl") as f:
            for number, line in enumerate(f, 1):
                if not line.endswith(b"\n"):  # its writer is at work, or was killed
                    break
                try:
                    line = json.loads(line)
                    if kind in line:
                        found.append(line[kind])
                except (ValueError, TypeError) as err:
                    raise Error(
                        f"{self.path}: metrics.jsonl: line {number}: it was damaged: {err}"
                    ) from None
        return found


def predictions(path):
    """Reads the .npy, .csv or .parquet file that predict wrote: an array for each column.

    A .npy file has values beside id, or beside src and dst. Parquet needs pandas and pyarrow.
    """
    path = os.fspath(path)
    stem, ending = os.path.splitext(path)
    if not os.path.exists(path):
        raise Error(f"{path}: no such file")
    try:
        if ending == ".npy":
            found = {}
            for name, file in (("id", "ids"), ("src", "src"), ("dst", "dst")):
                if os.path.exists(f"{stem}.{file}.npy"):
                    found[name] = np.load(f"{stem}.{file}.npy")
                elif os.path.exists(f"{stem}.{file}.txt"):
                    with open(f"{stem}.{file}.txt", encoding="utf-8", newline="\n") as f:
                        found[name] = np.array(f.read().split("\n")[:-1])
            return {**found, "values": np.load(path)}
        if ending == ".csv":
            with open(path, encoding="utf-8", newline="") as f:
                head, *rows = csv.reader(f)
            return {name: _numbers([row[i] for row in rows]) for i, name in enumerate(head)}
    except (ValueError, IndexError, EOFError) as err:
        raise Error(f"{path}: predict did not write this: {err}") from None
    if ending == ".parquet":
        import pandas

        frame = pandas.read_parquet(path)
        return {name: frame[name].to_numpy() for name in frame}
    raise Error(f"{path}: predictions are read from .npy, .csv and .parquet")


def _numbers(texts):
    for kind in (np.int64, np.float64):
        try:
            return np.array(texts, kind)
        except (ValueError, OverflowError):
            pass
    return np.array(texts)


def train(dataset=None, run=None, progress=lambda line: print(line, flush=True), **options):
    """Trains by the binary, and returns the Run. seeds=N returns N runs, and plan=True the plan.

    Options are the flags of gnnstore train: train(ds, hidden=64, fanout=[10, 5], memory="1GiB").
    progress gets each line of progress. KeyboardInterrupt ends a run at its next step, with a
    checkpoint, and is raised again; train(run=DIR, resume=True) continues. A failure raises Error.
    """
    data = [] if dataset is None else [dataset.path if isinstance(dataset, Dataset) else dataset]
    text = call(
        "train", *flags({"run": run, **options, "json": True}), "--", *data, progress=progress
    )
    result = json.loads(text)
    if "runs" in result:
        return [Run(r["run"]) for r in result["runs"]]
    path = result.get("run")
    return Run(path) if path and os.path.isdir(path) and not options.get("plan") else result
