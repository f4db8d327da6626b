"""`sacm demo`: the main job in a minute or two, on data that need no download."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sacm.cli.options import AsJson

BACKBONE, STRATEGIES, SEEDS = "iTransformer", ["raw", "guard"], [2022, 2023, 2024]
EPOCHS = 20
INTRODUCTION = (
    "A simulated plant with broken sensors: a quarter of the training values are wild points, "
    f"bursts of noise, held values or zeros. A small {BACKBONE} learns from the rows as they came "
    "(raw) and from rows that were repaired first (guard); both start from the same weights, see "
    "the same windows and are tested on the same clean rows."
)


def demo(
    folder: Annotated[Path, typer.Option(help="Where the runs and the report go.")] = Path(
        "sacm-demo"
    ),
    epochs: Annotated[
        int, typer.Option(help="Passes over the training windows, at most; fewer are quicker.")
    ] = EPOCHS,
    as_json: AsJson = False,
) -> None:
    """Train a small network on broken data, as they came and repaired, three seeds each.

    Takes a minute or two on two cores; a second time only seconds, since finished runs are kept.

    Example: sacm demo
    """
    import torch

    from sacm.cli.compare import run_comparison
    from sacm.cli.output import note
    from sacm.tasks import make_settings
    from sacm.training import Hardware

    note(INTRODUCTION)
    # Tensors this small gain nothing from a second thread, and wait long for it on a busy machine.
    torch.set_num_threads(1)
    # Fewer training windows and larger steps than the preset: it ends in good time.
    settings = make_settings(
        task="forecasting",
        data="Plant",
        backbone=BACKBONE,
        size="small",
        stride=2,
        epochs=epochs,
        learning_rate=1e-3,
    )
    run_comparison(
        settings,
        STRATEGIES,
        SEEDS,
        folder / "runs",
        Hardware(show_progress=not as_json),
        out=folder / "report.html",
        as_json=as_json,
        command="sacm demo" if epochs == EPOCHS else f"sacm demo --epochs {epochs}",
    )
