"""The probe leaves no trace."""

from __future__ import annotations

import copy
import random
from collections import deque
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import sacm

from ..models import CHANNELS, windows

# What the probe is for: that it was done, what it saw, and fewer functions to intercept.
OWN = {"probed", "is_random", "stand_ins", "forward"}


class Restless(nn.Module):
    """Changes everything that a forward can change, in training and in evaluation."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Conv1d(CHANNELS, 8, 3, padding=1)
        self.norm = nn.BatchNorm1d(8)
        self.spectral = nn.utils.parametrizations.spectral_norm(nn.Linear(8, 8))
        self.drop = nn.Dropout(0.1)
        self.head = nn.Linear(8, 2)
        self.scale = nn.Parameter(torch.tensor(3.0))
        self.register_buffer("steps", torch.zeros((), dtype=torch.long))
        self.register_buffer("unknown", torch.full((2,), torch.nan))
        self.register_buffer("flags", torch.zeros(3, dtype=torch.bool))
        self.count = 0
        self.seen: list[int] = []
        self.last: dict[str, Tensor] = {}
        self.shapes: set[int] = set()
        self.recent: deque[int] = deque(maxlen=2)
        self.plain = torch.zeros(2)
        self.memory: Tensor | None = None

    def forward(self, x: Tensor) -> Tensor:
        h = self.norm(self.embed(x.transpose(1, 2))).transpose(1, 2)
        h = h if self.memory is None else h + self.memory.mean()
        h = h + float(np.random.rand()) + random.random() + torch.rand(())
        h = self.drop(self.spectral(h))
        h = F.dropout(h, 0.1, self.training)
        self.scale.data.clamp_(max=1.0)
        self.steps += 1
        self.unknown[0] = 1.0
        self.flags[1] = True
        self.count += 1
        self.seen.append(self.count)
        self.last["h"] = h
        self.shapes.add(len(x))
        self.recent.append(self.count)
        self.plain += 1
        self.memory = h.detach()
        self.new_attribute = True
        return self.head(h) * self.scale


def everything(model: nn.Module) -> dict[str, Any]:
    """A picture of the model and of the process's random states."""
    return {
        "state": {name: tensor.clone() for name, tensor in model.state_dict().items()},
        "identity": {name: id(p) for name, p in model.named_parameters()},
        "gradients": {n: _copied(p.grad) for n, p in model.named_parameters()},
        "flags": {name: module.training for name, module in model.named_modules()},
        "attributes": {
            name: {k: _copied(v) for k, v in vars(module).items() if k not in OWN}
            for name, module in model.named_modules()
        },
        "random": (random.getstate(), str(np.random.get_state()), torch.get_rng_state()),
        "threads": torch.get_num_threads(),
        "grad mode": torch.is_grad_enabled(),
    }


def _copied(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.detach().clone()
    return copy.copy(value) if isinstance(value, dict | list | set | deque) else value


def same(a: Any, b: Any) -> bool:
    if isinstance(a, Tensor):
        return isinstance(b, Tensor) and torch.equal(a.nan_to_num(7.5), b.nan_to_num(7.5))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    return bool(a == b)


@pytest.mark.parametrize("coverage", ["modules", "all"])
@pytest.mark.parametrize("training", [True, False])
def test_the_probe_leaves_everything_as_it_was(coverage: str, training: bool) -> None:
    torch.manual_seed(0)
    model, x = Restless(), windows()
    model(x).sum().backward()  # so that there are gradients, statistics and memories to lose
    model.train(training)
    model.norm.eval()
    modulator = sacm.attach(model, channels=CHANNELS, coverage=coverage)
    before, given = everything(model), x.clone()
    modulator.probe(model, ((x,), {}))
    after = everything(model)
    for part in before:
        assert same(before[part], after[part]), part
    assert torch.equal(x, given)
    assert not hasattr(model.drop, "new_attribute")


def test_a_probe_that_fails_leaves_no_trace_either() -> None:
    class Mixing(Restless):
        def forward(self, x: Tensor) -> Tensor:
            return super().forward(x + x.flip(0))

    torch.manual_seed(0)
    model = Mixing()
    keys = list(model.state_dict())
    before = everything(model)
    with pytest.raises(sacm.LayoutError):
        sacm.attach(model, channels=CHANNELS, example_inputs=windows())
    after = everything(model)
    for part in before:
        assert same(before[part], after[part]), part
    assert list(model.state_dict()) == keys
    assert type(model.drop) is nn.Dropout
    assert not model._forward_pre_hooks
    assert not model._forward_hooks


def test_a_first_training_step_is_the_same_with_and_without_example_inputs() -> None:
    """The probe in the first forward must not shift the random numbers of that forward."""
    losses = []
    for example in (windows(), None):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Flatten(), nn.Linear(48, 8), nn.Dropout(0.1), nn.Linear(8, 1))
        sacm.attach(model, channels=CHANNELS, example_inputs=example)
        torch.manual_seed(1)
        losses.append(model(windows()).sum())
    assert torch.equal(*losses)
