"""`sacm demo`: the main job in a minute or two, on data that need no download."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sacm.cli.options import AsJson

BACKBONE, STRATEGIES, SEEDS = "PatchTST", ["raw", "sacm"], [2022, 2023, 2024]
EPOCHS = 30
INTRODUCTION = (
    "Synth-12: trend, tones and bursts under noise that comes and goes (sigma 0.5). A small "
    f"{BACKBONE} learns to forecast the clean signal from noisy windows, with its own dropout "
    "(raw) and with dropout that adapts to each window (sacm); both start from the same weights "
    "and see the same batches."
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
    """Train a small network with and without SACM on a noisy signal, three seeds each.

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
    # Fewer training windows and larger steps than the paper's preset: it ends in good time.
    settings = make_settings(
        task="forecasting",
        data="Synth-12",
        backbone=BACKBONE,
        size="small",
        stride=16,
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
