"""Batches for the probe: a few windows cut from the arguments of a call, or all of them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from sacm.errors import ArgumentError
from sacm.inject.probe.run import Call, collect_tensors, copy_tensors, map_tensors
from sacm.inject.window import WindowArgument

WINDOWS = 3  # few enough to be quick, odd so that fewer shapes divide by accident
_MOST_WAYS = 32


@dataclass(frozen=True)
class ProbeBatch:
    """Arguments of a call that hold `count` windows, to be run and disturbed."""

    call: Call
    window: WindowArgument
    count: int

    def disturb(self, chosen: Tensor, strength: float, seed: int) -> Call:
        """Return the call with noise added to the chosen windows, boolean `[count]`."""
        args, kwargs = copy_tensors((self.call.args, self.call.kwargs))
        changed = Call(self.call.model, args, kwargs)
        generator = torch.Generator().manual_seed(seed)
        for index in chosen.nonzero()[:, 0].tolist():
            for part in self._parts(changed, index):
                noise = torch.randn(part.shape, generator=generator).to(part)
                part += noise * (part.abs().mean() + 1e-2) * strength
        return changed

    def _parts(self, call: Call, index: int) -> list[Tensor]:
        """Return the floating-point tensors that make up one window, as views of the arguments."""
        return [tensor[index] for tensor in find_window_tensors(call, self.window, self.count)]


def take_whole_batch(call: Call, window: WindowArgument) -> ProbeBatch:
    """Return all windows of a call."""
    args, kwargs = copy_tensors((call.args, call.kwargs))
    whole = Call(call.model, args, kwargs)
    count = window(call.args, call.kwargs).shape[0]
    return _finite_batch(whole, window, count)


def cut_batch(call: Call, window: WindowArgument, count: int = WINDOWS) -> Iterator[ProbeBatch]:
    """Return the first windows of a batch, repeated if there are fewer, with their other arguments.

    An argument as long as the batch usually goes with it; but a mask `[L, L]` does not, though L
    may be the batch size. So there are several ways to cut, the usual one first.
    """
    batch = window(call.args, call.kwargs).shape[0]
    if batch == 0:
        raise ArgumentError(f"{window.model_name}: an empty batch cannot be probed.")
    tree = (call.args, call.kwargs)
    tensors = collect_tensors(tree)
    long = [i for i, tensor in enumerate(tensors) if tensor.shape[:1] == (batch,)]
    target = window.raw(call.args, call.kwargs)
    windows = [i for i in long if _shares_memory(tensors[i], target)]
    others = [i for i in long if windows and i not in windows]
    subsets = itertools.chain.from_iterable(
        itertools.combinations(others, size) for size in range(len(others) + 1)
    )
    for whole in itertools.islice(subsets, _MOST_WAYS):
        cuts = [i in long and i not in whole for i in range(len(tensors))]
        args, kwargs = _replace_tensors(
            tree, [_take(t, batch, count, cut=c) for t, c in zip(tensors, cuts, strict=True)]
        )
        yield _finite_batch(Call(call.model, args, kwargs), window, count)


def find_window_tensors(call: Call, window: WindowArgument, count: int) -> list[Tensor]:
    """Return the window among the arguments, or what a user's function computes it from."""
    target = window.raw(call.args, call.kwargs)
    tensors = collect_tensors((call.args, call.kwargs))
    if any(_shares_memory(tensor, target) for tensor in tensors):
        tensors = [target]
    return [t for t in tensors if t.shape[:1] == (count,) and t.is_floating_point()]


def _finite_batch(call: Call, window: WindowArgument, count: int) -> ProbeBatch:
    """Return a batch of finite windows: noise does not move a window of NaN.

    Raises:
        ArgumentError: The window cannot be found among the arguments, or cannot be disturbed.
    """
    kind = window.raw(call.args, call.kwargs).dtype
    if not kind.is_floating_point:
        raise ArgumentError(
            f"{window.model_name}: the windows are {str(kind).removeprefix('torch.')}, and only "
            "numbers with a fraction can be scored and disturbed; attach to a model that takes the "
            "values and makes its tokens inside."
        )
    tensors = find_window_tensors(call, window, count)
    if not tensors:
        raise ArgumentError(
            f"{window.model_name}: the window that input_arg gives is in no tensor of the "
            "arguments (looked into tuples, lists, dicts and dataclasses), so the probe cannot "
            "disturb it; pass the windows as a tensor in one of these."
        )
    for tensor in tensors:
        tensor.nan_to_num_(nan=0.0, posinf=0.0, neginf=0.0)
    return ProbeBatch(call, window, count)


def _replace_tensors(tree: Any, tensors: list[Tensor]) -> Any:
    """Return nested containers with other tensors, in the order of `collect_tensors`."""
    remaining = iter(tensors)
    return map_tensors(lambda _: next(remaining), tree)


def _shares_memory(first: Tensor, second: Tensor) -> bool:
    """Return whether two tensors are views of the same memory."""
    return first.untyped_storage().data_ptr() == second.untyped_storage().data_ptr()


def _take(tensor: Tensor, batch: int, count: int, *, cut: bool) -> Tensor:
    """Return the first windows of a tensor, or a copy of it."""
    if not cut:
        return tensor.detach().clone()
    return tensor.detach().index_select(0, torch.arange(count, device=tensor.device) % batch)
