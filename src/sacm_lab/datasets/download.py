"""Downloads into the user's cache: verified, whole or not at all, with a bar on standard error."""

from __future__ import annotations

import json
import logging
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sacm.errors import DataError
from sacm.files import write_atomically, write_json

if TYPE_CHECKING:
    from sacm_lab.datasets.public import PublicDataset, RemoteFile

CHECKSUM_FILE = "checksums.json"
DOWNLOADS = "downloads"
INCOMING = ".incoming"
TIMEOUT_SECONDS = 60
CHUNK_BYTES = 1 << 16


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


def fetch(dataset: PublicDataset, *, progress: bool = True) -> Path:
    """Download a data set into the cache and return its compact archive.

    Files that arrived whole before an interruption are not fetched again.
    """
    cache = cache_folder()
    target = cache / dataset.task / f"{dataset.name}.npz"
    if target.is_file():
        return target
    downloads = cache / DOWNLOADS / dataset.name
    for number, file in enumerate(dataset.files, 1):
        if not (downloads / file.path).is_file():
            label = f"{dataset.name} {number}/{len(dataset.files)}" if progress else None
            download(file, downloads / file.path, dataset, label=label)
    try:
        convert(dataset, downloads, target)
    except (DataError, OSError):
        # Another process may have converted it first and removed the downloads.
        if not target.is_file():
            raise
    shutil.rmtree(downloads, ignore_errors=True)
    return target


def download(file: RemoteFile, path: Path, dataset: PublicDataset, *, label: str | None) -> None:
    """Download one file and check it against its known or recorded checksum."""
    import pooch
    import requests

    cache = cache_folder()
    checksum = file.checksum or read_checksums(cache).get(file.url)
    pooch.get_logger().setLevel(logging.ERROR)
    with incoming(cache) as working, bar(label) as progress:
        downloader = pooch.HTTPDownloader(
            progressbar=progress, chunk_size=CHUNK_BYTES, timeout=TIMEOUT_SECONDS
        )
        try:
            arrived = pooch.retrieve(
                file.url, None, fname="file", path=working, downloader=downloader
            )
        except requests.exceptions.RequestException as error:
            raise unreachable(dataset, file, error) from None
        algorithm, _, expected = (checksum or "sha256:").partition(":")
        actual = pooch.file_hash(arrived, alg=algorithm)
        if expected and actual != expected:
            raise DataError(
                f"{file.url} has the {algorithm} checksum {actual[:12]}… instead of "
                f"{expected[:12]}…: the file has changed or was damaged on the way, and was not "
                "kept."
            )
        if checksum is None:
            recorded = read_checksums(cache) | {file.url: f"{algorithm}:{actual}"}
            write_json(cache / CHECKSUM_FILE, dict(sorted(recorded.items())))
        path.parent.mkdir(parents=True, exist_ok=True)
        os.replace(arrived, path)


def is_alive(process: int) -> bool:
    """Tell whether a process with this number may be running on this machine."""
    if sys.platform == "win32":
        return True  # signal 0 is no mere question there
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


@contextmanager
def incoming(folder: Path) -> Iterator[Path]:
    """A temporary folder inside `folder`; folders of processes that ended are removed first."""
    parent = folder / INCOMING
    try:
        parent.mkdir(parents=True, exist_ok=True)
        for abandoned in parent.iterdir():
            owner = abandoned.name.partition("-")[0]
            if owner.isdigit() and not is_alive(int(owner)):
                shutil.rmtree(abandoned, ignore_errors=True)
        working = Path(tempfile.mkdtemp(prefix=f"{os.getpid()}-", dir=parent))
    except OSError as error:
        reason = error.strerror or "unknown reason"
        raise DataError(f"{folder} cannot be written to ({reason}).") from error
    try:
        yield working
    finally:
        shutil.rmtree(working, ignore_errors=True)


@contextmanager
def bar(label: str | None) -> Iterator[Any]:
    """A progress bar called `label`, or False."""
    if label is None:
        yield False
        return
    from tqdm import tqdm

    # The total is set as soon as it is known; a bar without one counts as none.
    with tqdm(desc=label, total=1, unit="B", unit_scale=True, leave=False) as progress:
        yield progress


def unreachable(dataset: PublicDataset, file: RemoteFile, error: Exception) -> DataError:
    """The error for a file that could not be fetched: where it could be put by hand."""
    import requests

    status = getattr(getattr(error, "response", None), "status_code", None)
    if status:
        reason = f"answered with status {status}"
    elif isinstance(error, requests.exceptions.ConnectionError):
        reason = "could not be reached"
    else:
        reason = "broke off half-way"
    more = f" (and {len(dataset.files) - 1} more files)" if len(dataset.files) > 1 else ""
    return DataError(
        f"{dataset.name} is not on this machine and {file.url} {reason}: put {file.path}{more} "
        "into the folder that SACM_DATA names, or try again later."
    )


def convert(dataset: PublicDataset, downloads: Path, target: Path) -> None:
    """Write the compact archive of a data set from its downloaded files."""
    for layout in dataset.layouts:
        path = layout.find(downloads, dataset)
        if path is not None:
            _write_archive(target, layout.read(path, dataset))
            return
    raise DataError(f"The files downloaded for {dataset.name} are not in a known layout.")


def read_checksums(cache: Path) -> dict[str, str]:
    """Checksums recorded on earlier downloads, by address."""
    path = cache / CHECKSUM_FILE
    return dict(json.loads(path.read_text())) if path.is_file() else {}


def _write_archive(path: Path, arrays: dict[str, np.ndarray]) -> None:
    """Write an `.npz` file, whole or not at all."""

    def write(temporary: Path) -> None:
        with temporary.open("wb") as file:
            np.savez_compressed(file, allow_pickle=False, **arrays)

    write_atomically(path, write)
