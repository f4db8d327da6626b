"""The batch that a probe runs and disturbs."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from sacm.errors import ArgumentError
from sacm.inject.probe.run import Call, collect_tensors, copy_tensors, map_tensors
from sacm.inject.window import WindowArgument

_COPIES = 3  # of a single window: there must be another one to tell it from


@dataclass(frozen=True)
class ProbeBatch:
    """Arguments of a call that hold `count` windows."""

    call: Call
    window: WindowArgument
    count: int

    def disturb(self, index: int, strength: float) -> Call:
        """Return the call with noise added to one window, in units of its mean amplitude."""
        args, kwargs = copy_tensors((self.call.args, self.call.kwargs))
        changed = Call(self.call.model, args, kwargs)
        generator = torch.Generator().manual_seed(index + 1)
        for tensor in _window_tensors(changed, self.window, self.count):
            values = tensor[index]
            noise = torch.randn(values.shape, generator=generator).to(values)
            values += noise * (values.abs().mean() + 1e-2) * strength
        return changed


def take_batch(call: Call, window: WindowArgument) -> ProbeBatch:
    """Return a copy of the windows of a call with finite values; noise does not move NaN.

    A single window is repeated.

    Raises:
        ArgumentError: The window cannot be found among the arguments, or cannot be disturbed.
    """
    count = window(call.args, call.kwargs).shape[0]
    if count == 0:
        raise ArgumentError(f"{window.model_name}: an empty batch cannot be probed.")
    tree = copy_tensors((call.args, call.kwargs))
    if count == 1:
        count = _COPIES
        tree = map_tensors(lambda t: t.repeat_interleave(_COPIES, 0) if _is_row(t) else t, tree)
    batch = ProbeBatch(Call(call.model, *tree), window, count)
    dtype = window.raw(*tree).dtype
    if not dtype.is_floating_point:
        raise ArgumentError(
            f"{window.model_name}: the windows are {str(dtype).removeprefix('torch.')}, and only "
            "numbers with a fraction can be scored and disturbed; attach to a model that takes the "
            "values and makes its tokens inside."
        )
    tensors = _window_tensors(batch.call, window, count)
    if not tensors:
        raise ArgumentError(
            f"{window.model_name}: the window that input_arg gives is in no tensor of the "
            "arguments (looked into tuples, lists, dicts and dataclasses), so the probe cannot "
            "disturb it; pass the windows as a tensor in one of these."
        )
    for tensor in tensors:
        tensor.nan_to_num_(nan=0.0, posinf=0.0, neginf=0.0)
    return batch


def _is_row(tensor: Tensor) -> bool:
    return tensor.shape[:1] == (1,)


def _window_tensors(call: Call, window: WindowArgument, count: int) -> list[Tensor]:
    """Return the window among the arguments, or what a user's function computes it from."""
    target = window.raw(call.args, call.kwargs)
    tensors = collect_tensors((call.args, call.kwargs))
    memory = target.untyped_storage().data_ptr()
    if any(tensor.untyped_storage().data_ptr() == memory for tensor in tensors):
        tensors = [target]
    return [t for t in tensors if t.shape[:1] == (count,) and t.is_floating_point()]
