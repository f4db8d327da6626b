from __future__ import annotations

import pytest

from sacm.experiments.statistics import relative_gain
from sacm_lab.paper.published import PAPER_SEEDS, differences, paper_row

CELLS = [
    (data, backbone, horizon)
    for data, horizon in (("ETTh1", 96), ("ILI", 24), ("Exchange Rate", 96))
    for backbone in ("Informer", "PatchTST", "TimeMixer", "TimeFilter")
]


@pytest.mark.parametrize(("data", "backbone", "horizon"), CELLS)
def test_every_row_agrees_with_itself(data, backbone, horizon):
    row = paper_row(data, backbone, horizon)
    assert (row.n, row.wins + row.ties + row.losses) == (5, 5)
    # Printed from unrounded numbers, so the last digit may differ.
    assert relative_gain(row.raw_mean, row.sacm_mean) == pytest.approx(row.gain, abs=0.1)


def test_a_row_by_other_spellings():
    row = paper_row("exchange", "informer", 96)
    assert row == paper_row("Exchange Rate", "Informer", 96)
    assert (row.raw_mean, row.sacm_std, row.p_value) == (4.0671, 0.3771, 0.003)


@pytest.mark.parametrize(
    ("data", "backbone", "horizon"),
    [
        ("ILI", "PatchTST", 36),
        ("ILI", "WPMixer", 24),
        ("Weather", "PatchTST", 96),
        ("my.csv", "PatchTST", 24),
    ],
)
def test_settings_the_paper_has_no_row_for(data, backbone, horizon):
    assert paper_row(data, backbone, horizon) is None


def test_differences_are_named():
    same = {
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
    assert differences(same, PAPER_SEEDS) == ()
    changed = differences({**same, "size": "small", "batch_size": 16}, (2022,))
    assert changed == (
        "size 'small' instead of 'paper'",
        "batch size 16 instead of 32",
        "seeds 2022 instead of 2022 to 2026",
    )
