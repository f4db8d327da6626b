"""Run a model without leaving a trace: attributes, buffers, flags and random states come back."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import nn


@contextmanager
def untouched(model: nn.Module) -> Iterator[None]:
    """Put back, on leaving, everything that a forward pass of `model` may have changed."""
    attributes = [(module, dict(module.__dict__)) for module in model.modules()]
    tables = [
        (table, dict(table))
        for module in model.modules()
        for table in (module._buffers, module._parameters, module._modules)
    ]
    buffers = [(buffer, buffer.clone()) for buffer in model.buffers()]
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
        for buffer, saved in buffers:
            if not torch.equal(buffer, saved):
                with torch.no_grad():
                    buffer.copy_(saved)
        for table, entries in tables:
            table.clear()
            table.update(entries)  # type: ignore[arg-type]  # the three tables differ in value type
        for module, saved_attributes in attributes:
            module.__dict__.clear()
            module.__dict__.update(saved_attributes)


def _random_states(model: nn.Module) -> Callable[[], None]:
    """Remember every generator a forward pass may draw from; returns the way back."""
    python, numpy, cpu = random.getstate(), np.random.get_state(), torch.get_rng_state()
    devices = {p.device for p in [*model.parameters(), *model.buffers()]}
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
