"""Run a model without leaving a trace, on copies of its arguments."""

from __future__ import annotations

import copy
import dataclasses
import random
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

_PROCESS_LOCK = threading.RLock()  # random states belong to the process: one thread at a time


@contextmanager
def restored_afterwards(model: nn.Module, *, seed: int) -> Iterator[None]:
    """Seed all generators; on leaving, put back all that a forward of `model` may have changed."""
    with _PROCESS_LOCK:
        attributes = [module.__dict__ for module in model.modules()]
        held = [value for each in attributes for value in each.values()]
        holders: list[Any] = [each for each in held if isinstance(each, dict | list | set | deque)]
        saved = [(holder, copy.copy(holder)) for holder in (*holders, *attributes)]
        values = [value for _, before in saved for value in _values(before)]
        tensors = {id(value): value for value in values if isinstance(value, Tensor)}.values()
        copies = [(tensor, tensor.detach().clone()) for tensor in tensors]
        generators = [(put, get()) for get, put in _generators({t.device.type for t in tensors})]
        try:
            torch.manual_seed(seed)
            random.seed(seed)
            np.random.seed(seed)
            yield
        finally:
            for put, state in generators:
                put(state)
            for holder, before in saved:
                same_keys = list(holder) == list(before) if isinstance(holder, dict) else True
                if not same_keys or [*map(id, _values(holder))] != [*map(id, _values(before))]:
                    holder.clear()
                    (holder.extend if isinstance(holder, list | deque) else holder.update)(before)
            for tensor, before in copies:
                if not is_same(tensor, before):
                    tensor.detach().copy_(before)


def is_same(tensor: Tensor, other: Tensor) -> bool:
    """Return whether tensors are equal, with NaN equal to NaN."""
    return torch.equal(tensor, other) or bool(
        torch.isclose(tensor, other, rtol=0, atol=0, equal_nan=True).all()
    )


def _values(holder: Any) -> list[Any]:
    return list(holder.values() if isinstance(holder, dict) else holder)


def _generators(devices: set[str]) -> Iterator[tuple[Callable[[], Any], Callable[[Any], Any]]]:
    """Yield what gets and what sets the state of every generator that a forward may use."""
    yield random.getstate, random.setstate
    yield np.random.get_state, np.random.set_state
    yield torch.get_rng_state, torch.set_rng_state
    if torch.cuda.is_initialized():  # torch.manual_seed reaches every device
        devices = devices | {"cuda"}
    for device in devices - {"cpu", "meta"}:
        library: Any = torch.get_device_module(device)
        every = "_all" if hasattr(library, "get_rng_state_all") else ""
        yield getattr(library, f"get_rng_state{every}"), getattr(library, f"set_rng_state{every}")


def collect_tensors(tree: Any) -> list[Tensor]:
    """Return all tensors in nested containers and dataclasses."""
    if isinstance(tree, Tensor):
        return [tree]
    if isinstance(tree, Mapping):
        tree = tree.values()
    elif dataclasses.is_dataclass(tree) and not isinstance(tree, type):
        tree = [getattr(tree, each.name) for each in dataclasses.fields(tree)]
    elif not isinstance(tree, list | tuple):
        return []
    return [tensor for part in tree for tensor in collect_tensors(part)]


def copy_tensors(tree: Any, change: Callable[[Tensor], Tensor] = torch.clone) -> Any:
    """Return a deep copy of nested containers, with every tensor changed and without its graph."""
    return copy.deepcopy(tree, {id(t): change(t.detach()) for t in collect_tensors(tree)})
