"""Code that a compiled model calls as it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])


def eager(function: Function) -> Function:
    """What `torch.compiler.disable` marks a function with, without importing the compiler."""
    function._torchdynamo_disable = True  # type: ignore[attr-defined]  # torch's own mark
    return function
