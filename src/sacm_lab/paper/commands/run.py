"""`sacm paper run`: what is not yet there of an experiment, resumable and within a budget."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import typer

from sacm.cli.experiments.findings import find_groups, tabulate_with_notes
from sacm.cli.experiments.options import WorkOptions, read_work_options
from sacm.cli.experiments.output import show_findings
from sacm.cli.options import AsJson, Runs, takes
from sacm_lab.paper.commands.options import PaperPart, choose_paper_part


@takes(choose_paper_part, into="part")
@takes(read_work_options, into="options")
def run(
    part: PaperPart, options: WorkOptions, runs: Runs = Path("runs"), as_json: AsJson = False
) -> None:
    """Run what is not yet there of an experiment, the cheapest pairs first.

    Stop it at any time; run it again and it goes on.

    Example: sacm paper run real_forecasting --datasets ILI --backbones PatchTST --plan
    """
    from sacm.cli.runs import check_writable

    experiment, selection = part.experiment, part.selection
    selection = replace(selection, sizes=selection.sizes[:1])
    check_writable(runs)
    groups = find_groups(experiment, selection, runs)
    failed = options.carry_out(groups, runs, as_json=as_json)
    if failed is None:
        return
    show_findings(tabulate_with_notes(experiment, selection, groups, runs), as_json=as_json)
    if failed:
        raise typer.Exit(1)
