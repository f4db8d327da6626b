"""`sacm paper report`: what finished runs say, beside the paper's numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sacm.cli.experiments.findings import find_groups, read_results, tabulate_with_notes
from sacm.cli.experiments.options import ReportOptions, read_report_options
from sacm.cli.experiments.output import deliver
from sacm.cli.experiments.words import check_runs
from sacm.cli.options import Runs, takes
from sacm.errors import ArgumentError
from sacm_lab.paper.commands.options import PaperPart, choose_paper_part


@takes(choose_paper_part, into="part")
@takes(read_report_options, into="options")
def report(
    part: PaperPart,
    options: ReportOptions,
    brief: Annotated[
        bool,
        typer.Option("--brief", help="Without training curves (html, json) or rows (md, latex)."),
    ] = False,
    results: Annotated[
        Path | None,
        typer.Option(help="Read findings from this JSON file (or folder of them), not from runs."),
    ] = None,
    runs: Runs = Path("runs"),
) -> None:
    """What the finished runs of an experiment say, beside the paper's numbers.

    Example: sacm paper report real_forecasting --datasets ILI --format html --out ili.html
    """
    experiment, selection = part.experiment, part.selection
    if results is not None:
        if part.named:
            raise ArgumentError(
                "--results shows findings as they were written: leave out what narrows them."
            )
        findings = read_results(results, experiment.name)
        if findings.name != experiment.name:
            raise ArgumentError(
                f"{results} holds findings of {findings.name}, not of {experiment.name}."
            )
    else:
        check_runs(runs)
        groups = find_groups(experiment, selection, runs)
        findings = tabulate_with_notes(experiment, selection, groups, runs)
    deliver(findings, options.style, options.out, brief=brief)
