"""A finished run made again from what its folder says, and held against it."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sacm.data.datasets import AnyData
from sacm.data.fingerprint import fingerprint
from sacm.errors import ArgumentError
from sacm.files import read_json, write_json
from sacm.training.hardware import Hardware, thread_count
from sacm.training.run import Run
from sacm.training.trainer import train

REPLAYS = Path("replays")
_MARK = "replay.json"  # tells a replay from a run that somebody needs
_NEEDED = {"fingerprint", "threads", "packages"}  # of a run's environment


@dataclass(frozen=True)
class Replay:
    """What came out then and now, and what was different about the two: `{name: (then, now)}`."""

    run: Run  # the new one
    results: dict[str, tuple[float | None, float | None]]
    changes: dict[str, tuple[Any, Any]]

    @property
    def same(self) -> bool:
        """Whether every result is the same, to the last digit."""
        return all(then == now for then, now in self.results.values())


def replay(
    run: Run, data: AnyData, *, folder: str | Path = REPLAYS, hardware: Hardware | None = None
) -> Replay:
    """Train a run's settings again on its data, into another folder, with the threads it had.

    A replay always trains: what an earlier one left is not compared with, only a killed one is
    continued.

    Args:
        run: A finished run.
        data: The data it was trained on.
        folder: Where the new run goes.
        hardware: Where to train.

    Returns:
        Both results, and what is different about the two environments.

    Raises:
        ArgumentError: The data have changed, or the folder holds the run itself.
    """
    if Path(folder).resolve() == run.folder.resolve().parent:
        raise ArgumentError(f"{folder} holds the run itself: replay it into another folder.")
    path = run.folder / "environment.json"
    record = read_json(path)
    if not record.keys() >= _NEEDED:
        raise ArgumentError(f"{path} is damaged: this run cannot be replayed, train it again.")
    if fingerprint(data) != record["fingerprint"]:
        raise ArgumentError(
            f"{run.settings.data} has changed since the run was trained: it cannot be replayed."
        )
    settings = run.task.resolve(run.settings, data)
    make_room(Run(Path(folder) / settings.run_id(record["fingerprint"])), run)
    with thread_count(record["threads"]):
        again = train(settings, folder=folder, hardware=hardware, data=data)
    return Replay(
        run=again,
        results=_beside(_results(run), _results(again)),
        changes=_changes(record, read_json(again.folder / "environment.json")),
    )


def make_room(again: Run, run: Run) -> None:
    """Remove the finished replay of another time, so that this one trains; keep a killed one.

    Raises:
        ArgumentError: The place is taken by a run that is not a replay.
    """
    mark = again.folder / _MARK
    if again.finished and not mark.exists():
        raise ArgumentError(
            f"{again.folder} is a finished run but not a replay: replay into another folder."
        )
    if again.finished:
        shutil.rmtree(again.folder)
    write_json(mark, {"of": str(run.folder)})


def _results(run: Run) -> dict[str, Any]:
    chosen = f"best_val_{run.settings.select}"
    names = ("epochs", "best_epoch", chosen)
    return {**run.metrics.get("test", {}), **{name: run.metrics[name] for name in names}}


def _changes(then: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """What both records tell, and tell differently; an older one may tell of other packages."""
    old, new = _flat(then), _flat(now)
    return {
        name: (value, new[name])
        for name, value in old.items()
        if name in new and value != new[name]
    }


def _flat(environment: Mapping[str, Any]) -> dict[str, Any]:
    rest = {name: value for name, value in environment.items() if name != "packages"}
    return {**environment["packages"], **rest}


def _beside(then: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    return {name: (then.get(name), now.get(name)) for name in {**then, **now}}
