"""Tensors in nested arguments: tuples, lists, dicts, and dataclasses that torch does not know."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor
from torch.utils._pytree import tree_flatten, tree_map


def map_tensors(function: Callable[[Tensor], Any], tree: Any) -> Any:
    """Return a copy of nested containers with `function` applied to every tensor in them."""

    def map_leaf(leaf: Any) -> Any:
        if isinstance(leaf, Tensor):
            return function(leaf)
        fields = _fields(leaf)
        if fields is None:
            return leaf
        clone = copy.copy(leaf)
        for name, value in fields.items():
            if isinstance(leaf, Mapping):
                clone[name] = map_tensors(function, value)
            else:  # also for frozen dataclasses
                object.__setattr__(clone, name, map_tensors(function, value))
        return clone

    return tree_map(map_leaf, tree)


def collect_tensors(tree: Any) -> list[Tensor]:
    """Return all tensors in nested containers, in the order of `map_tensors`."""
    found = []
    for leaf in tree_flatten(tree)[0]:
        if isinstance(leaf, Tensor):
            found.append(leaf)
        elif (fields := _fields(leaf)) is not None:
            found += [tensor for value in fields.values() for tensor in collect_tensors(value)]
    return found


def copy_tensors(tree: Any) -> Any:
    """Return a copy of nested containers with a copy of every tensor."""
    return map_tensors(lambda tensor: tensor.detach().clone(), tree)


def _fields(leaf: Any) -> dict[Any, Any] | None:
    """Return what a container that torch does not know holds; None for everything else."""
    if dataclasses.is_dataclass(leaf) and not isinstance(leaf, type):
        return {f.name: getattr(leaf, f.name) for f in dataclasses.fields(leaf)}
    return dict(leaf) if isinstance(leaf, Mapping) else None
