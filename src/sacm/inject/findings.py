"""What the first probe of a model tells the user."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from sacm.core.distributed import world_size
from sacm.errors import ArgumentError, SACMWarning


def report_nothing_adaptive(model_name: str, *, in_training: bool) -> None:
    """Warn that no site is adaptive; refuse it where other processes wait for the scalars.

    Raises:
        ArgumentError: Several processes train. Their wrapper was made with the scalars, and
            parameters that get no gradient would stop it.
    """
    found = f"{model_name} has no dropout to make adaptive, neither modules nor functional"
    if in_training and world_size() > 1:
        raise ArgumentError(f"{found}: do not attach it, or add sites with insert_after=[…].")
    warnings.warn(f"{found}; add sites with insert_after=[…].", SACMWarning, stacklevel=3)


def report_random_evaluation(model_name: str, parts: Sequence[str]) -> None:
    """Warn that a model is random in evaluation mode, and where."""
    warnings.warn(
        f"{model_name}: two evaluations of the same windows differ in {', '.join(parts)} (dropout "
        "without a training check, or sampled attention), so its predictions are random.",
        SACMWarning,
        stacklevel=3,
    )
