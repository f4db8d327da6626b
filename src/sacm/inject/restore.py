"""Run a model without leaving a trace, on copies of its arguments."""

from __future__ import annotations

import copy
import dataclasses
import random
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_map

# Random states and the fast-path switch belong to the process: one thread at a time uses them.
_PROCESS_LOCK = threading.RLock()


@contextmanager
def restored_afterwards(model: nn.Module) -> Iterator[None]:
    """Put back, on leaving, everything that a forward pass of `model` may have changed."""
    with _PROCESS_LOCK:
        containers = [(held, _entries(held)) for held in _containers(model)]
        values = [each for _, entries in containers for each in _values(entries)]
        tensors = {id(each): each for each in values if isinstance(each, Tensor)}.values()
        copies = [(tensor, tensor.detach().clone()) for tensor in tensors]
        generators = [(put_back, get()) for get, put_back in _generators(tensors)]
        fast_path = torch.backends.mha.get_fastpath_enabled()
        try:
            # The fused inference kernel of nn.TransformerEncoder would skip its dropouts.
            torch.backends.mha.set_fastpath_enabled(False)
            with torch.no_grad():
                yield
        finally:
            torch.backends.mha.set_fastpath_enabled(fast_path)
            for put_back, state in generators:
                put_back(state)
            for held, entries in containers:
                _put_back(held, entries)
            for tensor, saved in copies:
                if not is_same(tensor, saved):
                    tensor.detach().copy_(saved)


def seed_all_generators(seed: int) -> None:
    """Seed the generators of torch, Python and NumPy."""
    torch.manual_seed(seed)
    random.seed(seed)
    np.random.seed(seed)


def is_same(tensor: Tensor, saved: Tensor) -> bool:
    """Return whether tensors are equal, with NaN equal to NaN."""
    return torch.equal(tensor, saved) or bool(
        torch.isclose(tensor, saved, rtol=0, atol=0, equal_nan=True).all()
    )


def _containers(model: nn.Module) -> Iterator[Any]:
    """Yield the containers in which modules keep attributes, parameters, buffers and children."""
    for module in model.modules():
        yield from (v for v in module.__dict__.values() if isinstance(v, dict | list | set | deque))
        yield module.__dict__


def _entries(held: Any) -> Any:
    """Return a shallow copy of a container."""
    return dict(held) if isinstance(held, dict) else list(held)


def _values(entries: Any) -> list[Any]:
    return list(entries.values()) if isinstance(entries, dict) else entries


def _put_back(held: Any, entries: Any) -> None:
    """Restore the entries of a container if they changed."""
    now = _entries(held)
    same_keys = not isinstance(held, dict) or now.keys() == entries.keys()
    if same_keys and list(map(id, _values(now))) == list(map(id, _values(entries))):
        return
    held.clear()
    put = held.extend if isinstance(held, list | deque) else held.update
    put(entries)


def _generators(
    tensors: Iterable[Tensor],
) -> Iterator[tuple[Callable[[], Any], Callable[[Any], Any]]]:
    """Yield what gets and what sets the state of every generator that a forward may use."""
    yield random.getstate, random.setstate
    yield np.random.get_state, np.random.set_state
    yield torch.get_rng_state, torch.set_rng_state
    devices = {tensor.device.type for tensor in tensors} - {"cpu", "meta"}
    if torch.cuda.is_initialized():  # torch.manual_seed reaches every device
        devices.add("cuda")
    for device in devices:
        library: Any = torch.get_device_module(device)
        every = "_all" if hasattr(library, "get_rng_state_all") else ""
        yield getattr(library, f"get_rng_state{every}"), getattr(library, f"set_rng_state{every}")


def map_tensors(function: Callable[[Tensor], Tensor], tree: Any) -> Any:
    """Return a copy of nested containers with `function` applied to every tensor in them."""

    def map_leaf(leaf: Any) -> Any:
        if isinstance(leaf, Tensor):
            return function(leaf)
        # Containers that torch does not know; also frozen dataclasses.
        if dataclasses.is_dataclass(leaf) and not isinstance(leaf, type):
            clone = copy.copy(leaf)
            for each in dataclasses.fields(leaf):
                value = map_tensors(function, getattr(leaf, each.name))
                object.__setattr__(clone, each.name, value)
            return clone
        if isinstance(leaf, Mapping):
            mapping: Any = copy.copy(leaf)
            for key, value in leaf.items():
                mapping[key] = map_tensors(function, value)
            return mapping
        return leaf

    return tree_map(map_leaf, tree)


def copy_tensors(tree: Any) -> Any:
    """Return a copy of nested containers with a copy of every tensor."""
    return map_tensors(lambda tensor: tensor.detach().clone(), tree)


def collect_tensors(tree: Any) -> list[Tensor]:
    """Return all tensors in nested containers."""
    tensors: list[Tensor] = []

    def collect(tensor: Tensor) -> Tensor:
        tensors.append(tensor)
        return tensor

    map_tensors(collect, tree)
    return tensors
