"""The optimizer of a run."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from sacm.settings import ResolvedSettings
from sacm.strategies.base import StrategyRun


def make_optimizer(
    model: nn.Module, run: StrategyRun, settings: ResolvedSettings
) -> torch.optim.Optimizer:
    """Adam with coupled weight decay; none on the strategy's own scalars."""
    scalars = run.scalars()
    own = {id(scalar) for scalar in scalars}
    rest = [p for p in model.parameters() if p.requires_grad and id(p) not in own]
    groups: list[dict[str, Any]] = [{"params": rest, "weight_decay": settings.weight_decay}]
    if scalars:
        groups.append({"params": scalars, "weight_decay": 0.0})
    # One kernel for all parameters: on a CPU a fraction of the time of one call for each.
    return torch.optim.Adam(groups, lr=settings.learning_rate, fused=True)
