"""Finds the gnnstore binary, runs it, and turns its errors into exceptions."""

import collections
import os
import platform
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

PREFIX = "gnnstore: "  # of the binary's error, the last of what it prints


class Error(Exception):
    """An error of gnnstore. Its text is the binary's message, if the binary failed.

    code is the binary's exit code, and output the result that it printed.
    """

    def __init__(self, message, code=1, output=""):
        super().__init__(message)
        self.code, self.output = code, output


def binary():
    """Returns the path of the binary: the file that GNNSTORE_BINARY names, or the package's own."""
    path = os.environ.get("GNNSTORE_BINARY") or str(Path(__file__).parent / "bin" / "gnnstore")
    if os.access(path, os.X_OK) and os.path.isfile(path):
        return path
    if os.environ.get("GNNSTORE_BINARY"):
        raise Error(
            f"GNNSTORE_BINARY names {path}, which is no program: build one by go build ./cmd/gnnstore"
        )
    raise Error(
        f"this installation has no binary for {platform.system()} on {platform.machine()}: "
        "install a wheel of this platform, or name a binary in GNNSTORE_BINARY"
    )


def main():
    """Becomes the binary, with the arguments of this process."""
    try:
        path = binary()
        os.execv(path, ["gnnstore", *sys.argv[1:]])
    except (Error, OSError) as err:
        sys.exit(f"gnnstore: {err}")


def flags(options):
    """Turns keyword arguments into flags: weight_decay=0.1 becomes --weight-decay=0.1.

    True and False set a switch, and None leaves a flag out. Numbers in a list are joined by commas.
    A list of texts repeats the flag. So does a dictionary, whose pairs become KEY=VALUE.
    """
    args = []
    for name, value in options.items():
        flag = "--" + name.replace("_", "-")
        if value is None:
            continue
        if isinstance(value, dict):
            args += [f"{flag}={k}={_text(v)}" for k, v in value.items()]
        elif isinstance(value, (list, tuple)) and any(isinstance(v, str) for v in value):
            args += [f"{flag}={v}" for v in value]
        else:
            args.append(f"{flag}={_text(value)}")
    return args


def _text(value):
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (list, tuple)):
        return ",".join(str(v) for v in value)
    return str(value)


def call(*args, progress=None):
    """Runs the binary and returns what it printed as a result.

    progress is called with each line of progress. An exception, KeyboardInterrupt too, interrupts
    the binary as Ctrl-C would, and is raised again when the binary has ended. A failure of the
    binary raises Error.
    """
    said, failed = collections.deque(maxlen=1), []

    def listen():
        for line in process.stderr:
            lines = failed if failed or line.startswith(PREFIX) else said
            lines.append(line.rstrip("\n"))
            if lines is said and progress is not None:
                progress(said[-1])

    with tempfile.TemporaryFile() as out:
        # In a session of its own it gets no Ctrl-C from the terminal, only the signal below: a
        # second one would end a run without its checkpoint.
        with subprocess.Popen(
            [binary(), *map(str, args)],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
        ) as process:
            try:
                listen()
                process.wait()
            except BaseException:
                process.send_signal(signal.SIGINT)
                try:
                    process.communicate()
                except BaseException:  # interrupted again
                    process.kill()
                    raise
                raise
        if process.returncode in (-signal.SIGINT, 130):
            raise KeyboardInterrupt
        out.seek(0)
        text = out.read().decode("utf-8", "replace")
    if process.returncode:
        raise _failed(process.returncode, said, failed, text)
    return text


def _failed(code, said, failed, text):
    """Returns the error of a binary that ended with this code: its own message, if it has one."""
    lines = [line.removeprefix(PREFIX) for line in failed if not line.startswith("usage: ")]
    if not lines:  # it was killed, or crashed
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        lines = [f"the binary ended by {how}", *said]
    return Error("\n".join(lines).strip(), code, text)
