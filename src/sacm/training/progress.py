"""Progress of long work, on standard error."""

from __future__ import annotations

from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn


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

    def __enter__(self) -> TrainingProgress:
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.stop()

    def start_at(self, epoch: int) -> None:
        """Continue after this many finished epochs."""
        self._bar.update(self._task, completed=epoch * self.steps)

    def step(self) -> None:
        """One optimizer step is done."""
        self._bar.advance(self._task)

    def epoch(self, epoch: int, *, select: str, value: float, best: float) -> None:
        """Validation of an epoch is done."""
        status = f"epoch {epoch} · validation {select} {value:.4f} · best {best:.4f}"
        self._bar.update(self._task, completed=epoch * self.steps, status=status)
