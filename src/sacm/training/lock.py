"""One process at a time trains a run; another that is asked for it waits and uses the result."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from sacm.errors import SACMWarning

LOCK = ".lock"


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Hold a run folder; while another process trains in it, say so and wait.

    The operating system lets go of the lock when its process ends, killed or not, so that none is
    ever left behind. Where a file system has no locks, or the folder cannot be written to, there is
    no waiting: what is written next says what is wrong.
    """
    # Of several processes that share a run the first speaks for all.
    if os.environ.get("LOCAL_RANK", "0") != "0":
        yield
        return
    lock = FileLock(folder / LOCK)
    with suppress(OSError, NotImplementedError):
        folder.mkdir(parents=True, exist_ok=True)
        _acquire(lock, folder)
    try:
        yield
    finally:
        if lock.is_locked:
            with suppress(OSError):  # some systems keep a file that is open
                (folder / LOCK).unlink(missing_ok=True)
            lock.release()
        with suppress(OSError):  # only if nothing was written
            folder.rmdir()


def _acquire(lock: FileLock, folder: Path) -> None:
    try:
        lock.acquire(timeout=0)
    except Timeout:
        warnings.warn(
            f"another process is training {folder}: this one waits for it and uses what it has "
            "done; Ctrl-C stops the waiting only.",
            SACMWarning,
            stacklevel=4,
        )
        lock.acquire(poll_interval=0.5)
