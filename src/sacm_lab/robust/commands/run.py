"""`sacm robust run`: what is not yet there of a protocol, resumable and within a budget."""

from __future__ import annotations

from pathlib import Path

import typer

from sacm.cli.experiments.options import WorkOptions, read_work_options
from sacm.cli.options import AsJson, Runs, takes
from sacm_lab.robust.commands.options import ProtocolPart, choose_protocol_part


@takes(choose_protocol_part, into="part")
@takes(read_work_options, into="options")
def run(
    part: ProtocolPart, options: WorkOptions, runs: Runs = Path("runs"), as_json: AsJson = False
) -> None:
    """Run what is not yet there of a protocol, the cheapest groups first.

    Stop it at any time; run it again and it goes on.

    Example: sacm robust run T --data ETTh1 --strategies raw,guard,sacm --seeds 1,2,3
    """
    from sacm.cli.output import note
    from sacm.cli.runs import check_writable
    from sacm_lab.robust.commands.output import show_protocol_findings
    from sacm_lab.robust.gather import find_protocol_groups, gather

    experiment, unknown, selection = part
    check_writable(runs)
    if unknown:
        note(f"Note: not registered, so left out: {', '.join(unknown)}.")
    groups = find_protocol_groups(experiment, selection, runs)
    failed = options.carry_out(groups, runs, as_json=as_json, together=False)
    if failed is None:
        return
    show_protocol_findings(gather(experiment, selection, groups, runs), as_json=as_json)
    if failed:
        raise typer.Exit(1)
