"""`sacm robust report`: what finished runs of a protocol say."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sacm.cli.experiments.options import ReportOptions, read_report_options
from sacm.cli.options import Runs, takes
from sacm.errors import DataError
from sacm_lab.robust.commands.options import ProtocolPart, choose_protocol_part
from sacm_lab.robust.commands.output import deliver_protocol

if TYPE_CHECKING:
    from sacm_lab.robust.findings import RobustFindings


@takes(choose_protocol_part, into="part")
@takes(read_report_options, into="options")
def report(
    part: ProtocolPart,
    options: ReportOptions,
    results: Annotated[
        Path | None,
        typer.Option(help="Read findings from this JSON file, or all of a folder, not from runs."),
    ] = None,
    runs: Runs = Path("runs"),
) -> None:
    """What the finished runs of a protocol say.

    Example: sacm robust report T --data ETTh1 --format html --out t.html
    """
    from sacm.cli.experiments.words import check_runs
    from sacm.cli.runs import as_user_error
    from sacm_lab.robust.examples import first_raw_run, make_examples
    from sacm_lab.robust.gather import find_protocol_groups, gather
    from sacm_lab.robust.join import read_protocols

    experiment, _, selection = part
    examples = None
    if results is not None:
        with as_user_error():
            found = _choose(read_protocols(results), experiment.name, results)
    else:
        check_runs(runs)
        groups = find_protocol_groups(experiment, selection, runs)
        found = gather(experiment, selection, groups, runs)
        raw = first_raw_run(groups, runs) if options.style == "html" else None
        examples = None if raw is None else make_examples(raw)
    deliver_protocol(found, options.style, options.out, examples=examples)


def _choose(found: list[RobustFindings], name: str, where: Path) -> RobustFindings:
    """The findings of one protocol."""
    for one in found:
        if one.findings.name == name:
            return one
    held = ", ".join(one.findings.name for one in found)
    raise DataError(f"{where} holds findings of {held}, none of {name}.")
