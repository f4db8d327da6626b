"""Published results, to lay beside our own."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from sacm.data.load import find
from sacm.errors import ArgumentError
from sacm.metrics.intervals import Record

PAPER_SEEDS = (2022, 2023, 2024, 2025, 2026)

# Everything but data, backbone, lengths and seeds that the paper's seed study kept fixed.
_PAPER_SETTINGS: dict[str, Any] = {
    "size": "paper",
    "select": "mse",
    "batch_size": 32,
    "stride": 1,
    "epochs": 100,
    "patience": 10,
    "learning_rate": 2e-4,
    "weight_decay": 5e-4,
    "train_fraction": 1.0,
    "precision": "32-true",
    "overrides": {},
}


@dataclass(frozen=True)
class PaperRow(Record):
    """Test MSE of raw and sacm over n seeds as the paper prints it (mean, sample deviation)."""

    n: int
    data: str
    input_len: int
    horizon: int
    backbone: str
    raw_mean: float
    raw_std: float
    sacm_mean: float
    sacm_std: float
    gain: float
    wins: int
    ties: int
    losses: int
    p_value: float


def paper_row(data: str, backbone: str, horizon: int) -> PaperRow | None:
    """The row of the paper's seed study for one setting; None where it has none."""
    try:
        name = find(data).name
    except ArgumentError:
        return None  # a file of the user's own
    return _rows().get((name, backbone.lower(), horizon))


def differences(settings: Mapping[str, Any], seeds: tuple[int, ...]) -> tuple[str, ...]:
    """How a comparison departs from the settings of the paper's seed study."""
    found = [
        f"{name.replace('_', ' ')} {settings[name]!r} instead of {value!r}"
        for name, value in _PAPER_SETTINGS.items()
        if settings[name] != value
    ]
    if seeds != PAPER_SEEDS:
        found.append(f"seeds {', '.join(map(str, seeds))} instead of 2022 to 2026")
    return tuple(found)


@cache
def _rows() -> dict[tuple[str, str, int], PaperRow]:
    text = resources.files(__name__).joinpath("paired_seeds.csv").read_text(encoding="utf-8")
    rows = [
        PaperRow(
            n=len(PAPER_SEEDS),
            data=line["dataset"],
            input_len=int(line["input_len"]),
            horizon=int(line["horizon"]),
            backbone=line["backbone"],
            raw_mean=float(line["raw_mse_mean"]),
            raw_std=float(line["raw_mse_std"]),
            sacm_mean=float(line["sacm_mse_mean"]),
            sacm_std=float(line["sacm_mse_std"]),
            gain=float(line["gain_pct"]),
            wins=int(line["wins"]),
            ties=int(line["ties"]),
            losses=int(line["losses"]),
            p_value=float(line["p_value"]),
        )
        for line in csv.DictReader(text.splitlines())
    ]
    return {(row.data, row.backbone.lower(), row.horizon): row for row in rows}
