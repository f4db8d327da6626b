"""Killed at any moment, driver or worker, and started again: the same table in the end.

The driver is a fork of this process, and so are its workers but for one test: so many starts of
fresh interpreters would take minutes to import what is loaded here already.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from sacm.experiments.engines import local
from sacm.experiments.grid import JobGroup
from sacm.experiments.grid_points import Point
from sacm.experiments.named.collect import collect
from sacm.experiments.named.tabulate import tabulate
from sacm.experiments.plan import make_plan
from sacm.experiments.run_plan import run_plan
from sacm_lab.paper.experiments.catalogue import find
from tests.experiments.tiny import groups_of, ili, results, run_all

pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures("stand_in"),
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
]
FORK = multiprocessing.get_context("fork")
PLACES = tuple(ili(seed, epochs=25, patience=25) for seed in (1, 2, 3, 4))
ENDLESS = ili(9, strategies=("raw",), epochs=10**6, patience=10**6)
KILLS = int(os.environ.get("SACM_TEST_KILLS", "4"))


def drive(folder: Path, workers: int, places: tuple[Point, ...], fresh: bool) -> None:
    """The driver: run what is left of the grid."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored if tests run in background
    if not fresh:
        local._SPAWN = FORK  # type: ignore[assignment]  # for speed, see above
    # Costs are measured with one thread: a forked process that starts more hangs.
    plan = make_plan(groups_of(folder, *places), folder, workers=os.cpu_count() or 1)
    run_plan(plan, local.LocalEngine(workers), folder, workers=workers)


class Driver:
    def __init__(
        self,
        folder: Path,
        *,
        workers: int = 2,
        places: tuple[Point, ...] = PLACES,
        fresh: bool = False,
    ) -> None:
        self.process = FORK.Process(target=drive, args=(folder, workers, places, fresh))
        self.process.start()

    def workers(self) -> list[psutil.Process]:
        with suppress(psutil.Error):
            children = psutil.Process(self.process.pid).children()
            return [one for one in children if "resource_tracker" not in " ".join(one.cmdline())]
        return []  # one of them has just gone: look again

    def wait_for_epochs(self, folder: Path, more: int) -> None:
        """Until workers are there, and so many epochs have been added."""
        enough = epochs(folder) + more
        deadline = time.monotonic() + 60
        while epochs(folder) < enough or not self.workers():
            assert time.monotonic() < deadline, "it did not happen in time"
            time.sleep(0.01)

    def kill(self, number: int = signal.SIGKILL) -> None:
        os.kill(self.process.pid, number)
        self.process.join()


def epochs(folder: Path) -> int:
    """Epochs that all runs together have behind them."""
    return sum(len(path.read_text().splitlines()) - 1 for path in folder.glob("*/history.csv"))


def finished(folder: Path) -> dict[str, tuple[int, int]]:
    """Which file the result of each finished run is."""
    found = {path.parent.name: path.stat() for path in folder.glob("*/metrics.json")}
    return {name: (stat.st_ino, stat.st_mtime_ns) for name, stat in found.items()}


def gone(processes: list[psutil.Process]) -> bool:
    _, left = psutil.wait_procs(processes, timeout=10)
    return not left


def said(folder: Path) -> dict[str, Any]:
    """The table of the experiment, without what depends on the clock."""
    experiment = find("real_forecasting")
    groups: list[JobGroup] = groups_of(folder, *PLACES)
    record = tabulate(experiment, collect(experiment, groups, folder)).to_dict()
    for group in record["groups"]:
        for run in group["runs"]:
            del run["seconds"]
    return record


def test_kills_change_nothing(tmp_path: Path):
    calm, storm = tmp_path / "calm", tmp_path / "storm"
    run_all(calm, *PLACES)
    chance = random.Random(12)
    driver, whole = Driver(storm), {}
    victims = []
    for _ in range(KILLS):
        driver.wait_for_epochs(storm, chance.randrange(12))
        time.sleep(chance.uniform(0, 0.05))  # in the middle of whatever it does then
        workers = driver.workers()
        if chance.random() < 0.5 and workers:
            chance.choice(workers).kill()
            victims.append("worker")
        else:
            driver.kill()
            driver = Driver(storm)  # at once, while workers of the old one may still be there
            victims.append("driver")
        now = finished(storm)
        assert whole.items() <= now.items()  # nothing lost, nothing run twice
        whole = now
    driver.process.join()
    for _ in range(3):  # what was killed is left for the next time
        Driver(storm).process.join()
    assert whole.items() <= finished(storm).items()
    assert {"driver", "worker"} <= set(victims)
    assert len(victims) == KILLS
    assert len(whole) < 8 == len(finished(storm))  # there was something left to disturb
    assert results(storm) == results(calm)
    assert said(storm) == said(calm)


def test_an_interrupted_driver_leaves_no_process(tmp_path: Path):
    driver = Driver(tmp_path)
    driver.wait_for_epochs(tmp_path, 3)
    workers = driver.workers()
    assert len(workers) == 2
    driver.kill(signal.SIGINT)
    assert driver.process.exitcode == 1
    assert gone(workers)


@pytest.mark.nightly
def test_a_killed_driver_takes_its_workers_along(tmp_path: Path):
    driver = Driver(tmp_path, workers=1, places=(ENDLESS,), fresh=True)
    driver.wait_for_epochs(tmp_path, 3)
    workers = driver.workers()
    assert len(workers) == 1
    driver.kill()
    assert gone(workers)
    before = epochs(tmp_path)
    time.sleep(0.3)
    assert epochs(tmp_path) == before
