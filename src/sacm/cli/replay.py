"""`sacm replay`: make a finished run again and see whether it comes out the same."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sacm.cli.options import AsJson

if TYPE_CHECKING:
    from sacm.training.replay import Replay


def replay(
    run: Annotated[
        Path, typer.Argument(metavar="RUN", help="A finished run: its folder, or latest.")
    ],
    into: Annotated[Path, typer.Option(help="Folder for the new run.")] = Path("replays"),
    as_json: AsJson = False,
) -> None:
    """Train a run again from its own record; exit code 1 if its results are not the same.

    Killed, the same command continues.

    Example: sacm replay runs/my_PatchTST_sacm_seed42_0123456789
    """
    from sacm.cli.output import show_json
    from sacm.cli.runs import as_user_error, check_writable, open_run
    from sacm.training import Hardware
    from sacm.training.replay import replay as make_again

    opened = open_run(run)
    check_writable(into)
    with as_user_error():
        data = opened.load_data()
    again = make_again(opened, data, folder=into, hardware=Hardware(show_progress=not as_json))
    if as_json:
        show_json(
            {
                "run": str(again.run.folder),
                "same": again.same,
                "results": again.results,
                "changes": again.changes,
            }
        )
    else:
        show_replay(again)
    if not again.same:
        raise typer.Exit(1)


def show_replay(again: Replay) -> None:
    """Both results side by side, then what was different."""
    from sacm.cli.output import note, show_table

    rows = [(name, then, now) for name, (then, now) in again.results.items()]
    show_table(("result", "then", "now"), rows)
    typer.echo("the same, to the last digit" if again.same else "not the same")
    for name, (then, now) in again.changes.items():
        note(f"Changed: {name} was {then}, is {now}.")
    note(f"run: {again.run.folder}")
