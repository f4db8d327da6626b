"""What is left to do of a grid, in which order, and how long it will take."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from sacm.experiments.costs import Basis, Costs
from sacm.experiments.engines import threads_for
from sacm.experiments.grid import JobGroup
from sacm.experiments.jobs import Job, Status


@dataclass(frozen=True)
class PlannedGroup:
    """A group with what is left of it; `costs` estimates the seconds of each job that is left.

    bases: what each estimate rests on. Nothing is left of a group in which a run failed, unless
    failed runs are asked for.
    """

    group: JobGroup
    statuses: tuple[Status, ...]
    todo: tuple[Job, ...]
    costs: tuple[float, ...]
    bases: tuple[Basis, ...] = ()

    @property
    def seconds(self) -> float:
        """Estimated time of what is left, one run after the other."""
        return sum(self.costs)

    def lasts(self, workers: int) -> float:
        """Estimated time of what is left, side by side."""
        return self.seconds / min(workers, len(self.todo))


@dataclass(frozen=True)
class Plan:
    """Groups in the order they are run in: the cheapest first."""

    groups: tuple[PlannedGroup, ...]

    @property
    def todo(self) -> list[PlannedGroup]:
        """Groups with something left."""
        return [planned for planned in self.groups if planned.todo]

    @property
    def jobs_left(self) -> int:
        """Runs that are left; one that several groups share counts once."""
        return len({job.run_id for planned in self.groups for job in planned.todo})

    @property
    def seconds_left(self) -> float:
        """Estimated time of all that is left, one run after the other; shared runs count once."""
        costs = {
            job.run_id: cost
            for planned in self.groups
            for job, cost in zip(planned.todo, planned.costs, strict=True)
        }
        return sum(costs.values())

    def admitted(
        self, budget: float | None, *, workers: int, clock: Callable[[], float] = time.monotonic
    ) -> Iterator[Job]:
        """Jobs as long as the budget (in seconds) lasts; a group is begun whole or not at all.

        A group that would take longer than what is left of the budget is passed over.
        """
        started = clock()
        shared = self._shared()
        for planned in self.todo:
            left = None if budget is None else budget - (clock() - started)
            if left is not None and planned.lasts(workers) > left:
                continue
            for job in planned.todo:
                if job.run_id in shared:
                    yield shared.pop(job.run_id)

    def _shared(self) -> dict[str, Job]:
        """Every run that is left, with all targets and checks that any group wants of it."""
        wanted: dict[str, Job] = {}
        for planned in self.todo:
            for job in planned.todo:
                known = wanted.get(job.run_id, job)
                targets = tuple(dict.fromkeys((*known.targets, *job.targets)))
                checks = tuple(dict.fromkeys((*known.checks, *job.checks)))
                wanted[job.run_id] = replace(job, targets=targets, checks=checks)
        return wanted


def make_plan(
    groups: Sequence[JobGroup],
    folder: Path,
    *,
    workers: int = 1,
    retry_failed: bool = False,
    together: bool = True,
    measure: bool = True,
    on_group: Callable[[JobGroup], object] | None = None,
) -> Plan:
    """Look at what is there and estimate the rest; `on_group` hears of each group.

    workers: how many runs there will be at once, each with its share of the cores. together:
    whether a failed run makes the others of its group useless. measure: whether costs that are not
    known are measured, or else guessed.
    """
    costs = Costs(folder, threads=threads_for(workers), measure=measure)
    planned = []
    for group in groups:
        statuses = group.statuses(folder)
        if together and not retry_failed:
            statuses = _given_up(statuses)
        wanted = {"missing", "interrupted"} | ({"failed"} if retry_failed else set())
        pairs = zip(group.jobs, statuses, strict=True)
        todo = tuple(job for job, found in pairs if found.state in wanted)
        estimates = [costs.estimate(job.settings) for job in todo]
        seconds = tuple(estimate.seconds for estimate in estimates)
        bases = tuple(estimate.basis for estimate in estimates)
        planned.append(PlannedGroup(group, statuses, todo, seconds, bases))
        if on_group is not None:
            on_group(group)
    return Plan(tuple(sorted(planned, key=lambda one: one.seconds)))


def _given_up(statuses: tuple[Status, ...]) -> tuple[Status, ...]:
    """With a failed run in the group the others have nothing to be compared with: failed too."""
    if all(found.state != "failed" for found in statuses):
        return statuses
    alone = Status("failed", "another run of its group failed: --retry-failed runs them together.")
    return tuple(found if found.state in ("done", "failed") else alone for found in statuses)
