"""Records PyTorch's losses with class weights and with labels that are not known, for the tests of train/tape.

    python3 -m venv venv && venv/bin/pip install torch numpy
    venv/bin/python tools/refnums/losses.py > train/tape/testdata/torch.json
"""

import json
import platform

import numpy as np
import torch

ROWS, CLASSES = 6, 4


def short(tensor):
    """The shortest decimals that read back as the same float32."""
    return [float(np.format_float_positional(x)) for x in tensor.detach().numpy().astype(np.float32).ravel()]


generator = torch.Generator().manual_seed(3)
logits = 4 * torch.randn((ROWS, CLASSES), generator=generator)
labels = torch.tensor([3, 0, -100, 1, 1, 0])  # -100 is PyTorch's row without a label
weights = torch.tensor([0.5, 2.0, 7.0, 1.25])
targets = torch.randint(0, 2, (ROWS, CLASSES), generator=generator).float()
known = torch.rand((ROWS, CLASSES), generator=generator) < 0.6
known[4] = False


def mean(loss):
    x = logits.clone().requires_grad_()
    value = loss(x)
    value.backward()
    return {"loss": short(value)[0], "gradient": short(x.grad)}


print(
    json.dumps(
        {
            "made_by": "tools/refnums/losses.py",
            "versions": {"torch": torch.__version__, "numpy": np.__version__, "python": platform.python_version()},
            "rows": ROWS,
            "classes": CLASSES,
            "logits": short(logits),
            "labels": labels.tolist(),
            "weights": short(weights),
            "targets": short(targets),
            "known": known.int().ravel().tolist(),
            "weighted": mean(lambda x: torch.nn.functional.cross_entropy(x, labels, weight=weights)),
            "sigmoid": mean(lambda x: torch.nn.functional.binary_cross_entropy_with_logits(x[known], targets[known])),
        },
        separators=(",", ":"),
    ).replace('"gradient"', '\n"gradient"')
)
