"""`sacm robust report`: what finished runs of a protocol say."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sacm.cli.experiments.options import ReportOptions, read_report_options
from sacm.cli.option_groups import takes
from sacm.cli.options import Runs
from sacm.robust.commands.options import ProtocolPart, choose_protocol_part
from sacm.robust.commands.output import deliver_protocol


@takes(choose_protocol_part, into="part")
@takes(read_report_options, into="options")
def report(
    part: ProtocolPart,
    options: ReportOptions,
    results: Annotated[
        Path | None, typer.Option(help="Read findings from this JSON file, not from runs.")
    ] = None,
    runs: Runs = Path("runs"),
) -> None:
    """What the finished runs of a protocol say.

    Example: sacm robust report T --data ETTh1 --format html --out t.html
    """
    from sacm.cli.experiments.words import check_runs
    from sacm.cli.runs import as_user_error
    from sacm.robust.examples import first_raw_run, make_examples
    from sacm.robust.findings import read_robust_findings
    from sacm.robust.gather import find_protocol_groups, gather

    experiment, _, selection = part
    examples = None
    if results is not None:
        with as_user_error():
            found = read_robust_findings(results)
    else:
        check_runs(runs)
        groups = find_protocol_groups(experiment, selection, runs)
        found = gather(experiment, selection, groups, runs)
        raw = first_raw_run(groups, runs) if options.style == "html" else None
        examples = None if raw is None else make_examples(raw)
    deliver_protocol(found, options.style, options.out, examples=examples)
