"""Run what is left of a plan; whatever happens to one run is written down and stops nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sacm.experiments.engines import Engine, Outcome
from sacm.experiments.jobs import record_job_failure
from sacm.experiments.plan import Plan
from sacm.experiments.run_table import write_run_table


@dataclass(frozen=True)
class Tally:
    """How many runs ended well, and the outcomes of those that did not.

    left: runs that did not fit into the budget; shortest: seconds that the least group of them
    would take.
    """

    done: int
    failed: tuple[Outcome, ...]
    left: int
    shortest: float


def run_plan(
    plan: Plan,
    engine: Engine,
    folder: Path,
    *,
    workers: int,
    budget: float | None = None,
    on_outcome: Callable[[Outcome], object] | None = None,
) -> Tally:
    """Run the jobs that the budget (in seconds) admits, then refresh the table of all runs."""
    done, failed = 0, []
    ended: set[str] = set()
    jobs = plan.admitted(budget, workers=workers)
    for outcome in engine.run(jobs, folder) if plan.todo else ():  # no cluster for nothing
        ended.add(outcome.job.run_id)
        if outcome.reason is None:
            done += 1
        else:
            failed.append(outcome)
            record_job_failure(outcome.job, folder, outcome.reason, killed=outcome.killed)
        if on_outcome is not None:
            on_outcome(outcome)
    write_run_table(folder)
    left = [one for one in plan.todo if any(job.run_id not in ended for job in one.todo)]
    shortest = min((one.lasts(workers) for one in left), default=0.0)
    return Tally(done, tuple(failed), plan.jobs_left - len(ended), shortest)
