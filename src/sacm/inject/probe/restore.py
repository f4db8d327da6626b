"""Put a model back after a run: attributes, tensors, flags and random states."""

from __future__ import annotations

import random
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

# Random states and the fast-path switch belong to the process: one thread at a time uses them.
_BORROWED = threading.RLock()


@contextmanager
def restored_afterwards(model: nn.Module) -> Iterator[None]:
    """Put back, on leaving, everything that a forward pass of `model` may have changed."""
    with _BORROWED:
        tensors = {id(tensor): (tensor, tensor.detach().clone()) for tensor in _tensors(model)}
        containers = [(held, _entries(held)) for held in _containers(model)]
        restore_random = _random_states(model)
        fast_path = torch.backends.mha.get_fastpath_enabled()
        try:
            # The fused inference kernel of nn.TransformerEncoder would pass its dropouts by.
            torch.backends.mha.set_fastpath_enabled(False)
            with torch.no_grad():
                yield
        finally:
            torch.backends.mha.set_fastpath_enabled(fast_path)
            restore_random()
            for held, entries in containers:
                _put_back(held, entries)
            for tensor, saved in tensors.values():
                if not _same(tensor, saved):
                    tensor.detach().copy_(saved)


def seed_all_generators(seed: int) -> None:
    """Seed the generators of torch, Python and NumPy."""
    torch.manual_seed(seed)
    random.seed(seed)
    np.random.seed(seed)


def _tensors(model: nn.Module) -> Iterator[Tensor]:
    """Yield parameters, buffers and tensors that modules keep as plain attributes."""
    yield from model.parameters()
    yield from model.buffers()
    for module in model.modules():
        yield from (value for value in module.__dict__.values() if isinstance(value, Tensor))


def _containers(model: nn.Module) -> Iterator[Any]:
    """Yield the containers in which modules keep attributes, parameters, buffers and children."""
    for module in model.modules():
        yield from (v for v in module.__dict__.values() if isinstance(v, dict | list | set | deque))
        yield module.__dict__


def _entries(held: Any) -> Any:
    """Return a shallow copy of a container."""
    return dict(held) if isinstance(held, dict) else list(held)


def _put_back(held: Any, entries: Any) -> None:
    """Restore the entries of a container if they changed."""
    now = _entries(held)
    if isinstance(held, dict):
        same = now.keys() == entries.keys() and all(now[key] is entries[key] for key in entries)
    else:
        same = len(now) == len(entries) and all(map(lambda a, b: a is b, now, entries))
    if not same:
        held.clear()
        put = held.extend if isinstance(held, list | deque) else held.update
        put(entries)


def _same(tensor: Tensor, saved: Tensor) -> bool:
    """Return whether tensors are equal, with NaN equal to NaN."""
    return torch.equal(tensor, saved) or bool(
        torch.isclose(tensor, saved, rtol=0, atol=0, equal_nan=True).all()
    )


def _random_states(model: nn.Module) -> Callable[[], None]:
    """Save the state of every generator that a forward may use; returns what restores them."""
    python, numpy, cpu = random.getstate(), np.random.get_state(), torch.get_rng_state()
    devices = {p.device for p in [*model.parameters(), *model.buffers()]}
    if torch.cuda.is_initialized():  # torch.manual_seed reaches every device
        devices |= {torch.device("cuda", index) for index in range(torch.cuda.device_count())}
    accelerators: list[tuple[Any, torch.device, torch.Tensor]] = []
    for device in devices:
        if device.type not in ("cpu", "meta"):
            library = torch.get_device_module(device)
            arguments = (device,) if device.type != "mps" else ()
            accelerators.append((library, device, library.get_rng_state(*arguments)))

    def restore() -> None:
        random.setstate(python)
        np.random.set_state(numpy)
        torch.set_rng_state(cpu)
        for library, device, state in accelerators:
            arguments = (device,) if device.type != "mps" else ()
            library.set_rng_state(state, *arguments)

    return restore
