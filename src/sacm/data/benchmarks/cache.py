"""Where downloaded data live, and how a file appears there: whole or not at all."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sacm.errors import DataError

INCOMING = ".incoming"


def data_folder() -> Path | None:
    """The folder named by the environment variable SACM_DATA."""
    named = os.environ.get("SACM_DATA")
    if not named:
        return None
    folder = Path(named).expanduser()
    if not is_folder(folder):
        raise DataError(f"SACM_DATA is {named}, which is not a folder: correct it or unset it.")
    return folder


def cache_folder() -> Path:
    """The user's cache: SACM_CACHE, or the usual place of the operating system."""
    named = os.environ.get("SACM_CACHE")
    if named:
        return Path(named).expanduser()
    from platformdirs import user_cache_path

    return user_cache_path("sacm")


def is_folder(path: Path) -> bool:
    """Whether `path` is a folder; one that may not be looked into is an error."""
    try:
        if not path.is_dir():
            return False
        next(path.iterdir(), None)
    except PermissionError as error:
        raise DataError(f"{path} cannot be read: permission denied.") from error
    return True


@contextmanager
def incoming(folder: Path) -> Iterator[Path]:
    """A private working folder inside `folder`; those of dead processes are removed first."""
    place = folder / INCOMING
    try:
        place.mkdir(parents=True, exist_ok=True)
        remove_abandoned(place)
        working = Path(tempfile.mkdtemp(prefix=f"{os.getpid()}-", dir=place))
    except OSError as error:
        reason = error.strerror or "unknown reason"
        raise DataError(f"{folder} cannot be written to ({reason}).") from error
    try:
        yield working
    finally:
        shutil.rmtree(working, ignore_errors=True)


@contextmanager
def writing(path: Path) -> Iterator[Path]:
    """A temporary path that becomes `path` if the block ends well."""
    with incoming(path.parent) as working:
        temporary = working / path.name
        yield temporary
        os.replace(temporary, path)


def remove_abandoned(place: Path) -> None:
    """Remove working folders whose process is no more."""
    for folder in place.iterdir():
        owner = folder.name.partition("-")[0]
        if owner.isdigit() and not is_alive(int(owner)):
            shutil.rmtree(folder, ignore_errors=True)


def is_alive(process: int) -> bool:
    """Whether a process with this number may be running on this machine."""
    if sys.platform == "win32":
        return True  # signal 0 is no mere question there
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
