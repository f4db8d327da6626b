"""Run what is left of a plan; whatever happens to one run is written down and stops nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sacm.experiments.engines import Engine, Outcome
from sacm.experiments.jobs import record_failure
from sacm.experiments.plan import Plan
from sacm.experiments.store import write_table


@dataclass(frozen=True)
class Tally:
    """How many runs ended well, and the outcomes of those that did not."""

    done: int
    failed: tuple[Outcome, ...]
    left: int


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
    jobs = plan.admitted(budget, workers=workers)
    for outcome in engine.run(jobs, folder) if plan.todo else ():  # no cluster for nothing
        if outcome.reason is None:
            done += 1
        else:
            failed.append(outcome)
            record_failure(outcome.job, folder, outcome.reason, killed=outcome.killed)
        if on_outcome is not None:
            on_outcome(outcome)
    write_table(folder)
    return Tally(done, tuple(failed), plan.jobs_left - done - len(failed))
