"""Argument checks shared by public functions; each raises ArgumentError."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from numbers import Integral
from typing import Any

from torch import Tensor

from sacm.core.config import SACMConfig
from sacm.errors import ArgumentError


def check_whole_number(name: str, value: Any) -> int:
    """Return `value` as an int; any integer type from 1 on is accepted, but no bool."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
        raise ArgumentError(f"{name} must be a whole number from 1 on, got {value!r}.")
    return int(value)


def check_config(config: Any) -> SACMConfig:
    """Return the settings, or the paper's for None."""
    if config is None:
        return SACMConfig()
    if not isinstance(config, SACMConfig):
        raise ArgumentError(f"config must be a SACMConfig, got {type(config).__name__}.")
    return config


def check_tensor(name: str, value: Any) -> None:
    """Refuse arrays and lists, which have no device and no gradient."""
    if not isinstance(value, Tensor):
        raise ArgumentError(f"{name} must be a torch tensor, got {type(value).__name__}.")


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
