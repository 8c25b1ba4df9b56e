"""Makes small datasets by the binary, for the tests beside it."""

import json
import random
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from gnnstore import binary


class Folder:
    """A temporary directory in which the binary runs."""

    def __init__(self, case):
        made = tempfile.TemporaryDirectory()
        case.addClassCleanup(made.cleanup)
        self.path = Path(made.name)

    def __call__(self, *args):
        done = subprocess.run(
            [binary(), *map(str, args)], cwd=self.path, capture_output=True, text=True
        )
        assert done.returncode == 0, f"{args}: {done.stderr}"
        return done.stdout

    def __truediv__(self, name):
        return self.path / name

    def small(self, name="small.gnn"):
        """Makes one node type and one relation. Rows of 9 halves are padded to 32 bytes."""
        self(
            "generate",
            "reddit",
            name,
            "--nodes",
            300,
            "--edges",
            2000,
            "--undirected",
            "--features",
            "random:9",
        )
        return self / name

    def typed(self, name="typed.gnn"):
        self(
            "generate",
            "mag240m",
            name,
            "--nodes",
            900,
            "--edges",
            4000,
            "--reverse",
            "--features",
            "mean",
            "--dtype",
            "f32",
        )
        return self / name

    def triples(self, name="triples.gnn"):
        """Makes 140 relations of nodes with names, which share sections and hold edges out."""
        draw = random.Random(1)
        lines = {
            f'n {draw.randrange(90)}\tr{i % 140}\t"é{draw.randrange(90)}\n' for i in range(3000)
        }
        (self / "triples.tsv").write_text("".join(sorted(lines)), encoding="utf-8")
        self(
            "ingest",
            "triples",
            "triples.tsv",
            name,
            "--edge-split",
            "random:0.8/0.1/0.1",
            "--features",
            "none",
        )
        return self / name

    def columns(self, name="columns.gnn"):
        """Makes edges with weights, between nodes whose numbers have gaps."""
        draw = random.Random(2)
        pairs = sorted({(7 * draw.randrange(60), 7 * draw.randrange(60)) for _ in range(400)})
        text = "".join(f"{u},{v},{(u + v) % 11 / 4}\n" for u, v in pairs)
        (self / "edges.csv").write_text("src,dst,weight\n" + text)
        self(
            "ingest",
            "csv",
            "edges.csv",
            name,
            "--weight",
            "weight",
            "--features",
            "none",
            "--edge-split",
            "random:0.8/0.1/0.1",
        )
        return self / name

    def export(self, dataset):
        """Exports a dataset, and returns the directory and its manifest."""
        out = dataset.with_suffix(".npy")
        self("export", dataset, out)
        return out, json.loads((out / "manifest.json").read_text())


def same(a, b):
    """Asserts that two arrays are equal, missing numbers too."""
    np.testing.assert_array_equal(a, b)
