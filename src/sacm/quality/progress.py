"""How far the work is, for those who wait."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

Progress = Callable[[float], None]
"""Hears the share of one step that is done, between 0 and 1."""


class Tell(Protocol):
    """Hears the name of a step of the work and the share of it that is done."""

    def __call__(self, step: str, share: float = 0.0, /) -> None: ...


def tell_nobody(step: str, share: float = 0.0) -> None:
    """Take what is told, and do nothing with it."""


def no_progress(share: float) -> None:
    """Take the share that is done, and do nothing with it."""
