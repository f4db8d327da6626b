"""Callbacks that report the progress of long work."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

Progress = Callable[[float], None]
"""Called with the share of one step that is done, between 0 and 1."""


class Tell(Protocol):
    """Called with the name of a step and the share of it that is done, between 0 and 1."""

    def __call__(self, step: str, share: float = 0.0, /) -> None: ...


def tell_nobody(step: str, share: float = 0.0) -> None:
    """Report nothing; the default `Tell`."""


def no_progress(share: float) -> None:
    """Report nothing; the default `Progress`."""
