from __future__ import annotations

import pytest

from sacm.errors import ArgumentError
from sacm.experiments.grid_points import Selection
from sacm.experiments.named.experiment import Experiment, points
from sacm_lab.paper.experiments.catalogue import EXPERIMENTS, find

SWEEP = Experiment(
    name="sweep",
    title="",
    where="",
    task="forecasting",
    datasets=("ILI", "ETTh1"),
    backbones=("PatchTST", "iTransformer"),
    strategies=("raw", "sacm"),
    horizons=(24, 36, 96),
    seeds=(1, 2),
    vary={"batch_size": (8, 16), "train_fraction": (0.5, 1.0)},
    fixed={"select": "mse", "epochs": 7},
    metrics=("mse",),
)


def test_the_grid_is_the_product_of_what_varies():
    found = points(SWEEP, Selection())
    # ILI has horizons 24 and 36, ETTh1 96 of those asked for.
    assert len(found) == 2 * (2 + 1) * 2 * 4
    assert len({tuple(point.keys.items()) for point in found}) == len(found)
    first = found[0]
    place = {"data": "ILI", "backbone": "PatchTST", "horizon": 24, "seed": 1}
    assert first.keys == {**place, "batch_size": 8, "train_fraction": 0.5}
    assert first.settings == {**first.keys, "task": "forecasting", "select": "mse", "epochs": 7}
    assert (first.strategies, first.target) == (("raw", "sacm"), None)


def test_a_selection_in_any_letter_case():
    asked = Selection(datasets=("etth1",), backbones=("ITRANSFORMER",), horizons=(96,), seeds=(9,))
    found = points(SWEEP, asked)
    assert len(found) == 4
    assert {tuple(point.keys.values())[:4] for point in found} == {("ETTh1", "iTransformer", 96, 9)}


def test_settings_of_the_selection_come_before_those_of_the_experiment():
    asked = Selection(settings={"epochs": 1, "batch_size": 99})
    for point in points(SWEEP, asked):
        assert point.settings["epochs"] == 1
        assert point.settings["batch_size"] == point.keys["batch_size"]  # but not what it is about


def test_horizons_are_each_data_sets_own():
    experiment = find("real_forecasting")
    assert experiment.horizons_of("ILI") == (24, 36, 48, 60)
    assert experiment.horizons_of("ECG") == (36, 72, 144, 288)
    assert experiment.horizons_of("Weather") == (96, 192, 336, 720)
    assert find("synth12").horizons_of("Synth-12@0.1") == (96, 192, 336, 720)
    assert find("strategies").horizons_of("ILI") == (48,)
    assert find("classification").horizons_of("HAR") == (None,)


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({"datasets": ("HAR",)}, "sweep has no data set 'HAR': it has ILI, ETTh1."),
        ({"backbones": ("TimesNet",)}, "sweep has no backbone 'TimesNet': it has PatchTST, iTr"),
        ({"horizons": (25,)}, "sweep has no horizon 25: it has 24, 36, 96."),
        ({"horizons": (24, 97)}, "sweep has no horizon 97: it has 24, 36, 96."),
        ({"datasets": ("ILI",), "horizons": (96,)}, "sweep has no horizon 96: it has 24, 36."),
    ],
)
def test_what_is_not_in_the_grid_is_named(asked, sentence):
    with pytest.raises(ArgumentError, match=f"^{sentence}"):
        points(SWEEP, Selection(**asked))


def test_a_task_without_horizons_refuses_them():
    with pytest.raises(ArgumentError, match="anomaly has no horizons"):
        points(find("anomaly"), Selection(horizons=(24,)))


def test_the_size_of_the_papers_grids():
    """Groups and runs as the paper's tables have them."""
    sizes = {
        name: (len(found), len(found) * len(one.strategies))
        for name, one in EXPERIMENTS.items()
        if (found := points(one, Selection()))
    }
    assert sizes == {
        "synth12": (5 * 9 * 4, 360),
        "real_forecasting": (9 * 9 * 4, 648),
        "rates": (2 * 2 * 4, 16),
        "data_fraction": (4 * 5, 40),
        "zero_shot": (4 * 4 * 2, 64),
        "classification": (32 * 6, 384),
        "anomaly": (4 * 7, 56),
        "strategies": (2 * 4, 112),
        "fixed_sweep": (3 * 4, 144),
        "ablation": (5 * 2 * 4, 320),
        "gamma": (5 * 2 * 4, 120),
        "batch_size": (2 * 2 * 5, 40),
        "efficiency": (2, 4),
        "selective": (1, 4),
        "denoise": (3 * 4, 48),
        "paired_seeds": (3 * 4 * 5, 120),
    }
