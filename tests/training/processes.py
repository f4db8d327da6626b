"""Several processes of one data-parallel run, on this machine."""

from __future__ import annotations

import multiprocessing
import os
import socket
from collections.abc import Callable
from typing import Any


def in_processes(count: int, target: Callable[..., None], *args: Any) -> None:
    """Call `target(rank, *args)` in every process; they find each other by gloo.

    A process that waits for another one for too long fails the test.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    context = multiprocessing.get_context("spawn")
    children = [
        context.Process(target=_child, args=(rank, count, port, target, args), daemon=True)
        for rank in range(count)
    ]
    for child in children:
        child.start()
    for child in children:
        child.join(120)
    stuck = [rank for rank, child in enumerate(children) if child.is_alive()]
    for child in children:
        child.kill()
    assert not stuck, f"ranks {stuck} wait for the others"
    assert [child.exitcode for child in children] == [0] * count


def _child(
    rank: int, count: int, port: int, target: Callable[..., None], args: tuple[Any, ...]
) -> None:
    os.environ |= {
        "LOCAL_RANK": str(rank),
        "NODE_RANK": "0",
        "WORLD_SIZE": str(count),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
    }
    target(rank, *args)
