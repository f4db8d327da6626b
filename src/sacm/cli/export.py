"""`sacm export`: a finished run as one file for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sacm.cli.options import RunName
from sacm.cli.output import note
from sacm.errors import ArgumentError

_SUFFIX = {"onnx": ".onnx", "torch": ".pt2"}


def export(
    run: RunName,
    to: Annotated[str, typer.Option(help="onnx or torch (torch.export).")] = "onnx",
    out: Annotated[
        Path | None, typer.Option(help="The file. Default: model.onnx or model.pt2 in the run.")
    ] = None,
) -> None:
    """Write the network as one file that takes and gives raw units, and check its answers.

    Scaling, repair and un-scaling are inside. A JSON file beside it describes inputs and outputs
    and holds an example.

    Example: sacm export latest --to onnx --out model.onnx
    """
    from sacm.cli.runs import load_predictor
    from sacm.inference.export import export as write_model

    if to not in _SUFFIX:
        raise ArgumentError(f"--to {to!r}: expected onnx or torch.")
    finished, predictor = load_predictor(run)
    path = out or finished.folder / f"model{_SUFFIX[to]}"
    if path.suffix != _SUFFIX[to]:
        raise ArgumentError(f"{path}: a file for {to} ends in {_SUFFIX[to]}.")
    described = write_model(predictor, path, to)
    note("Its answers have been checked against those of `sacm predict`.")
    note(f"Described in {described}.")
    typer.echo(f"model: {path}")
