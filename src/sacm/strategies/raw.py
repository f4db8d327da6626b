"""The backbone untouched, with its own default dropout."""

from __future__ import annotations

from dataclasses import dataclass

from sacm.strategies.base import Strategy
from sacm.strategies.registry import register


@register("raw")
@dataclass(frozen=True)
class Raw(Strategy):
    """Leave the backbone as it is, with its own dropout rates."""
