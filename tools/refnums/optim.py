"""Records what PyTorch's optimizers and schedules do, for the tests of train/optim.

    python3 -m venv venv && venv/bin/pip install torch numpy
    venv/bin/python tools/refnums/optim.py > train/optim/testdata/torch.json
"""

import json
import platform

import numpy as np
import torch

STEPS, PER_EPOCH = 24, 4


def short(tensor):
    """The shortest decimals that read back as the same float32."""
    return [float(np.format_float_positional(x)) for x in tensor.detach().numpy().astype(np.float32).ravel()]


def fresh():
    generator = torch.Generator().manual_seed(1)
    return [torch.nn.Parameter(torch.randn(shape, generator=generator)) for shape in [(3, 2), (4,)]]


def gradients():
    """Of very different sizes; one element's is always 0, and one parameter's is 0 in some steps."""
    generator = torch.Generator().manual_seed(2)
    steps = []
    for step in range(STEPS):
        pair = [torch.randn(shape, generator=generator) * 10.0 ** (step % 5 - 3) for shape in [(3, 2), (4,)]]
        pair[0][0, 1] = 0
        if step % 6 == 5:
            pair[1].zero_()
        steps.append(pair)
    return steps


def run(optimizer, clip=None, scheduler=None):
    """Trains fresh parameters on the gradients; the scheduler advances after each step."""
    params = fresh()
    opt = optimizer(params)
    sched = scheduler(opt) if scheduler else None
    rates, norms = [], []
    for pair in gradients():
        for p, g in zip(params, pair):
            p.grad = g.clone()
        if clip:
            norms.append(float(torch.nn.utils.clip_grad_norm_(params, clip)))
        rates.append(opt.param_groups[0]["lr"])
        opt.step()
        if sched:
            sched.step()
    return {
        "rates": rates,
        "norms": norms,
        "params": [short(p) for p in params],
        "exp_avg": [short(opt.state[p]["exp_avg"]) for p in params],
        "exp_avg_sq": [short(opt.state[p]["exp_avg_sq"]) for p in params],
    }


def cosine(opt):
    return torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=STEPS, eta_min=0.001)


def warm_cosine(opt):
    warm = torch.optim.lr_scheduler.LinearLR(opt, start_factor=1 / 6, total_iters=5)
    rest = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=STEPS - 6)
    return torch.optim.lr_scheduler.SequentialLR(opt, [warm, rest], milestones=[6])


def by_epoch(schedule):
    """A schedule whose unit is the epoch, asked at every step."""

    def make(opt):
        inner = schedule(opt)

        class EveryEpoch:
            steps = 0

            def step(self):
                self.steps += 1
                if self.steps % PER_EPOCH == 0:
                    inner.step()

        return EveryEpoch()

    return make


step_lr = by_epoch(lambda opt: torch.optim.lr_scheduler.StepLR(opt, step_size=2, gamma=0.5))
multi_step = by_epoch(lambda opt: torch.optim.lr_scheduler.MultiStepLR(opt, milestones=[1, 4], gamma=0.1))

adam = lambda params: torch.optim.Adam(params, lr=0.01, weight_decay=0.02, foreach=False)
plain = lambda params: torch.optim.Adam(params, lr=0.01, foreach=False)
adamw = lambda params: torch.optim.AdamW(params, lr=0.01, weight_decay=0.5, foreach=False)

print(
    json.dumps(
        {
            "made_by": "tools/refnums/optim.py",
            "versions": {"torch": torch.__version__, "numpy": np.__version__, "python": platform.python_version()},
            "steps": STEPS,
            "per_epoch": PER_EPOCH,
            "start": [short(p) for p in fresh()],
            "gradients": [[short(g) for g in pair] for pair in gradients()],
            "cases": {
                "adam": run(adam),
                "adamw": run(adamw),
                "adam clipped": run(plain, clip=0.5),
                "adamw cosine": run(adamw, scheduler=cosine),
                "adam clipped warm cosine": run(adam, clip=1.0, scheduler=warm_cosine),
                "adam step": run(adam, scheduler=step_lr),
                "adam milestones": run(adam, scheduler=multi_step),
            },
        },
        separators=(",", ":"),
    ).replace('"adam', '\n"adam').replace('"gradients"', '\n"gradients"')
)
