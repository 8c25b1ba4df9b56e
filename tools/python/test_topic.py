"""Runs the examples of the topic python, as a user would. The loader's needs a sampler."""

import contextlib
import importlib.util
import io
import os
import re
import unittest
from pathlib import Path

from testdata import Folder

TOPIC = Path(__file__).parents[2] / "cmd/gnnstore/topics/python.md"
LATER = ("pandas", "torch", "torch_geometric")  # what a method needs that may not be installed


class Topic(unittest.TestCase):
    def test_example(self):
        work = Folder(type(self))
        text = TOPIC.read_text(encoding="utf-8")
        for command in re.findall(r"^    \$ gnnstore (.*)$", text, re.M):
            work(*command.split())
        code = text.split("In Python:\n\n")[1].split("\n\n##")[0]
        if any(importlib.util.find_spec(sampler) for sampler in ("pyg_lib", "torch_sparse")):
            code += "\n" + text.split("in PyTorch Geometric instead?\n\n")[1].split("\n\n")[0]
        before = os.getcwd()
        os.chdir(work.path)
        ran, names = 0, {}
        try:
            for line in code.splitlines():
                try:
                    with contextlib.redirect_stdout(io.StringIO()):
                        exec(line.strip(), names)
                    ran += 1
                except ModuleNotFoundError as err:
                    self.assertIn(err.name, LATER)
        finally:
            os.chdir(before)
        self.assertGreater(ran, 5)
        self.assertEqual(2, len(names["run"].metrics))


if __name__ == "__main__":
    unittest.main()
