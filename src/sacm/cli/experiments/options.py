"""Options that the commands of named experiments share: how to run, and how to report."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from sacm.cli.experiments.output import FORMATS, show_plan
from sacm.cli.experiments.words import duration
from sacm.cli.experiments.work import make_plan_with_progress, work
from sacm.errors import ArgumentError

if TYPE_CHECKING:
    from sacm.experiments.engines import Engine
    from sacm.experiments.grid import JobGroup


class WorkOptions(NamedTuple):
    """How the runs of an experiment are made."""

    budget: float | None
    workers: int
    engine: Engine
    plan_only: bool
    measure: bool
    retry_failed: bool

    def carry_out(
        self, groups: Sequence[JobGroup], runs: Path, *, as_json: bool, together: bool = True
    ) -> int | None:
        """Run what is not yet there; how many runs failed, or None if only the plan was shown."""
        plan = make_plan_with_progress(
            groups,
            runs,
            workers=self.workers,
            retry_failed=self.retry_failed,
            together=together,
            measure=self.measure or not self.plan_only,
        )
        if self.plan_only:
            show_plan(plan, workers=self.workers, as_json=as_json)
            return None
        return work(
            plan, self.engine, runs, workers=self.workers, budget=self.budget, quiet=as_json
        )


def read_work_options(
    budget: Annotated[
        str, typer.Option(help="Begin no runs that would not end in time: 2h, 90m …")
    ] = "",
    workers: Annotated[int, typer.Option(help="Runs at once.", min=1)] = 1,
    engine: Annotated[str, typer.Option(help="local or ray.")] = "local",
    plan_only: Annotated[
        bool, typer.Option("--plan", help="Only show what would be run, and for how long.")
    ] = False,
    measure: Annotated[
        bool, typer.Option("--measure", help="With --plan: measure costs that are not known.")
    ] = False,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Also run again what failed by itself.")
    ] = False,
) -> WorkOptions:
    """How to run, checked before anything is run."""
    from sacm.experiments.engines import make_engine

    return WorkOptions(
        budget=duration(budget) if budget else None,
        workers=workers,
        engine=make_engine(engine, workers=workers),
        plan_only=plan_only,
        measure=measure,
        retry_failed=retry_failed,
    )


class ReportOptions(NamedTuple):
    """In which form a report is wanted, and where."""

    style: str
    out: Path | None


def read_report_options(
    style: Annotated[str, typer.Option("--format", help=f"One of {', '.join(FORMATS)}.")] = "table",
    out: Annotated[Path | None, typer.Option(help="Write to this file.")] = None,
) -> ReportOptions:
    """How to report, checked before anything is read."""
    if style not in FORMATS:
        raise ArgumentError(f"--format {style!r}: use {', '.join(FORMATS)}.")
    return ReportOptions(style, out)
