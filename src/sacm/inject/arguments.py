"""Check the arguments of `attach`; each function raises ArgumentError."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from torch import Tensor, nn
from torch.nn.parallel import DataParallel, DistributedDataParallel
from torch.nn.parameter import is_lazy

from sacm.errors import ArgumentError
from sacm.inject.state import MODULATOR, Call


def make_call(model: nn.Module, example: Any) -> Call:
    """Turn example inputs into a call of the model."""
    if isinstance(example, Tensor):
        return Call(model, (example,), {})
    if isinstance(example, Mapping):
        return Call(model, (), dict(example))
    if isinstance(example, tuple | list):
        return Call(model, tuple(example), {})
    raise ArgumentError(
        "example_inputs must be a tensor, a tuple of arguments or a dict of keyword arguments, "
        f"got {type(example).__name__}."
    )


def check_model(model: nn.Module, coverage: str) -> None:
    """Refuse models that cannot be attached to."""
    name = type(model).__name__
    if not isinstance(model, nn.Module):
        raise ArgumentError(f"attach needs an nn.Module, got {name}.")
    if isinstance(model, DistributedDataParallel | DataParallel) or hasattr(model, "_orig_mod"):
        raise ArgumentError(f"attach to the model itself first, then wrap it in {name}.")
    if hasattr(model, MODULATOR):
        raise ArgumentError(f"{name} is already attached: detach it first.")
    if not any(p.requires_grad for p in model.parameters()):
        raise ArgumentError(f"{name} has no trainable parameters, so there is nothing to modulate.")
    if any(is_lazy(p) for p in model.parameters()):
        raise ArgumentError(f"{name} has lazy parameters without a shape: run a batch through it.")
    if coverage not in ("modules", "all"):
        raise ArgumentError(f"coverage must be 'modules' or 'all', got {coverage!r}.")


def check_module(argument: str, module: Any) -> None:
    """Refuse a scorer or mapper that is not a module."""
    if not isinstance(module, nn.Module | None):
        raise ArgumentError(f"{argument} must be an nn.Module, got {module!r}.")


def find_functional(globs: Iterable[str], argument: str, coverage: str) -> list[str]:
    """Return the names and globs that mean functional dropout, such as `encoder:dropout`."""
    found = [glob for glob in globs if ":" in glob]
    if found and coverage != "all":
        raise ArgumentError(
            f"{argument}: {found[0]!r} names a functional dropout, which needs coverage='all'."
        )
    return found


def check_names(argument: str, names: Any) -> list[str]:
    """Return names or globs as a list; they come in a list, or are the keys of a mapping."""
    if isinstance(names, str):
        raise ArgumentError(f"{argument} must be a list of names, got the string {names!r}.")
    if not isinstance(names, Iterable):
        raise ArgumentError(f"{argument} must be a list of names, got {names!r}.")
    found = list(names)
    for name in found:
        if not isinstance(name, str):
            raise ArgumentError(f"{argument} must hold names, got {name!r}.")
    return found


def check_mapping(argument: str, value: Any, kind: type) -> dict[str, Any]:
    """Return a dict from names or globs to values of one kind; empty for None."""
    if value is not None and not isinstance(value, Mapping):
        raise ArgumentError(
            f"{argument} must map names to {kind.__name__}, got {type(value).__name__}."
        )
    found = dict(zip(check_names(argument, value or {}), (value or {}).values(), strict=True))
    for name, held in found.items():
        if not isinstance(held, kind):
            raise ArgumentError(f"{argument}[{name!r}] must be a {kind.__name__}, got {held!r}.")
    return found
