"""Downloads: verified, atomic, with a progress bar on standard error."""

from __future__ import annotations

import json
import logging
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sacm.data.benchmarks.cache import cache_folder, incoming, writing
from sacm.data.benchmarks.catalogue import DatasetEntry, RemoteFile
from sacm.data.benchmarks.sources import LAYOUTS
from sacm.data.benchmarks.sources.archive import write_archive
from sacm.errors import DataError

CHECKSUM_FILE = "checksums.json"
DOWNLOADS = "downloads"
TIMEOUT_SECONDS = 60
CHUNK_BYTES = 1 << 16


def fetch(entry: DatasetEntry, *, progress: bool = True) -> Path:
    """Download a data set into the cache and return its compact archive.

    Files that arrived whole before an interruption are not fetched again.
    """
    cache = cache_folder()
    target = cache / entry.task / f"{entry.name}.npz"
    if target.is_file():
        return target
    downloads = cache / DOWNLOADS / entry.name
    for number, file in enumerate(entry.files, 1):
        if not (downloads / file.path).is_file():
            label = f"{entry.name} {number}/{len(entry.files)}" if progress else None
            download(file, downloads / file.path, entry, label=label)
    try:
        convert(entry, downloads, target)
    except (DataError, OSError):
        # Another process may have finished first and tidied up.
        if not target.is_file():
            raise
    shutil.rmtree(downloads, ignore_errors=True)
    return target


def download(file: RemoteFile, path: Path, entry: DatasetEntry, *, label: str | None) -> None:
    """One file, checked against its known or recorded checksum."""
    import pooch
    import requests

    cache = cache_folder()
    known = file.checksum or read_checksums(cache).get(file.url)
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
            raise unreachable(entry, file, error) from None
        algorithm, _, expected = (known or "sha256:").partition(":")
        found = pooch.file_hash(arrived, alg=algorithm)
        if expected and found != expected:
            raise DataError(
                f"{file.url} has the {algorithm} checksum {found[:12]}… instead of "
                f"{expected[:12]}…: the file has changed or was damaged on the way, and was not "
                "kept."
            )
        if known is None:
            save_checksum(cache, file.url, f"{algorithm}:{found}")
        path.parent.mkdir(parents=True, exist_ok=True)
        os.replace(arrived, path)


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


def unreachable(entry: DatasetEntry, file: RemoteFile, error: Exception) -> DataError:
    """The error for a file that could not be fetched: where it could be put by hand."""
    import requests

    status = getattr(getattr(error, "response", None), "status_code", None)
    if status:
        reason = f"answered with status {status}"
    elif isinstance(error, requests.exceptions.ConnectionError):
        reason = "could not be reached"
    else:
        reason = "broke off half-way"
    more = f" (and {len(entry.files) - 1} more files)" if len(entry.files) > 1 else ""
    return DataError(
        f"{entry.name} is not on this machine and {file.url} {reason}: put {file.path}{more} into "
        f"the folder that SACM_DATA names, or try again later."
    )


def convert(entry: DatasetEntry, downloads: Path, target: Path) -> None:
    """Write the compact archive of a data set from its downloaded files."""
    for layout in LAYOUTS[entry.source]:
        path = layout.find(downloads, entry)
        if path is not None:
            target.parent.mkdir(parents=True, exist_ok=True)
            write_archive(target, layout.read(path, entry))
            return
    raise DataError(f"The files downloaded for {entry.name} are not in a known layout.")


def read_checksums(cache: Path) -> dict[str, str]:
    """Checksums noted on earlier downloads, by address."""
    path = cache / CHECKSUM_FILE
    if not path.is_file():
        return {}
    found: dict[str, str] = json.loads(path.read_text())
    return found


def save_checksum(cache: Path, url: str, checksum: str) -> None:
    """Note the checksum of a first download."""
    noted = read_checksums(cache) | {url: checksum}
    with writing(cache / CHECKSUM_FILE) as temporary:
        temporary.write_text(json.dumps(noted, indent=1, sort_keys=True))
