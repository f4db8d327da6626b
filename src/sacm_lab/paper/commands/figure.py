"""`sacm paper figure`: a figure of the paper, or all of them."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Annotated

import typer

from sacm.cli.options import Runs
from sacm.errors import ArgumentError, SACMError, SACMWarning


def figure(
    name: Annotated[str, typer.Argument(metavar="NAME", help="See `sacm paper list`; or all.")],
    out: Annotated[Path, typer.Option(help="A PNG file, or a folder for all.")] = Path("figures"),
    runs: Runs = Path("runs"),
) -> None:
    """Draw a figure of the paper from data, or from finished runs.

    Example: sacm paper figure detrending --out detrending.png
    """
    from sacm.cli.output import note
    from sacm.cli.runs import as_user_error, check_writable
    from sacm_lab.paper import figures

    with warnings.catch_warnings():
        # Of damaged runs, each once, however many figures leave it out.
        warnings.simplefilter("default", SACMWarning)
        warnings.showwarning = lambda message, *_, **__: note(f"Note: {message}")
        if name == "all":
            check_writable(out)
            if not draw_all(out, runs):
                raise typer.Exit(1)
            return
        path = out if out.suffix else out / f"{name}.png"
        if path.suffix.lower() != ".png":
            raise ArgumentError(f"--out {out}: figures are written to .png files.")
        check_writable(path.parent)
        with as_user_error():
            figures.save(name, path, runs=runs)
        typer.echo(f"figure: {path}")


def draw_all(out: Path, runs: Path) -> int:
    """Draw every figure that can be drawn; how many those are."""
    from sacm.cli.output import note
    from sacm_lab.paper import figures

    drawn = 0
    for name in figures.names():
        path = out / f"{name}.png"
        try:
            figures.save(name, path, runs=runs)
        except SACMError as error:
            note(f"{name}: {error}")
        else:
            typer.echo(f"figure: {path}")
            drawn += 1
    return drawn
