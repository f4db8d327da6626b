"""Exclude a function from torch.compile without importing the compiler."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any, TypeVar

import torch

Function = TypeVar("Function", bound=Callable[..., Any])


def not_compiled(function: Function) -> Function:
    """Decorate a function so that torch.compile runs it, and all it calls, without tracing.

    As `torch.compiler.disable` does, which takes seconds because it loads the compiler. One that is
    not loaded cannot be running.
    """

    @functools.wraps(function)
    def as_it_is(*args: Any, **kwargs: Any) -> Any:
        is_loaded = "torch._dynamo" in sys.modules
        return (torch.compiler.disable(function) if is_loaded else function)(*args, **kwargs)

    as_it_is._torchdynamo_disable = True  # type: ignore[attr-defined]  # torch's own mark
    return as_it_is  # type: ignore[return-value]  # the same signature
