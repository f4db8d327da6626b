"""How a training goes: lines on standard error, and what every epoch leaves behind."""

from __future__ import annotations

import math
import shutil
import sys
import time
from collections.abc import Sequence
from typing import Self

import torch
from torch import Tensor

from sacm.errors import RunError

_REDRAW_SECONDS = 0.1  # between two looks of the line on a terminal
_CLEAR = "\r\033[K"  # go to the beginning of the line and empty it
_FIRST_LINE, _LINE_SECONDS = 2.0, 30.0  # until the first line, and between two, without a terminal


def say(text: str, *, show: bool = True) -> None:
    """A line on standard error."""
    if show:
        print(text, file=sys.stderr, flush=True)


class TrainingProgress:
    """Steps, loss and remaining time: one changing line on a terminal, new lines elsewhere.

    `done` are the finished epochs of a resumed run; training stops at the deadline, a time of the
    monotonic clock.
    """

    def __init__(
        self,
        title: str,
        *,
        epochs: int,
        steps: int,
        show: bool,
        done: int = 0,
        deadline: float | None = None,
    ) -> None:
        self.title, self.total, self.show, self.deadline = title, epochs * steps, show, deadline
        self._done = self._begun_with = done * steps
        self._validation = ""
        self._terminal = sys.stderr.isatty()
        self._started = self._shown_at = time.monotonic()
        self._pause = _REDRAW_SECONDS if self._terminal else _FIRST_LINE

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self.show and self._terminal:
            print(_CLEAR, end="", file=sys.stderr, flush=True)

    def step(self, loss: Tensor) -> None:
        """One optimizer step is done."""
        self._done += 1
        now = time.monotonic()
        if not self.show or now - self._shown_at < self._pause:
            return
        left = (now - self._started) / (self._done - self._begun_with) * (self.total - self._done)
        if self.deadline is not None:
            left = min(left, self.deadline - now)
        line = (
            f"{self.title}: step {self._done:,} of at most {self.total:,} · at most "
            f"{_duration(left)} left · loss {float(loss):.4f}{self._validation}"
        )
        if self._terminal:
            width = shutil.get_terminal_size().columns - 1  # a longer line would not be replaced
            print(f"{_CLEAR}{line[:width]}", end="", file=sys.stderr, flush=True)
        else:
            say(line)
            self._pause = min(2 * self._pause, _LINE_SECONDS)
        self._shown_at = now

    def epoch(self, epoch: int, *, select: str, value: float, best: float) -> None:
        """Validation of an epoch is done."""
        self._validation = f" · epoch {epoch}: validation {select} {value:.4f}, best {best:.4f}"


def _duration(seconds: float) -> str:
    """Seconds for people.

    Example:
        >>> _duration(42.3), _duration(700), _duration(8000)
        ('42 s', '12 min', '2.2 h')
    """
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
