"""Runs, folders and files that the user names."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sacm.errors import ArgumentError, SACMError

if TYPE_CHECKING:
    from sacm.training import Run


@contextmanager
def as_user_error() -> Iterator[None]:
    """Re-raise an SACMError as an ArgumentError, so that the command exits with 2, not 1."""
    try:
        yield
    except ArgumentError:
        raise
    except SACMError as error:
        raise ArgumentError(str(error)) from None


LATEST, RUNS = "latest", Path("runs")


def find_run(name: Path) -> Path:
    """The folder that a user means: a folder, `latest`, or the beginning of a run's name.

    `latest` is the newest finished run in `runs`, `other/latest` that in another folder.

    Raises:
        ArgumentError: There is no run, or the name begins several.
    """
    if (name / "config.json").exists():
        return name
    folder = RUNS if len(name.parts) < 2 else name.parent
    if name.name == LATEST:
        found = sorted(folder.glob("*/metrics.json"), key=lambda path: path.stat().st_mtime_ns)
        if not found:
            raise ArgumentError(f"there is no finished run in {folder}: train one first.")
        return found[-1].parent
    if name.exists() or not folder.is_dir() or not name.name:
        return name
    begun = [each.parent for each in folder.glob("*/config.json")]
    begun = sorted(each for each in begun if each.name.startswith(name.name))
    if len(begun) > 1:
        names = ", ".join(each.name for each in begun[:5])
        raise ArgumentError(f"{name} could be any of {len(begun)} runs: {names}. Name one.")
    return begun[0] if begun else name


def load_run(folder: Path) -> Run:
    """A finished run: a folder, `latest`, or the beginning of a name."""
    from sacm.training import Run

    with as_user_error():
        run = Run.load(find_run(folder))
        if not run.finished:
            raise ArgumentError(f"{run.folder} is not finished: run the same training again.")
        _ = run.settings, run.scaler, run.metrics, run.shape  # read now, to complain now
    return run


def check_writable(folder: Path) -> None:
    """Refuse a folder for results before any work is done for them."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ArgumentError(f"{folder} cannot be made: {error.strerror}.") from None
    if not os.access(folder, os.W_OK):
        raise ArgumentError(f"{folder} cannot be written to: permission denied.")


def check_output(path: Path | None) -> None:
    """Refuse a file for results that is a folder, before any work is done for it."""
    if path is not None and path.is_dir():
        raise ArgumentError(f"{path} is a folder: name a file in it.")


def is_main_process() -> bool:
    """True in the process that prints; of several that share a run, the first does."""
    return os.environ.get("LOCAL_RANK", "0") == "0"


def write_file(path: Path, write: Callable[[Path], Any]) -> None:
    """Write a file of results, whole or not at all."""
    from sacm.files import write_atomically

    with as_user_error():
        write_atomically(path, write)
