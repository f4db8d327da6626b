"""Find the parts of a model that are random although it is in evaluation mode."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import torch
from torch import Tensor, nn

from sacm.inject.probe.tree import collect_tensors


def find_random_parts(model: nn.Module, run: Callable[[int], Any]) -> list[str]:
    """Return the paths of modules whose output changes with the seed of `run` at the same input.

    Only the innermost ones; the model's class name when its own forward is random.
    """
    first, second = _record(model, run, seed=0), _record(model, run, seed=1)
    found = {
        name: None
        for (name, input, output), (_, other_input, other_output) in zip(
            first, second, strict=False
        )
        if tensors_equal(input, other_input) and not tensors_equal(output, other_output)
    }
    inner = [name for name in found if not any(o.startswith(f"{name}.") for o in found)]
    return inner or [type(model).__name__]


ModuleCall = tuple[str, list[Tensor], list[Tensor]]  # a call: name of the module, input, output


def _record(model: nn.Module, run: Callable[[int], Any], *, seed: int) -> list[ModuleCall]:
    """Record every call of every module below the model, in the order in which they return."""
    records: list[ModuleCall] = []
    inputs: list[list[Tensor]] = []

    def before(module: nn.Module, args: Any, kwargs: Any) -> None:
        inputs.append([t.detach().clone() for t in collect_tensors((args, kwargs))])

    with ExitStack() as stack:
        for name, module in model.named_modules():
            if module is not model and not isinstance(module, torch.jit.ScriptModule):

                def after(_module: nn.Module, _args: Any, output: Any, name: str = name) -> None:
                    outputs = [t.detach().clone() for t in collect_tensors(output)]
                    records.append((name, inputs.pop(), outputs))

                stack.callback(module.register_forward_pre_hook(before, with_kwargs=True).remove)
                stack.callback(module.register_forward_hook(after).remove)
        run(seed)
    return records


def tensors_equal(first: list[Tensor], second: list[Tensor]) -> bool:
    """Return whether tensors are equal one by one, with NaN equal to NaN."""
    return len(first) == len(second) and all(
        a.shape == b.shape and torch.equal(torch.nan_to_num(a), torch.nan_to_num(b))
        for a, b in zip(first, second, strict=True)
    )
