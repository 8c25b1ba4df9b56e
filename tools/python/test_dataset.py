"""Compares what the package maps with what gnnstore export writes."""

import csv
import json
import os
import pickle
import shutil
import unittest

import numpy as np

from testdata import Folder, same
from gnnstore import Dataset, Error


class Maps(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.work = Folder(cls)

    def compare(self, path):
        """Compares everything that an export of a dataset has, under the ids that users know."""
        ds = Dataset(path)
        out, manifest = self.work.export(path)
        rows = {}  # of the export by stored node
        for t in manifest["node_types"]:
            nodes = ds.nodes[t["name"]]
            rows[nodes.name] = np.empty(nodes.count, np.int64)
            rows[nodes.name][nodes.order] = np.arange(nodes.count)
            self.assertEqual(t["count"], nodes.count)
            if t["ids"] != "rows":
                same(np.load(out / t["ids"]), nodes.original[nodes.order])
            self.assertEqual(set(t.get("tables", {})), set(nodes.tables))
            for name, file in t.get("tables", {}).items():
                same(np.load(out / file), nodes.tables[name].rows(nodes.order))
            self.assertEqual(set(t.get("labels", {})), set(nodes.labels))
            for name, label in t.get("labels", {}).items():
                same(np.load(out / label["file"]), nodes.labels[name].values[nodes.order])
            for name, pattern in t.get("splits", {}).items():
                for part in ("train", "valid", "test"):
                    ours = rows[nodes.name][getattr(nodes.splits[name], part)]
                    same(np.sort(np.load(out / pattern.replace("*", part))), np.sort(ours))
        self.assertEqual(len(manifest["relations"]), len(ds.relations))
        for r in manifest["relations"]:
            relation = ds.relations[r["name"]]
            ends = rows[relation.src], rows[relation.dst]
            ours = self.edges(ends, *relation.edge_index())
            theirs = np.load(out / r["file"])
            same(*(e[:, np.lexsort(e)] for e in (ours, theirs)))
            for part in ("valid", "test") if "edge_split" in r else ():
                held, file = relation.held_out(part), r["edge_split"][part].get("file")
                self.assertEqual(r["edge_split"][part]["edges"], len(held["src"]))
                if file:
                    same(np.load(out / file).T, self.edges(ends, held["src"], held["dst"]))
        return ds

    @staticmethod
    def edges(ends, src, dst):
        return np.stack([ends[0][src], ends[1][dst]])

    def test_padded_rows_labels_and_splits(self):
        ds = self.compare(self.work.small())
        table = ds.nodes["node"].tables["feat"]
        (shard,) = table.shards
        self.assertEqual((300, 9), shard.shape)
        self.assertEqual((32, 2), shard.strides)
        self.assertEqual(np.float16, shard.dtype)
        self.assertFalse(shard.flags.writeable)
        self.assertTrue(np.shares_memory(shard, table.shards[0]))
        same(shard[[5, 0, 5]], table.rows([5, 0, 5]))
        same(shard[3:20:4], table.rows(slice(3, 20, 4)))
        same(shard[np.arange(300) % 3 == 0], table.rows(np.arange(300) % 3 == 0))
        self.assertEqual((0, 9), table.rows([]).shape)
        for wrong in ([300], [-1]):
            with self.assertRaises(IndexError):
                table.rows(wrong)
        r = ds.relations["node__to__node"]
        self.assertIsInstance(r.neighbors, np.memmap)
        self.assertTrue(
            (np.diff(r.neighbors[r.offsets[0] : r.offsets[1]].astype(np.int64)) >= 0).all()
        )

    def test_several_types(self):
        ds = self.compare(self.work.typed())
        self.assertEqual({"paper", "author", "institution"}, set(ds.nodes))
        self.assertEqual(
            "author__writes__paper", ds.relations["paper__rev_writes__author"].reverse_of
        )

    def test_shared_sections_and_names(self):
        ds = self.compare(self.work.triples())
        self.assertIn("shared", ds.manifest)
        nodes = ds.nodes["entity"]
        names = nodes.ids(np.arange(nodes.count))
        self.assertIn("n 7", names)
        same(np.arange(nodes.count), nodes.find(names))
        self.assertEqual([names[3], names[1], names[3]], nodes.ids([3, 1, 3]))
        out = ds.path.removesuffix(".gnn") + ".npy"
        with open(out + "/entity/names.csv", encoding="utf-8", newline="") as f:
            rows = {text: int(row) for row, text in list(csv.reader(f))[1:]}
        same(nodes.original, [rows[name] for name in names])
        with self.assertRaisesRegex(Error, "node type entity has no node 'n 7x'"):
            nodes.find(["n 7", "n 7x"])

    def test_columns_and_ids(self):
        ds = self.compare(self.work.columns())
        nodes, r = ds.nodes["node"], ds.relations["node__to__node"]
        src, dst = r.edge_index()
        same(((nodes.ids(src) + nodes.ids(dst)) % 11 / 4).astype(np.float32), r.columns["weight"])
        held = r.held_out("test")
        same(
            ((nodes.ids(held["src"]) + nodes.ids(held["dst"])) % 11 / 4).astype(np.float32),
            held["columns"]["weight"],
        )
        same(np.arange(nodes.count), nodes.find(nodes.ids(np.arange(nodes.count))))
        same(np.empty(0), nodes.find([]))
        for unknown in (-1, 3, 10**9):
            with self.assertRaisesRegex(Error, f"has no node {unknown}$"):
                nodes.find([0, unknown])
        with self.assertRaisesRegex(Error, "stored nodes are 0 to"):
            nodes.ids([nodes.count])

    def test_stream(self):
        self.work("generate", "drift-s", "drift.gnn")
        stream = Dataset(self.work / "drift.gnn").streams["event"]
        a = stream.arrays
        self.assertEqual(stream.events, len(a["times"]))
        self.assertTrue((np.diff(a["times"]) >= 0).all())
        self.assertEqual((2 * stream.events, 2), a["near"].shape)
        self.assertEqual(stream.events, stream.tables["feat"].shape[0])


class Shards(unittest.TestCase):
    def test_rows_of_several_shards(self):
        """Tries the arithmetic on arrays in memory, since a shard is too large for a test."""
        ds = Dataset.__new__(Dataset)
        data = np.arange(70, dtype="<f4").reshape(10, 7)
        ds._maps = {str(i): data[i * 4 : i * 4 + 4] for i in range(3)}
        from gnnstore.dataset import Table

        shards = [{"path": str(i), "rows": len(ds._maps[str(i)])} for i in range(3)]
        table = Table(ds, {"name": "feat", "dim": 7, "elem": "f32", "shards": shards})
        same(data, table.rows())
        same(data[[9, 0, 4, 3, 9]], table.rows([9, 0, 4, 3, 9]))


class Refusals(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.work = Folder(cls)
        cls.path = cls.work.small()

    def damaged(self):
        copy = self.work / "damaged.gnn"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(self.path, copy)
        return copy

    def refused(self, path, message, verify=True):
        with self.assertRaisesRegex(Error, message) as caught:
            ds = Dataset(path, verify=verify)
            for nodes in ds.nodes.values():
                _ = (
                    nodes.original,
                    nodes.order,
                    [t.shards for t in nodes.tables.values()],
                    [n.values for n in nodes.labels.values()],
                )
        self.assertEqual(1, len(str(caught.exception).splitlines()))

    def test_paths(self):
        self.refused(self.work / "none.gnn", "no such dataset")
        self.refused(self.work.path, "it is no dataset")
        self.refused(self.path / "manifest.json", "it is no dataset")

    def test_a_bit_that_flipped(self):
        copy = self.damaged()
        with open(copy / "label/node/label.i32", "r+b") as f:
            f.seek(4096)
            f.write(b"\xff")
        self.refused(copy, r"label/node/label\.i32 at 0x1000: the checksum")
        Dataset(copy, verify=False)

    def test_files(self):
        feat = "feat/node/feat-00000.f16"
        for change, message in (
            (lambda p: (p / feat).unlink(), "No such file"),
            (lambda p: ((p / feat).unlink(), os.mkfifo(p / feat)), "it is not a plain file"),
            (
                lambda p: ((p / "manifest.json").unlink(), os.mkfifo(p / "manifest.json")),
                "it is not a plain file",
            ),
            (
                lambda p: (p / feat).write_bytes((p / feat).read_bytes()[:8192]),
                "has 8192 bytes, and the manifest says",
            ),
            (
                lambda p: shutil.copy(p / "ids/node/order.u32", p / "label/node/label.i32"),
                "its header is not as in the manifest",
            ),
            (
                lambda p: (
                    (p / feat).rename(p / "feat/x"),
                    (p / feat).symlink_to(self.path.resolve() / feat),
                ),
                "does not stay inside",
            ),
        ):
            copy = self.damaged()
            change(copy)
            self.refused(copy, message, verify=False)

    def test_manifest(self):
        text = (self.path / "manifest.json").read_text()
        for old, new, message in (
            ('"version": 3', '"version": 4', "format version 4: this package reads 2 and 3"),
            ('"version": 3', '"version": [3]', "format version"),
            ('"format": "gnnstore"', '"format": "x"', "not a manifest"),
            (text, text[:500], "not a manifest"),
            (text, "[" * 100000, "not a manifest"),
            (text, "", "not a manifest"),
            (text, "3", "not a manifest"),
            ('"node_types"', '"types"', "edited or damaged.*node_types"),
            ('"node_types": [', '"node_types": [3, ', "edited or damaged"),
            ('"stride": 32', '"stride": -32', "cannot be mapped|not as in the manifest"),
            ('"rows": 300', '"rows": "300"', "edited or damaged"),
            (
                '"rows": 300',
                '"rows": 99999999999999999999999',
                "the manifest says|cannot be mapped",
            ),
            ('"ids/node/order.u32"', '"../../../../etc/passwd"', "does not stay inside"),
            ('"ids/node/order.u32"', '"/etc/passwd"', "does not stay inside"),
            ('"elem": "i64"', '"elem": "i65"', "cannot be mapped"),
        ):
            with self.subTest(message, new=new[:40]):
                copy = self.damaged()
                self.assertIn(old, text)
                (copy / "manifest.json").write_text(text.replace(old, new))
                self.refused(copy, message, verify=False)
                with self.assertRaises(Error):
                    Dataset(copy)

    def test_parts(self):
        self.work("partition", self.path, "parts", "--parts", 2)
        self.refused(self.work / "parts", "it holds parts of a dataset")
        self.refused(self.work / "parts/part-0.gnn", "it is a part of a dataset")

    def test_earlier_version(self):
        """Sections of version 2 have other headers, and no checksums of pages behind their rows."""
        copy = self.damaged()
        m = json.loads((copy / "manifest.json").read_text())
        m["version"] = 2
        label = m["labels"][0]["values"]
        file = copy / label["path"]
        data = bytearray(file.read_bytes()[:8192])
        data[8] = 1
        file.write_bytes(data)
        label["bytes"] = len(data)
        (copy / "manifest.json").write_text(json.dumps(m))
        ours = Dataset(copy, verify=False).nodes["node"].labels["label"].values
        same(Dataset(self.path).nodes["node"].labels["label"].values, ours)

    def test_a_worker_does_not_verify_again(self):
        ds = Dataset(self.path)
        with open(self.path / "manifest.json", "rb"):
            again = pickle.loads(pickle.dumps(ds))
        self.assertEqual(ds.seal, again.seal)


if __name__ == "__main__":
    unittest.main()
