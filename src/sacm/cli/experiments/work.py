"""Plans and their work, with bars."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sacm.cli.experiments.words import format_duration

if TYPE_CHECKING:
    from sacm.experiments.engines import Outcome
    from sacm.experiments.grid import JobGroup
    from sacm.experiments.plan import Plan


def make_plan_with_progress(
    groups: Sequence[JobGroup],
    runs: Path,
    *,
    workers: int,
    retry_failed: bool,
    together: bool = True,
    measure: bool = True,
) -> Plan:
    """What is left, with a bar; costs that are not known are measured, or else guessed."""
    from tqdm import tqdm

    from sacm.experiments.plan import make_plan

    with tqdm(total=len(groups), desc="planning", unit="group", leave=False) as bar:
        return make_plan(
            groups,
            runs,
            workers=workers,
            retry_failed=retry_failed,
            together=together,
            measure=measure,
            on_group=lambda _: bar.update(),
        )


def work(
    plan: Plan, engine: Any, runs: Path, *, workers: int, budget: float | None, quiet: bool
) -> int:
    """Run the plan with a bar; how many runs failed."""
    from tqdm import tqdm

    from sacm.cli.output import note
    from sacm.experiments.run_plan import run_plan

    with tqdm(total=plan.jobs_left, desc="runs", unit="run", disable=quiet) as bar:

        def on_outcome(outcome: Outcome) -> None:
            bar.update()
            if outcome.reason is not None:
                bar.write(f"failed: {outcome.job.run_id}: {outcome.reason}")

        tally = run_plan(plan, engine, runs, workers=workers, budget=budget, on_outcome=on_outcome)
    if tally.left:
        needed = f"the cheapest pair needs about {format_duration(tally.shortest)}"
        note(f"{tally.left} runs did not fit into the budget; {needed}.")
    return len(tally.failed)
