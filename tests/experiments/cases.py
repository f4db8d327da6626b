"""Finished run folders with chosen numbers, as training would have left them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sacm.files import write_csv, write_json
from sacm.tasks import make_settings
from sacm.training.run import Run


def write_run(
    folder: Path,
    *,
    strategy: str,
    seed: int,
    row: dict[str, float | None] | None,
    task: str = "forecasting",
    data: str = "waves",
    backbone: str = "PatchTST",
    epochs: int = 2,
    seconds: float = 1.0,
    rates: tuple[float, float] | None = None,
    fingerprint: str = "0123456789abcdef",
    **settings: Any,
) -> Run:
    """A run that tested as `row` says; `rates` are mean and deviation in the last epoch."""
    lengths = {"input_len": 24, "horizon": 24} if task == "forecasting" else {"input_len": 24}
    select = {"forecasting": "mse", "classification": "accuracy", "anomaly": "loss"}[task]
    asked = {"batch_size": 32, "select": select, **lengths, **settings}
    chosen = make_settings(
        task=task, data=data, backbone=backbone, strategy=strategy, seed=seed, **asked
    )
    run = Run(folder / f"{strategy}-{seed}-{len(list(folder.iterdir()))}")
    write_json(run.folder / "config.json", chosen.model_dump(exclude_none=True))
    write_json(run.folder / "environment.json", {"python": "3", "fingerprint": fingerprint})
    last = {} if rates is None else {"rate_mean": rates[0], "rate_std": rates[1]}
    first = {} if rates is None else {"rate_mean": 0.9, "rate_std": 0.9}
    history = [{"epoch": e, "train_loss": 1.0, f"val_{select}": 1.0, **first} for e in (1, 2)]
    write_csv(run.folder / "history.csv", [*history[:-1], {**history[-1], **last}])
    tested = {} if row is None else {"test": row, "report": {}, "evaluated_windows": 7}
    ended = {"epochs": epochs, "best_epoch": 1, "parameters": 10, "train_seconds": seconds}
    write_json(run.folder / "metrics.json", {**tested, **ended})
    return run


def write_pairs(
    folder: Path, metric: str, raw: list[float | None], sacm: list[float | None], **options: Any
) -> list[Run]:
    """Runs of raw and sacm with seeds 1, 2, …, whose rows hold one metric."""
    both = {"raw": raw, "sacm": sacm}
    return [
        write_run(folder, strategy=strategy, seed=seed, row={metric: value}, **options)
        for strategy, values in both.items()
        for seed, value in enumerate(values, 1)
    ]
