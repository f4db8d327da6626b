"""Tensors that pretend to lie on a device without float64, as Apple's does."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_map

PRETENDED = torch.device("mps")


class Elsewhere(Tensor):
    """Holds a tensor of the CPU; refuses to make float64 of it before it is moved there."""

    held: Tensor

    @staticmethod
    def __new__(cls, held: Tensor) -> Elsewhere:
        made = Tensor._make_wrapper_subclass(
            cls, held.size(), strides=held.stride(), dtype=held.dtype, device=PRETENDED
        )
        made.held = held
        return made

    @classmethod
    def __torch_dispatch__(
        cls, func: Any, _types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = dict(kwargs or {})
        moved = kwargs.get("device") == torch.device("cpu")
        if kwargs.get("device") == PRETENDED:
            del kwargs["device"]
        args, kwargs = tree_map(lambda x: x.held if isinstance(x, cls) else x, (args, kwargs))
        return tree_map(lambda x: _put(x, moved=moved), func(*args, **kwargs))


def _put(result: Any, *, moved: bool) -> Any:
    if moved or not isinstance(result, Tensor):
        return result
    if result.dtype == torch.float64:
        raise TypeError("this device has no float64")
    return Elsewhere(result)
