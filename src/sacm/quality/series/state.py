"""Fitted dataclasses as plain JSON values and back."""

from __future__ import annotations

import types
from dataclasses import fields, is_dataclass
from typing import Any, Union, get_args, get_origin, get_type_hints

import numpy as np


def to_plain(value: Any) -> Any:
    """A fitted object as dicts, lists, numbers and strings; infinities become strings."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: to_plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, np.ndarray):
        return to_plain(value.tolist())
    if isinstance(value, list | tuple):
        return [to_plain(each) for each in value]
    if isinstance(value, np.generic):
        return to_plain(value.item())
    if isinstance(value, float) and not np.isfinite(value):
        return str(value)
    return value


def from_plain(kind: Any, plain: Any) -> Any:
    """The object of a given type that `to_plain` made `plain` of."""
    origin = get_origin(kind)
    if plain is None:
        return None
    if origin in (Union, types.UnionType):
        return from_plain(next(each for each in get_args(kind) if each is not type(None)), plain)
    if is_dataclass(kind):
        hints = get_type_hints(kind)
        # What an older version did not know keeps its default.
        known = {name: from_plain(hints[name], plain[name]) for name in hints if name in plain}
        return kind(**known)  # type: ignore[operator]  # mypy takes a dataclass for an instance
    if origin is np.ndarray:
        return np.asarray(plain, dtype=np.float64)
    if origin in (list, tuple):
        inner = get_args(kind)[0]
        return origin(from_plain(inner, each) for each in plain)
    if kind is float:
        return float(plain)
    return plain
