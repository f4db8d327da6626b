"""What all checks share: how they run and fail, and windows to run on."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import torch
from torch import Tensor

Case = TypeVar("Case")


def require(condition: Any, sentence: str) -> None:
    """Raise an AssertionError with the sentence, unless the condition holds."""
    if not bool(condition):
        raise AssertionError(f"{sentence}.")


def run_checks(subject: str, checks: Iterable[Callable[[Case], None]], case: Case) -> None:
    """Run checks in turn; the first failure is an AssertionError that names the subject."""
    with torch.random.fork_rng(devices=[]):  # checking changes nobody's random numbers
        for check in checks:
            try:
                check(case)
            except AssertionError as error:
                raise AssertionError(f"{subject}: {error}") from error
            except Exception as error:
                what = check.__name__.replace("_", " ")
                message = f"{subject}: {type(error).__name__} where {what}: {error}"
                raise AssertionError(message) from error


def windows(batch: int, *, length: int = 96, channels: int = 3, seed: int = 0) -> Tensor:
    """Make sines of random period and phase with noise, `[B, L, C]`."""
    generator = torch.Generator().manual_seed(seed)
    time = torch.arange(length)[None, :, None]
    period = 6 + 20 * torch.rand(batch, 1, channels, generator=generator)
    phase = 6.28 * torch.rand(batch, 1, channels, generator=generator)
    noise = 0.3 * torch.randn(batch, length, channels, generator=generator)
    return torch.sin(6.28 * time / period + phase) + noise


def are_finite(tensors: Iterable[Tensor | None]) -> bool:
    """Return whether all values of all tensors are finite."""
    return all(bool(tensor.isfinite().all()) for tensor in tensors if tensor is not None)
