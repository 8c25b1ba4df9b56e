"""Builds a wheel with the gnnstore binary in it. Needs Go, and nothing but Python's own library.

    python3 tools/python/build.py OUT                    # a wheel of this platform
    GOOS=darwin GOARCH=arm64 python3 tools/python/build.py OUT
    python3 tools/python/build.py OUT --binary FILE      # with a binary that you built before

It is also the backend of pyproject.toml, so that pip install tools/python does the same.
"""

import argparse
import base64
import hashlib
import os
import platform
import struct
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
# Tags of the platforms that have a binary. It links no library on Linux. Go 1.26 wants macOS 12.
TAGS = {
    ("linux", "amd64"): "manylinux_2_17_x86_64.manylinux2014_x86_64",
    ("linux", "arm64"): "manylinux_2_17_aarch64.manylinux2014_aarch64",
    ("darwin", "amd64"): "macosx_12_0_x86_64",
    ("darwin", "arm64"): "macosx_12_0_arm64",
}
ARCHES = {"x86_64": "amd64", "aarch64": "arm64", "AMD64": "amd64"}
ELF_MACHINES = {"amd64": 62, "arm64": 183}
MACH_O_TYPES = {"amd64": 0x01000007, "arm64": 0x0100000C}
PT_INTERP = 3  # of a program header: the loader that a dynamic binary needs


def refuse(message):
    sys.exit(f"gnnstore: {message}")


def target():
    """Returns GOOS and GOARCH, from the environment or else of this machine."""
    machine = platform.machine()
    goos = os.environ.get("GOOS") or sys.platform
    goarch = os.environ.get("GOARCH") or ARCHES.get(machine, machine)
    if (goos, goarch) not in TAGS:
        refuse(
            f"there is no binary for {goos}/{goarch}, but for {', '.join('/'.join(t) for t in TAGS)}"
        )
    return goos, goarch


def compiled(goos, goarch):
    """Returns the bytes of the binary, built without cgo."""
    if not (ROOT / "go.mod").exists():
        refuse(f"{ROOT} has no go.mod: a wheel is built in a checkout of gnnstore")
    with tempfile.TemporaryDirectory() as tmp:
        out = Path(tmp) / "gnnstore"
        env = {**os.environ, "CGO_ENABLED": "0", "GOOS": goos, "GOARCH": goarch}
        try:
            done = subprocess.run(
                ["go", "build", "-trimpath", "-ldflags=-s -w", "-o", out, "./cmd/gnnstore"],
                cwd=ROOT,
                env=env,
            )
        except FileNotFoundError:
            refuse(
                "go is not installed, which builds the binary: install it, or give --binary FILE"
            )
        if done.returncode:
            refuse("go build failed")
        return out.read_bytes()


def check(data, name, goos, goarch):
    """Refuses a binary that would not run wherever the wheel installs."""
    try:
        if goos == "darwin":
            magic, kind = struct.unpack_from("<II", data)
            fits = magic == 0xFEEDFACF and kind == MACH_O_TYPES[goarch]
        else:
            (machine,) = struct.unpack_from("<H", data, 18)
            fits = data[:5] == b"\x7fELF\x02" and machine == ELF_MACHINES[goarch]
            (start,) = struct.unpack_from("<Q", data, 32)
            size, count = struct.unpack_from("<HH", data, 54)
            headers = [
                struct.unpack_from("<I", data, start + i * size)[0]
                for i in range(count if fits else 0)
            ]
            if PT_INTERP in headers:
                refuse(
                    f"{name}: it needs shared libraries, which other machines may lack: "
                    "build it with CGO_ENABLED=0 and no tags"
                )
    except struct.error:
        fits = False
    if not fits:
        refuse(f"{name}: it is no program for {goos}/{goarch}")


def project():
    try:
        import tomllib
    except ImportError:
        refuse("building a wheel needs Python 3.11 or newer; installing one does not")
    return tomllib.loads((HERE / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def wheel(out, binary=None):
    """Writes the wheel to the directory out, and returns its name.

    The same sources make the same bytes.
    """
    goos, goarch = target()
    p = project()
    data = compiled(goos, goarch) if binary is None else Path(binary).read_bytes()
    check(data, binary or "what go build made", goos, goarch)
    tags = TAGS[goos, goarch]
    info = f"{p['name']}-{p['version']}.dist-info"
    metadata = [
        ("Metadata-Version", "2.4"),
        ("Name", p["name"]),
        ("Version", p["version"]),
        ("Summary", p["description"]),
        ("License-Expression", p["license"]),
        ("License-File", "LICENSE"),
        ("License-File", "NOTICE"),
        ("Requires-Python", p["requires-python"]),
        *(("Requires-Dist", d) for d in p["dependencies"]),
    ]
    for extra, needs in p["optional-dependencies"].items():
        metadata += [
            ("Provides-Extra", extra),
            *(("Requires-Dist", f'{d}; extra == "{extra}"') for d in needs),
        ]
    metadata.append(("Description-Content-Type", "text/markdown"))
    files = {
        f"gnnstore/{f.name}": f.read_bytes()
        for f in sorted((HERE / "src" / "gnnstore").glob("*.py"))
    }
    files["gnnstore/bin/gnnstore"] = data
    for name in ("LICENSE", "NOTICE"):
        files[f"{info}/licenses/{name}"] = (ROOT / name).read_bytes()
    files[f"{info}/METADATA"] = (
        fields(metadata).encode() + b"\n" + (HERE / p["readme"]).read_bytes()
    )
    files[f"{info}/WHEEL"] = fields(
        [
            ("Wheel-Version", "1.0"),
            ("Generator", "gnnstore"),
            ("Root-Is-Purelib", "false"),
            *(("Tag", f"py3-none-{t}") for t in tags.split(".")),
        ]
    ).encode()
    scripts = "".join(f"{name} = {function}\n" for name, function in p["scripts"].items())
    files[f"{info}/entry_points.txt"] = f"[console_scripts]\n{scripts}".encode()
    record = "".join(f"{name},sha256={digest(data)},{len(data)}\n" for name, data in files.items())
    files[f"{info}/RECORD"] = (record + f"{info}/RECORD,,\n").encode()

    name = f"{p['name']}-{p['version']}-py3-none-{tags}.whl"
    os.makedirs(out, exist_ok=True)
    unfinished = Path(out) / f".{name}.partial"
    try:
        with zipfile.ZipFile(unfinished, "w", zipfile.ZIP_DEFLATED) as z:
            for path, data in files.items():
                entry = zipfile.ZipInfo(path, (1980, 1, 1, 0, 0, 0))
                entry.compress_type = zipfile.ZIP_DEFLATED
                entry.external_attr = (
                    0o100755 if path.endswith("/bin/gnnstore") else 0o100644
                ) << 16
                z.writestr(entry, data)
        unfinished.rename(Path(out) / name)
    finally:
        unfinished.unlink(missing_ok=True)
    return name


def fields(pairs):
    return "".join(f"{key}: {value}\n" for key, value in pairs)


def digest(data):
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    return wheel(wheel_directory)


def build_sdist(sdist_directory, config_settings=None):
    refuse("there is no source distribution: the binary is built in a checkout of gnnstore")


def main():
    args = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    args.add_argument("out", help="directory for the wheel")
    args.add_argument(
        "--binary", help="a static gnnstore binary of the platform (default: build one)"
    )
    a = args.parse_args()
    try:
        print(Path(a.out) / wheel(a.out, a.binary))
    except OSError as err:
        refuse(f"{err.filename}: {err.strerror}")


if __name__ == "__main__":
    main()
