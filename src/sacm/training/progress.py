"""How a training goes: a bar on standard error, and what every epoch leaves behind."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

import torch
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from torch import Tensor

from sacm.errors import SACMError

_REDRAW_SECONDS = 0.1  # between two looks of the bar; redrawing it is not free
_CHECK_EVERY = 50  # steps between looks at the loss where looking makes the device wait


class TrainingProgress:
    """One bar for the epochs of a run; quiet when asked to be, or when nobody watches."""

    def __init__(self, title: str, *, epochs: int, steps: int, show: bool) -> None:
        console = Console(stderr=True)
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[status]}"),
            TimeElapsedColumn(),
            console=console,
            transient=True,
            disable=not show or not console.is_terminal,
        )
        self.steps = steps
        self._task = self._bar.add_task(title, total=epochs * steps, status="")
        self._unshown, self._shown_at = 0, 0.0

    def __enter__(self) -> TrainingProgress:
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not self._bar.disable:  # else some versions of Rich write an empty line
            self._bar.stop()

    def start_at(self, epoch: int) -> None:
        """Continue after this many finished epochs."""
        self._bar.update(self._task, completed=epoch * self.steps)

    def step(self) -> None:
        """One optimizer step is done."""
        if self._bar.disable:
            return
        self._unshown += 1
        now = time.monotonic()
        if now - self._shown_at >= _REDRAW_SECONDS:
            self._bar.advance(self._task, self._unshown)
            self._unshown, self._shown_at = 0, now

    def epoch(self, epoch: int, *, select: str, value: float, best: float) -> None:
        """Validation of an epoch is done."""
        self._unshown = 0
        status = f"epoch {epoch} · validation {select} {value:.4f} · best {best:.4f}"
        self._bar.update(self._task, completed=epoch * self.steps, status=status)


class EpochStatistics:
    """Losses and dropout rates of one epoch, kept on the device until they are asked for."""

    def __init__(self, epoch: int, save_batch: Callable[[int], Path]) -> None:
        """`save_batch` keeps the batch of a step, the first being 1, for a person to look at."""
        self.epoch, self.save_batch = epoch, save_batch
        self.losses: list[Tensor] = []
        self.all_rates: list[Tensor] = []

    def add(self, loss: Tensor, rates: Tensor | None) -> None:
        """Remember a step."""
        self.losses.append(loss)
        if rates is not None:
            self.all_rates.append(rates)
        if loss.device.type == "cpu" or len(self.losses) % _CHECK_EVERY == 0:
            self.check()

    def check(self) -> None:
        """Stop at the first loss that is not a number."""
        if math.isfinite(float(self.losses[-1])):
            return
        step = next(i for i, loss in enumerate(self.losses, 1) if not math.isfinite(float(loss)))
        raise SACMError(
            f"the loss is {float(self.losses[step - 1])} at epoch {self.epoch}, step {step}: lower "
            "the learning rate or look for extreme values in the batch, which the run folder keeps "
            f"as {self.save_batch(step).name}."
        )

    def mean_loss(self) -> float:
        """Mean over the steps."""
        return float(torch.stack(self.losses).mean())

    def rates(self) -> dict[str, float]:
        """Mean, deviation and extremes of the windows' dropout rates; empty without any."""
        if not self.all_rates:
            return {}
        rates = torch.cat(self.all_rates).float()
        return {
            "rate_mean": float(rates.mean()),
            "rate_std": float(rates.std(correction=0)),
            "rate_min": float(rates.min()),
            "rate_max": float(rates.max()),
        }
