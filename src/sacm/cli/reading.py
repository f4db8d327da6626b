"""What commands say first: how the data were read, and what that means for the run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sacm.data.datasets import AnyData
    from sacm.settings import RunSettings


def show_understood(lines: Iterable[str], *, without: Sequence[str] = ()) -> None:
    """Say how a table was read, on standard error; options that a command lacks are not named."""
    from sacm.cli.output import note

    for line in lines:
        for name in without:
            line = line.replace(f" (--{name})", "")
        note(line)


def show_reading(data: AnyData, settings: RunSettings | None = None) -> None:
    """Say how data were read, and into what they are cut for a run.

    Args:
        data: What was read; data sets of the catalogue have nothing to say.
        settings: What was asked of the run; None if nothing is trained.
    """
    from sacm.cli.output import show_notes
    from sacm.data.datasets import ClassificationData

    if not isinstance(data, ClassificationData) and data.understood:
        lacks = ("frequency",) if data.task == "anomaly" else ()
        show_understood(data.understood, without=lacks)
        if settings is not None:
            show_understood(describe_cut(data, settings))
    show_notes(data.notes)


def describe_cut(data: Any, settings: RunSettings) -> list[str]:
    """The rows of each split, and the length of windows with the reason for it."""
    from sacm.tasks import get_task

    task = get_task(settings.task)
    resolved = task.resolve(settings, data)
    lines = []
    if settings.task == "forecasting":
        parts = ("training", "validation", "test")
        counts = [f"{len(rows):,} {name}" for rows, name in zip(data.splits, parts, strict=True)]
        lines.append(f"split (--split): {', '.join(counts)} rows")
        windows = (
            f"{resolved.input_len} rows in (--input-len), {resolved.horizon} ahead (--horizon)"
        )
        short = short_series(data, resolved.input_len + resolved.horizon)
        if short:
            named = ", ".join(map(repr, short[:5])) + (" …" if len(short) > 5 else "")
            lines.append(f"too short to train on ({len(short)} of the series): {named}")
    else:
        lines.append(f"split (--split): {len(data.train):,} training, {len(data.test):,} test rows")
        windows = f"{resolved.input_len} rows (--input-len)"
    reason = task.explain_lengths(settings, data)
    lines.append(f"windows: {windows}" + (f"; {reason}" if reason else ""))
    return lines


def short_series(data: Any, needed: int) -> list[str]:
    """Series of which no training piece holds a window of `needed` rows; none if there is one."""
    longest: dict[str, int] = {}
    for segment in data.segments:
        rows = min(segment.stop, data.splits.train.stop) - segment.start
        longest[segment.name] = max(longest.get(segment.name, 0), rows)
    return [name for name, rows in longest.items() if rows < needed] if len(longest) > 1 else []
