"""How a training goes: lines on standard error, and what every epoch leaves behind."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from sacm.errors import RunError

_FIRST_LINE, _LINE_SECONDS = 2.0, 30.0  # seconds until the first line, and between two at most


def say(text: str, *, show: bool = True) -> None:
    """A line on standard error."""
    if show:
        print(text, file=sys.stderr, flush=True)


@dataclass
class TrainingProgress:
    """Lines with steps, loss and remaining time; `deadline` is a time of the monotonic clock."""

    title: str
    total: int  # steps
    show: bool
    done: int = 0  # of them by an earlier process
    deadline: float = math.inf
    validation: str = ""

    def __post_init__(self) -> None:
        self.begun_with, self.pause = self.done, _FIRST_LINE
        self.started = self.shown_at = time.monotonic()

    def step(self, loss: Tensor) -> None:
        """One optimizer step is done."""
        self.done += 1
        now = time.monotonic()
        if not self.show or now - self.shown_at < self.pause:
            return
        left = (now - self.started) / (self.done - self.begun_with) * (self.total - self.done)
        say(
            f"{self.title}: step {self.done:,} of at most {self.total:,} · at most "
            f"{_duration(min(left, self.deadline - now))} left · loss {float(loss):.4f}"
            f"{self.validation}"
        )
        self.pause, self.shown_at = min(2 * self.pause, _LINE_SECONDS), now


def _duration(seconds: float) -> str:
    if seconds < 100:
        return f"{max(0.0, seconds):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def check_losses(losses: Sequence[Tensor], epoch: int) -> None:
    """Stop at the first loss of an epoch that is not a number."""
    if math.isfinite(float(losses[-1])):
        return
    step = next(i for i, loss in enumerate(losses, 1) if not math.isfinite(float(loss)))
    raise RunError(
        f"the loss is {float(losses[step - 1])} at epoch {epoch}, step {step}: lower the learning "
        "rate (--lr), or look for extreme values in the data."
    )


def summarise_epoch(losses: Sequence[Tensor], rates: Sequence[Tensor]) -> dict[str, float]:
    """The mean loss, and mean, deviation and extremes of the windows' rates where there are any."""
    row = {"train_loss": float(torch.stack(list(losses)).mean())}
    if rates:
        joined = torch.cat(list(rates)).float()
        row |= {"rate_mean": float(joined.mean()), "rate_std": float(joined.std(correction=0))}
        row |= {"rate_min": float(joined.min()), "rate_max": float(joined.max())}
    return row
