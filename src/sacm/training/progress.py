"""Progress of long work, on standard error."""

from __future__ import annotations

import time
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

_EVERY = 0.1  # seconds between two looks of the bar; redrawing it is not free


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
        if now - self._shown_at >= _EVERY:
            self._bar.advance(self._task, self._unshown)
            self._unshown, self._shown_at = 0, now

    def epoch(self, epoch: int, *, select: str, value: float, best: float) -> None:
        """Validation of an epoch is done."""
        self._unshown = 0
        status = f"epoch {epoch} · validation {select} {value:.4f} · best {best:.4f}"
        self._bar.update(self._task, completed=epoch * self.steps, status=status)
