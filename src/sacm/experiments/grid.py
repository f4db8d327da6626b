"""From the points of a grid to groups of jobs that belong together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from sacm.data.fingerprint import fingerprint
from sacm.data.load import is_present
from sacm.experiments.grid_points import Point, Selection
from sacm.experiments.jobs import Job, Status, load_data, status
from sacm.settings import RunSettings
from sacm.tasks import get_task, make_settings
from sacm.types import TaskName


@dataclass(frozen=True)
class JobGroup:
    """The jobs of one point, all of one size: run together or not at all.

    Without its data on this machine a group has no jobs, and `absent` names the data.
    """

    point: Point
    size: str
    jobs: tuple[Job, ...]
    absent: str | None = None

    def statuses(self, folder: Path) -> tuple[Status, ...]:
        """How far each job is."""
        return tuple(status(job, folder) for job in self.jobs)


class Grid:
    """Makes jobs of points; reads every data set once."""

    def __init__(self, selection: Selection, folder: Path) -> None:
        self.selection, self.folder = selection, folder
        self._fingerprints: dict[str, str] = {}

    def groups(self, points: Iterable[Point]) -> list[JobGroup]:
        """One group a point: in the size of which most is done, or begun, or else preferred."""
        return [self._choose(point) for point in points]

    def _choose(self, point: Point) -> JobGroup:
        sizes = self.selection.sizes_of(str(point.keys["backbone"]))
        groups = [self._group(point, size) for size in sizes]
        return max(groups, key=self._progress)  # of equal ones the first: the preferred

    def _progress(self, group: JobGroup) -> tuple[int, int]:
        """How many jobs are done, and how many were begun at all."""
        states = [found.state for found in group.statuses(self.folder)]
        return states.count("done"), len(states) - states.count("missing")

    def _group(self, point: Point, size: str) -> JobGroup:
        task: TaskName = point.settings["task"]
        needed = [str(point.keys["data"]), *([point.target] if point.target else [])]
        for name in needed:
            if not is_present(name):
                return JobGroup(point, size, (), absent=name)
        jobs = [
            self._job(
                make_settings(**{**point.settings_of(row), "size": size}),
                task,
                point.target,
                point.checks.get(row, ()),
            )
            for row in point.strategies
        ]
        return JobGroup(point, size, tuple(jobs))

    def _job(
        self, asked: RunSettings, task: TaskName, target: str | None, checks: tuple[str, ...]
    ) -> Job:
        data = load_data(asked.data, task, asked.split)
        name = f"{asked.data} {asked.split}"
        if name not in self._fingerprints:
            self._fingerprints[name] = fingerprint(data)
        settings = get_task(task).resolve(asked, data)
        run_id = settings.run_id(self._fingerprints[name])
        return Job(settings, run_id, () if target is None else (target,), checks)
