"""Downloads from a server on this machine: whole and verified, or not at all."""

from __future__ import annotations

import gc
import hashlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

import sacm.data
from sacm.data.load import find
from sacm.errors import DataError
from sacm_lab.datasets.download import INCOMING, fetch, incoming
from sacm_lab.datasets.public import PublicDataset, RemoteFile

CHILD = """
import sys
from dataclasses import replace
from sacm.data.load import find
from sacm_lab.datasets.download import fetch
from sacm_lab.datasets.public import RemoteFile
file = RemoteFile(sys.argv[1], "illness/national_illness.csv", sys.argv[2] or None)
fetch(replace(find("ILI"), files=(file,)), progress=False)
"""


class Server:
    """Serves one file; `behaviour` is whole, half (then hangs up), slow (then waits) or absent."""

    def __init__(self, content: bytes) -> None:
        self.content, self.behaviour, self.requests = content, "whole", 0
        self.halfway, self.release = threading.Event(), threading.Event()
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                server.requests += 1
                behaviour = server.behaviour
                if behaviour == "absent":
                    self.send_error(404)
                    return
                self.send_response(200)
                self.send_header("Content-Length", str(len(server.content)))
                self.end_headers()
                middle = len(server.content) // 2
                self.wfile.write(server.content[:middle])
                self.wfile.flush()
                server.halfway.set()
                if behaviour == "slow":
                    server.release.wait(30)
                if behaviour == "whole":
                    self.wfile.write(server.content[middle:])

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}/national_illness.csv"
        self.thread = threading.Thread(target=self.http.serve_forever, args=(0.02,))
        self.thread.start()

    def close(self) -> None:
        self.release.set()
        self.http.shutdown()
        self.http.server_close()
        self.thread.join()


def table(rows: int) -> bytes:
    random = np.random.default_rng(0).standard_normal((rows, 7))
    start = np.datetime64("2002-01-01T00:00")
    lines = ["date," + ",".join("abcdefg")]
    lines += [
        f"{start + 60 * i},{','.join(f'{v:.6f}' for v in row)}" for i, row in enumerate(random)
    ]
    return "\n".join(lines).encode()


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server(table(966))
    yield made
    made.close()


def entry(server: Server, *, checked: bool = True) -> PublicDataset:
    checksum = "sha256:" + hashlib.sha256(server.content).hexdigest() if checked else None
    file = RemoteFile(server.url, "illness/national_illness.csv", checksum)
    return replace(find("ILI"), files=(file,))


def leftovers(cache: Path) -> list[Path]:
    return sorted((cache / INCOMING).rglob("*")) if (cache / INCOMING).exists() else []


def visible(cache: Path) -> set[str]:
    """Files in the cache that a later call would look at."""
    return {
        str(path.relative_to(cache))
        for path in cache.rglob("*")
        if path.is_file() and INCOMING not in path.parts
    }


def test_fetched_once_then_found_in_the_cache(server, own_cache):
    path = fetch(entry(server), progress=False)
    assert path == own_cache / "forecasting" / "ILI.npz"
    assert visible(own_cache) == {"forecasting/ILI.npz"}
    assert leftovers(own_cache) == []
    assert fetch(entry(server), progress=False) == path
    assert server.requests == 1
    assert sacm.data.load("ILI").values.shape == (966, 7)


def test_progress_is_on_standard_error(server, capfd):
    fetch(entry(server), progress=True)
    printed = capfd.readouterr()
    assert printed.out == ""
    assert "ILI 1/1" in printed.err


def test_an_unknown_checksum_is_recorded_and_holds_from_then_on(server, own_cache):
    unchecked = entry(server, checked=False)
    archive = fetch(unchecked, progress=False)
    noted = json.loads((own_cache / "checksums.json").read_text())
    assert noted == {server.url: "sha256:" + hashlib.sha256(server.content).hexdigest()}
    archive.unlink()
    server.content += b"\n"
    with pytest.raises(DataError, match=r"sha256 checksum .* instead of"):
        fetch(unchecked, progress=False)


@pytest.mark.parametrize("algorithm", ["sha256", "sha1", "md5"])
def test_checksum_mismatch(server, own_cache, algorithm):
    wrong = RemoteFile(server.url, "illness/national_illness.csv", f"{algorithm}:{'0' * 40}")
    with pytest.raises(DataError, match=f"{algorithm} checksum .* was not kept"):
        fetch(replace(entry(server), files=(wrong,)), progress=False)
    assert visible(own_cache) == set()
    assert leftovers(own_cache) == []


# pooch leaves a connection that broke to the garbage collector.
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize(
    ("behaviour", "reason"),
    [("half", "broke off half-way"), ("absent", "answered with status 404")],
)
def test_server_trouble(server, own_cache, behaviour, reason):
    server.behaviour = behaviour
    with pytest.raises(DataError, match=reason) as caught:
        fetch(entry(server), progress=False)
    assert "put illness/national_illness.csv into the folder that SACM_DATA names" in str(
        caught.value
    )
    assert visible(own_cache) == set()
    server.behaviour = "whole"
    assert fetch(entry(server), progress=False).is_file()
    del caught
    gc.collect()


def test_offline(server):
    offline = entry(server)
    server.http.server_close()
    with pytest.raises(
        DataError, match=r"ILI is not on this machine and http.* could not be reached"
    ):
        fetch(offline, progress=False)


def test_not_to_download_can_be_asked_for(own_cache):
    with pytest.raises(DataError, match=r"ETTh1 is not in .*: it should hold"):
        sacm.data.load("ETTh1", download=False)


def child(server: Server) -> subprocess.Popen[bytes]:
    checksum = entry(server).files[0].checksum
    return subprocess.Popen([sys.executable, "-c", CHILD, server.url, checksum])


def kill(process: subprocess.Popen[bytes]) -> None:
    os.kill(process.pid, signal.SIGKILL)
    process.wait()


@pytest.mark.slow
def test_killed_in_the_middle_of_a_download(server, own_cache):
    server.behaviour = "slow"
    process = child(server)
    assert server.halfway.wait(60)
    deadline = time.monotonic() + 60
    while not any(path.is_file() for path in leftovers(own_cache)):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    kill(process)
    assert visible(own_cache) == set()
    server.behaviour = "whole"
    assert fetch(entry(server), progress=False).is_file()
    assert leftovers(own_cache) == []


def test_working_folders_of_living_processes_stay(tmp_path: Path):
    with incoming(tmp_path) as mine, incoming(tmp_path) as other:
        assert mine.is_dir()
        assert other.is_dir()
    assert list((tmp_path / INCOMING).iterdir()) == []


def test_a_cache_that_cannot_be_written(server, tmp_path: Path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SACM_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(DataError, match="cannot be written to"):
        fetch(entry(server), progress=False)
