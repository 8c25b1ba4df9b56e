"""Trains by the package and reads what the run left."""

import json
import os
import signal
import threading
import unittest

import numpy as np

from testdata import Folder, same
from gnnstore import Dataset, Error, Run, predictions, train
from gnnstore.binary import call, flags


class Runs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.work = Folder(cls)
        cls.data = Dataset(cls.work.small())
        cls.progress = []
        cls.run_ = train(
            cls.data,
            run=cls.work / "run",
            progress=cls.progress.append,
            epochs=3,
            hidden=8,
            fanout=[4, 3],
            log_every=1,
        )

    def test_options_and_metrics(self):
        run = Run(self.work / "run")
        self.assertEqual((8, [4, 3]), (run.options["hidden"], run.options["fanout"]))
        self.assertEqual(self.data.seal, run.seal)
        self.assertEqual([1, 2, 3], [e["epoch"] for e in run.metrics])
        self.assertEqual(
            [e["loss"] for e in run.result["epochs"]], [e["loss"] for e in run.metrics]
        )
        self.assertEqual({1, 2, 3}, {s["epoch"] for s in run.steps})
        self.assertEqual(3, sum(line.startswith("epoch") for line in self.progress))

    def test_weights(self):
        w = self.run_.weights("last")
        self.assertEqual((8, 9), w["convs.0.lin_l.weight"].shape)
        self.assertEqual(np.float32, w["convs.0.lin_l.weight"].dtype)
        self.assertFalse(w["convs.0.lin_l.weight"].flags.writeable)
        self.assertTrue(all(np.isfinite(a).all() for a in w.values()))
        with self.assertRaisesRegex(Error, "there are best and last"):
            self.run_.weights("worst")

    def test_weights_predict(self):
        """The weights, applied in NumPy as SAGEConv is defined, give the binary's logits."""
        w = {k: np.asarray(v, np.float64) for k, v in self.run_.weights().items()}
        nodes, r = self.data.nodes["node"], self.data.relations["node__to__node"]
        src, dst = r.edge_index()
        h = nodes.tables["feat"].rows().astype(np.float64)
        for layer in range(2):
            mean = np.zeros_like(h)
            np.add.at(mean, dst, h[src])
            mean /= np.maximum(np.bincount(dst, minlength=nodes.count), 1)[:, None]
            name = f"convs.{layer}."
            h = (
                mean @ w[name + "lin_l.weight"].T
                + w[name + "lin_l.bias"]
                + h @ w[name + "lin_r.weight"].T
            )
            if layer == 0:
                if "norms.0.weight" in w:
                    h = (h - h.mean(1, keepdims=True)) / np.sqrt(h.var(1, keepdims=True) + 1e-5)
                    h = h * w["norms.0.weight"] + w["norms.0.bias"]
                h = np.maximum(h, 0)
        found = self.run_.predict(self.work / "logits.npy", what="logits")
        np.testing.assert_allclose(h[nodes.find(found["id"])], found["values"], atol=1e-4)
        table = self.run_.predict(self.work / "logits.csv", dataset=self.data, what="logits")
        same(found["id"], table.pop("id"))
        np.testing.assert_allclose(
            np.stack(list(table.values()), 1), found["values"], rtol=1e-5, atol=1e-6
        )
        with self.assertRaisesRegex(Error, "exists"):
            self.run_.predict(self.work / "logits.npy")

    def test_plan_seeds_and_resume(self):
        plan = train(self.data, plan=True, progress=None, run=self.work / "planned")
        self.assertIsInstance(plan, dict)
        self.assertFalse((self.work / "planned").exists())
        runs = train(self.data, seeds=2, epochs=1, progress=None, run=self.work / "seeds")
        self.assertEqual(2, len({r.path for r in runs}))
        longer = train(run=runs[0].path, resume=True, epochs=2, progress=None)
        self.assertEqual(2, len(longer.metrics))

    def test_errors_are_the_binarys(self):
        for options, code, message in (
            ({"hiden": 3}, 2, "^unknown flag: --hiden; did you mean --hidden"),
            ({"hidden": -3}, 2, "hidden"),
            ({"run": self.work / "run"}, 1, "it holds a run"),
        ):
            with self.assertRaisesRegex(Error, message) as caught:
                train(self.data, progress=None, **options)
            self.assertEqual(code, caught.exception.code)
            self.assertNotIn("usage:", str(caught.exception))
        with self.assertRaisesRegex(Error, "no such dataset"):
            train("--plan", progress=None)

    def test_interrupt_keeps_a_checkpoint(self):
        def interrupt(line):
            if line.startswith("epoch") and not sent:
                sent.append(threading.get_ident())
                os.kill(os.getpid(), signal.SIGINT)

        sent = []
        with self.assertRaises(KeyboardInterrupt):
            train(
                self.data, run=self.work / "cut", progress=interrupt, epochs=100000, patience=100000
            )
        run = Run(self.work / "cut")
        self.assertTrue(os.listdir(self.work / "cut/checkpoints"))
        self.assertLess(len(run.metrics), 100000)

    def test_an_error_of_the_caller_ends_the_run(self):
        def fail(line):
            raise ValueError(line)

        with self.assertRaises(ValueError):
            train(self.data, run=self.work / "failed", progress=fail, epochs=100000)

    def test_damaged_runs(self):
        def write(name, data):
            path = self.work / "odd"
            path.mkdir(exist_ok=True)
            (path / "run.json").write_text('{"options": {"model": "sage"}}')
            (path / name).write_bytes(data)
            return path

        for data in (
            b"",
            b"\x01",
            b"\xff" * 8,
            b"\x02" + bytes(7) + b"[]",
            b"\x02" + bytes(7) + b"{x",
            tensor("F32", [2], 0, 4, 4),
            tensor("F32", [1 << 62], 0, 4, 4),
            tensor("F32", [1], 4, 8, 4),
            tensor("F32", [1], -4, 0, 4),
            tensor("BF16", [2], 0, 4, 4),
            tensor("F32", ["1"], 0, 4, 4),
        ):
            with self.subTest(data=data), self.assertRaisesRegex(Error, "best.safetensors: "):
                Run(write("best.safetensors", data)).weights()
        same([[2.5]], Run(write("best.safetensors", tensor("F32", [1, 1], 0, 4, 4))).weights()["w"])
        lines = b'{"epoch":{"epoch":1}}\n{"step":{}}\n{"epoch":{"ep'
        self.assertEqual([{"epoch": 1}], Run(write("metrics.jsonl", lines)).metrics)
        with self.assertRaisesRegex(Error, "line 2"):
            _ = Run(write("metrics.jsonl", b'{"epoch":{"epoch":1}}\n{x\n')).metrics
        for data in (b"", b"[]", b"{}", b"[" * 100000):
            with self.assertRaisesRegex(Error, "run.json"):
                Run(write("run.json", data))
        path = write("metrics.jsonl", b"")
        (path / "last.safetensors").symlink_to(self.work / "run/last.safetensors")
        with self.assertRaisesRegex(Error, "it is a link"):
            Run(path).weights("last")
        for missing in (self.work / "none", self.work.path):
            with self.assertRaisesRegex(Error, "no such run|no run"):
                Run(missing)

    def test_predictions_of_texts(self):
        (self.work / "p.npy").write_bytes(b"")
        for name, message in (
            ("p.npy", "did not write this"),
            ("p.txt", "no such file"),
            ("run", "are read from"),
        ):
            with self.assertRaisesRegex(Error, message):
                predictions(self.work / name)
        np.save(self.work / "q.npy", np.arange(2))
        (self.work / "q.ids.txt").write_text("a b\né\n", encoding="utf-8")
        self.assertEqual(["a b", "é"], predictions(self.work / "q.npy")["id"].tolist())
        (self.work / "q.csv").write_text('id,class\n"a,b",x\nc,y\n')
        found = predictions(self.work / "q.csv")
        self.assertEqual(
            [["a,b", "c"], ["x", "y"]], [found["id"].tolist(), found["class"].tolist()]
        )


class Flags(unittest.TestCase):
    def test_flags(self):
        self.assertEqual(
            [
                "--weight-decay=0.1",
                "--history",
                "--shuffle=false",
                "--fanout=5,-1",
                "--input=a=x",
                "--input=b=y",
                "--t=k=1,2",
            ],
            [
                f.replace("=true", "")
                for f in flags(
                    {
                        "weight_decay": 0.1,
                        "history": True,
                        "shuffle": False,
                        "fanout": (5, -1),
                        "none": None,
                        "input": ["a=x", "b=y"],
                        "t": {"k": [1, 2]},
                    }
                )
            ],
        )

    def test_a_binary_that_is_none(self):
        before = os.environ.get("GNNSTORE_BINARY")
        os.environ["GNNSTORE_BINARY"] = "/nowhere/gnnstore"
        try:
            with self.assertRaisesRegex(
                Error, "GNNSTORE_BINARY names /nowhere/gnnstore, which is no program"
            ):
                call("version")
        finally:
            os.environ.pop("GNNSTORE_BINARY")
            if before is not None:
                os.environ["GNNSTORE_BINARY"] = before


def tensor(dtype, shape, begin, end, size):
    """Returns a safetensors file of one tensor w: the float 2.5, cut to size bytes."""
    head = json.dumps(
        {"w": {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}}
    ).encode()
    return len(head).to_bytes(8, "little") + head + np.float32(2.5).tobytes()[:size]


if __name__ == "__main__":
    unittest.main()
