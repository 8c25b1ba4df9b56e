"""Builds wheels around a binary that is there, and looks into them."""

import os
import struct
import subprocess
import sys
import tempfile
import unittest
import zipfile
from pathlib import Path

import build
from gnnstore import binary

HERE = Path(__file__).parent


class Wheels(unittest.TestCase):
    def setUp(self):
        made = tempfile.TemporaryDirectory()
        self.addCleanup(made.cleanup)
        self.tmp = Path(made.name)

    def build(self, *args, **env):
        return subprocess.run(
            [sys.executable, str(HERE / "build.py"), str(self.tmp), *args],
            capture_output=True,
            text=True,
            env={**os.environ, **env},
        )

    def test_wheel(self):
        done = self.build("--binary", binary())
        self.assertEqual(0, done.returncode, done.stderr)
        (wheel,) = self.tmp.iterdir()
        self.assertRegex(
            wheel.name,
            r"^gnnstore-[0-9.a-z]+-py3-none-(manylinux_2_17_(x86_64|aarch64)\.manylinux2014_|macosx_12_0_)\w+\.whl$",
        )
        with zipfile.ZipFile(wheel) as z:
            names = set(z.namelist())
            (info,) = {n.split("/")[0] for n in names} - {"gnnstore"}
            for name in (
                "METADATA",
                "WHEEL",
                "RECORD",
                "entry_points.txt",
                "licenses/LICENSE",
                "licenses/NOTICE",
            ):
                self.assertIn(f"{info}/{name}", names)
            self.assertEqual(
                {f"gnnstore/{f.name}" for f in (HERE / "src/gnnstore").glob("*.py")}
                | {"gnnstore/bin/gnnstore"},
                {n for n in names if n.startswith("gnnstore/")},
            )
            self.assertEqual(0o755, z.getinfo("gnnstore/bin/gnnstore").external_attr >> 16 & 0o777)
            self.assertEqual(Path(binary()).read_bytes(), z.read("gnnstore/bin/gnnstore"))
            record = z.read(f"{info}/RECORD").decode().splitlines()
            self.assertEqual(names, {line.split(",")[0] for line in record})
            for line in record[:-1]:
                name, digest, size = line.split(",")
                self.assertEqual(
                    (f"sha256={build.digest(z.read(name))}", int(size)), (digest, len(z.read(name)))
                )
            tags = [
                line
                for line in z.read(f"{info}/WHEEL").decode().splitlines()
                if line.startswith("Tag: ")
            ]
            self.assertEqual(len(wheel.name.split("-")[4].split(".")) - 1, len(tags))
        first = wheel.read_bytes()
        self.build("--binary", binary())
        self.assertEqual(first, wheel.read_bytes(), "the same sources make the same bytes")

    def test_refusals(self):
        other = {"linux": "darwin", "darwin": "linux"}[sys.platform]
        (self.tmp / "text").write_text("#!/bin/sh\n")
        for args, env, message in (
            ([], {"GOOS": "windows"}, "there is no binary for windows/"),
            ([], {"GOARCH": "386"}, "/386, but for linux/amd64"),
            (["--binary", binary()], {"GOOS": other}, f"it is no program for {other}/"),
            (["--binary", str(self.tmp / "text")], {}, "it is no program for "),
            (["--binary", str(self.tmp / "none")], {}, "No such file"),
            (["--binary", str(self.tmp)], {}, "Is a directory"),
            ([], {"PATH": "/nowhere"}, "go is not installed"),
        ):
            with self.subTest(message):
                done = self.build(*args, **env)
                self.assertEqual(1, done.returncode)
                self.assertIn(message, done.stderr)
                self.assertEqual(1, len(done.stderr.splitlines()), done.stderr)
                self.assertEqual([], list(self.tmp.glob("*.whl")))

    def test_a_dynamic_binary(self):
        file = self.tmp / "dynamic"
        header = b"\x7fELF\x02".ljust(18, b"\0") + struct.pack("<HIQQ", 62, 1, 0, 64)
        header = header.ljust(54, b"\0") + struct.pack("<HH", 56, 1)
        file.write_bytes(header.ljust(64, b"\0") + struct.pack("<I", build.PT_INTERP))
        done = self.build("--binary", str(file), GOOS="linux", GOARCH="amd64")
        self.assertIn("it needs shared libraries", done.stderr)


if __name__ == "__main__":
    unittest.main()
