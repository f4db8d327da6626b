"""`sacm demo`: SACM on the paper's data, and the guard on a simulated plant with broken sensors."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from typer import Option

from sacm.cli import options, output
from sacm.cli.output import note
from sacm.cli.train import run_comparison
from sacm.errors import ArgumentError

SEEDS = (2022, 2023, 2024)
# What each part of the demo shows, its strategies and its settings.
PARTS: dict[str, tuple[str, tuple[str, str], dict[str, Any]]] = {
    "method": (
        "1. The paper's method on the paper's data: ILI, weekly flu statistics of the US CDC. An "
        "iTransformer in the paper's size forecasts 36 weeks, with its own dropout (raw) and with "
        "a dropout rate for each training window by its spectrum (sacm).",
        ("raw", "sacm"),
        {"data": "ILI", "horizon": 36, "size": "paper"},
    ),
    "sensors": (
        "2. Broken sensors. A simulated plant: a quarter of the training values are outliers, "
        "bursts of noise, stuck or zero. A small iTransformer learns from the original rows (raw) "
        "and from repaired rows (guard). Test rows are clean.",
        ("raw", "guard"),
        {"data": "Plant", "size": "small", "stride": 2, "epochs": 20, "learning_rate": 1e-3},
    ),
}


def demo(
    folder: Annotated[Path, Option(help="Where runs and reports go.")] = Path("sacm-demo"),
    only: Annotated[str, Option(help="One part alone: method or sensors.")] = "",
    epochs: Annotated[int | None, Option(help="Epochs, at most; fewer are quicker.", min=1)] = None,
    as_json: options.AsJson = False,
) -> None:
    """Train networks on two data sets, in pairs of three seeds, and compare them.

    Part 1 (method): SACM against plain dropout on ILI, iTransformer in the paper's size, with a
    picture of training windows and their dropout rates. Part 2 (sensors): a guard against
    training on broken rows. About two minutes on two cores; finished runs are kept, so a second
    time takes seconds.

    Example: sacm demo
    """
    import torch

    from sacm.reports.style import colours
    from sacm.tasks import make_settings
    from sacm.training import Hardware
    from sacm_lab.paper.figures.rates import window_rates, windows_with_rates

    if only and only not in PARTS:
        raise ArgumentError(f"--only {only!r}: use {' or '.join(PARTS)}.")
    torch.set_num_threads(1)  # tensors this small gain nothing from a second thread
    shared = {"task": "forecasting", "backbone": "iTransformer"}
    limit = {} if epochs is None else {"epochs": epochs}
    records, runs, hardware = {}, folder / "runs", Hardware()
    for name in [only] if only else PARTS:
        introduction, strategies, described = PARTS[name]
        note(introduction)
        settings, page = make_settings(**{**shared, **described, **limit}), folder / f"{name}.html"
        comparison, data = run_comparison(
            settings, strategies, SEEDS, runs, hardware, page, quiet=as_json
        )
        records[name] = comparison.to_dict()
        if "sacm" in strategies:
            windows, rates = window_rates(comparison.runs["sacm", SEEDS[0]], data)
            figure = windows_with_rates(windows, rates, colours(strategies)["sacm"])
            output.save_figure(figure, folder / "windows.png")
            note(f"picture: {folder / 'windows.png'}")
    if as_json:
        output.show_json(records)
