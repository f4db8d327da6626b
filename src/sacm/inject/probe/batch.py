"""Batches for the probe: a few windows cut from the arguments of a call, or all of them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_flatten, tree_map

from sacm.errors import ArgumentError
from sacm.inject.probe.run import Call, collect_tensors, copy_tensors, map_tensors
from sacm.inject.window import WindowArgument

WINDOWS = 3  # few enough to be quick, odd so that fewer shapes divide by accident
_MOST_WAYS = 32


@dataclass(frozen=True)
class ProbeBatch:
    """Arguments of a call that hold `count` windows, to be run and disturbed.

    `in_lists`: the windows are elements of lists, one tensor for each window.
    """

    call: Call
    window: WindowArgument
    count: int
    in_lists: bool = False

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
        if self.in_lists:
            parts = [held[index] for held in _window_lists(call, self.count)]
        else:
            parts = [tensor[index] for tensor in find_window_tensors(call, self.window, self.count)]
        return [part for part in parts if part.is_floating_point()]


def take_whole_batch(call: Call, window: WindowArgument) -> ProbeBatch:
    """Return all windows of a call."""
    args, kwargs = copy_tensors((call.args, call.kwargs))
    whole = Call(call.model, args, kwargs)
    count = window(call.args, call.kwargs).shape[0]
    in_lists = _is_in_lists(whole, window, count)
    for tensor in [] if in_lists else find_window_tensors(whole, window, count):
        tensor.nan_to_num_(nan=0.0, posinf=0.0, neginf=0.0)
    return _checked(whole, window, count, in_lists=in_lists)


def cut_batch(call: Call, window: WindowArgument, count: int = WINDOWS) -> Iterator[ProbeBatch]:
    """Return the first windows of a batch, repeated if there are fewer, with their other arguments.

    An argument as long as the batch usually goes with it; but a mask `[L, L]` does not, though L
    may be the batch size. So there are several ways to cut, the usual one first.
    """
    batch = window(call.args, call.kwargs).shape[0]
    if batch == 0:
        raise ArgumentError(f"{window.model_name}: an empty batch cannot be probed.")
    tree = (call.args, call.kwargs)
    if _is_in_lists(call, window, batch):
        args, kwargs = _cut_lists(tree, batch, count)
        yield _checked(Call(call.model, args, kwargs), window, count, in_lists=True)
        return
    tensors = collect_tensors(tree)
    long = [i for i, tensor in enumerate(tensors) if tensor.shape[:1] == (batch,)]
    target = window.raw(call.args, call.kwargs)
    own = [i for i in long if _shares_memory(tensors[i], target)]
    others = [i for i in long if own and i not in own]
    subsets = itertools.chain.from_iterable(
        itertools.combinations(others, size) for size in range(len(others) + 1)
    )
    for whole in itertools.islice(subsets, _MOST_WAYS):
        cuts = [i in long and i not in whole for i in range(len(tensors))]
        args, kwargs = _replace_tensors(
            tree, [_take(t, batch, count, cut=c) for t, c in zip(tensors, cuts, strict=True)]
        )
        few = Call(call.model, args, kwargs)
        for tensor in find_window_tensors(few, window, count):
            tensor.nan_to_num_(nan=0.0, posinf=0.0, neginf=0.0)  # nothing moves in a window of NaN
        yield _checked(few, window, count, in_lists=False)


def find_window_tensors(call: Call, window: WindowArgument, count: int) -> list[Tensor]:
    """Return the window among the arguments, or what a user's function computes it from."""
    target = window.raw(call.args, call.kwargs)
    tensors = collect_tensors((call.args, call.kwargs))
    own = any(_shares_memory(tensor, target) for tensor in tensors)
    found = [target] if own else [t for t in tensors if t.dim() and t.shape[0] == count]
    return [tensor for tensor in found if tensor.is_floating_point()]


def _checked(call: Call, window: WindowArgument, count: int, *, in_lists: bool) -> ProbeBatch:
    """Return a batch; refuse arguments in which the window cannot be found and disturbed."""
    batch = ProbeBatch(call, window, count, in_lists)
    kind = window.raw(call.args, call.kwargs).dtype
    if not kind.is_floating_point:
        raise ArgumentError(
            f"{window.model_name}: the windows are {str(kind).removeprefix('torch.')}, and only "
            "numbers with a fraction can be scored and disturbed; attach to a model that takes the "
            "values and makes its tokens inside."
        )
    if not batch._parts(call, 0):
        raise ArgumentError(
            f"{window.model_name}: the window that input_arg gives is in no tensor of the "
            "arguments (looked into tuples, lists, dicts and dataclasses), so the probe cannot "
            "disturb it; pass the windows as a tensor in one of these."
        )
    return batch


def _is_in_lists(call: Call, window: WindowArgument, batch: int) -> bool:
    """True if no tensor is as long as the batch, but lists of tensors are."""
    tensors = collect_tensors((call.args, call.kwargs))
    target = window.raw(call.args, call.kwargs)
    if any(t.shape[:1] == (batch,) and _shares_memory(t, target) for t in tensors):
        return False
    return bool(_window_lists(call, batch))


def _window_lists(call: Call, count: int) -> list[Any]:
    """Return the lists and tuples below the arguments that hold one tensor for each window."""
    found: list[Any] = []
    for node in (*call.args, *call.kwargs.values()):
        tree_flatten(node, is_leaf=lambda held: _is_window_list(held, count, found))
    return found


def _is_window_list(held: Any, count: int, found: list[Any]) -> bool:
    """Note a list of `count` tensors; True ends the search below it."""
    fits = (
        isinstance(held, list | tuple)
        and len(held) == count
        and all(isinstance(each, Tensor) for each in held)
    )
    if fits:
        found.append(held)
    return fits


def _cut_lists(tree: Any, batch: int, count: int) -> Any:
    """Cut every list of `batch` tensors to `count` of them; copy all other tensors."""

    def cut(held: Any) -> Any:
        if isinstance(held, list | tuple):
            return type(held)(held[i % batch].detach().clone() for i in range(count))
        return copy_tensors(held)

    args, kwargs = tree
    found: list[Any] = []
    return tree_map(cut, (list(args), kwargs), is_leaf=lambda h: _is_window_list(h, batch, found))


def _replace_tensors(tree: Any, tensors: list[Tensor]) -> Any:
    """Return nested containers with other tensors, in the order of `collect_tensors`."""
    remaining = iter(tensors)
    return map_tensors(lambda _: next(remaining), tree)


def _shares_memory(one: Tensor, other: Tensor) -> bool:
    """True for views of the same memory."""
    return one.untyped_storage().data_ptr() == other.untyped_storage().data_ptr()


def _take(tensor: Tensor, batch: int, count: int, *, cut: bool) -> Tensor:
    """Return the first windows of a tensor, or a copy of it."""
    if not cut:
        return tensor.detach().clone()
    return tensor.detach().index_select(0, torch.arange(count, device=tensor.device) % batch)
