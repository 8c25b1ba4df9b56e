"""Times OpenBLAS on the products of BenchmarkMatMul, in the benchmark format of Go, to stand beside

    go test -run '^$' -bench MatMul ./kernels

NumPy brings OpenBLAS: install it by hand, in an environment of its own; nothing else of gnnstore needs Python.

    python3 -m venv venv && venv/bin/pip install numpy
    OPENBLAS_NUM_THREADS=1 venv/bin/python tools/bench/openblas.py [SECONDS [PRODUCT]]

OPENBLAS_CORETYPE chooses the kernel and must not be set, or what is measured is another processor's. Each product runs for
SECONDS (0.15) after one run that does not count. The time is the mean, as Go's is. PRODUCT, as in product=dy·w/rows=16/…,
is the only one then.
"""

import os
import sys
import time

import numpy as np

SHAPES = [(8192, 256, 256), (65536, 128, 256), (8192, 40, 256), (8192, 256, 40), (16, 256, 256)]  # rows, in, out


def main():
    if "OPENBLAS_CORETYPE" in os.environ:
        sys.exit("openblas.py: OPENBLAS_CORETYPE is set: unset it")
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 0.15
    only = sys.argv[2] if len(sys.argv) > 2 else None
    threads = os.environ.get("OPENBLAS_NUM_THREADS", "all")
    rng = np.random.default_rng(1)
    for rows, width, out in SHAPES:
        if only and not only.endswith(f"/rows={rows}/in={width}/out={out}"):
            continue
        x = rng.standard_normal((rows, width), dtype=np.float32)
        w = rng.standard_normal((out, width), dtype=np.float32)
        y = rng.standard_normal((rows, out), dtype=np.float32)
        # Every product goes to memory that is there already: NumPy would otherwise be timed clearing pages.
        into_x, into_w, into_y = np.zeros_like(x), np.zeros_like(w), np.zeros_like(y)
        for name, product in [
            ("x·wT", lambda: np.matmul(x, w.T, out=into_y)),
            ("dy·w", lambda: np.matmul(y, w, out=into_x)),
            ("dyT·x", lambda: np.matmul(y.T, x, out=into_w)),
        ]:
            name = f"product={name}/rows={rows}/in={width}/out={out}"
            if only and name != only:
                continue
            runs, each, processor = timed(product, seconds)
            flops = 2 * rows * width * out
            print(
                f"BenchmarkOpenBLAS/{name}/threads={threads}\t"
                f"{runs}\t{each * 1e9:.0f} ns/op\t{flops / each / 1e9:.1f} GFLOP/s\t{processor * 1e9:.0f} cpu-ns/op"
            )


def timed(run, seconds):
    """Returns how often run ran in so many seconds, how long it took each time, and how much of a processor."""
    run()
    runs, start, before = 0, time.perf_counter(), time.process_time()
    while (spent := time.perf_counter() - start) < seconds:
        run()
        runs += 1
    return runs, spent / runs, (time.process_time() - before) / runs


if __name__ == "__main__":
    main()
