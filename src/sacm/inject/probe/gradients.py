"""Find out which activations carry a gradient in training."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import ExitStack
from typing import Any

import torch
from torch import nn

from sacm.inject.probe.passes import PassRunner
from sacm.inject.probe.restore import restored_afterwards
from sacm.inject.probe.tree import collect_tensors
from sacm.inject.state import Call


def find_differentiable(
    runner: PassRunner, call: Call, modules: Collection[nn.Module]
) -> set[nn.Module]:
    """Return those of the modules whose input carries a gradient in a training forward."""
    found: set[nn.Module] = set()

    def note(module: nn.Module, args: Any, kwargs: Any) -> None:
        if any(tensor.requires_grad for tensor in collect_tensors((args, kwargs))):
            found.add(module)

    with restored_afterwards(runner.model), ExitStack() as stack:
        runner.set_flags(training=True)
        for module in modules:
            handle = module.register_forward_pre_hook(note, with_kwargs=True)
            stack.callback(handle.remove)
        runner.run(call, around=torch.enable_grad())
    return found
