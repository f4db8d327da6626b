from __future__ import annotations

import csv
from importlib import resources

import pytest

from sacm.strategies.registry import canonical
from sacm_lab.paper.published.tables import ABLATIONS, Published, read_published

# Printed numbers in each file, counted by what its columns mean.
COUNTS = {
    "synth12": ("synth12_forecasting", 2),
    "real_forecasting": ("real_forecasting", 2),
    "rates": ("dropout_rate_distribution", 2),
    "data_fraction": ("data_fraction_ili", 2),
    "zero_shot": ("zero_shot_ett", 2),
    "classification": ("classification", 2),
    "anomaly": ("anomaly", 2),
    "strategies": ("dropout_strategies", 2),
    "batch_size": ("batch_size_sensitivity", 2),
    "efficiency": ("efficiency", 6),
    "selective": ("selective_learning", 3),
    "denoise": ("hard_denoising_ili_mae", 3),
    "paired_seeds": ("paired_seeds", 2),
}


def lines(file: str) -> list[dict[str, str]]:
    text = resources.files("sacm_lab.paper.published").joinpath(f"{file}.csv").read_text("utf-8")
    return list(csv.DictReader(text.splitlines()))


@pytest.mark.parametrize(("experiment", "file", "each"), [(k, *v) for k, v in COUNTS.items()])
def test_every_printed_number_is_read(experiment, file, each):
    assert len(read_published(experiment)) == each * len(lines(file))


def test_the_sweep_adds_the_rates_that_validation_chose():
    found = lines("fixed_dropout_sweep")
    chosen = [line for line in found if line["selected_by_validation"] == "1"]
    assert len(chosen) == 12
    assert len(read_published("fixed_sweep")) == 2 * (len(found) + len(chosen))
    best = [one for one in read_published("fixed_sweep") if one.strategy == "best_fixed"]
    assert sorted(one.value for one in best if one.metric == "mse") == sorted(
        float(line["mse"]) for line in chosen
    )


def test_the_ablations_average_is_left_out():
    rows = [line for line in lines("component_ablation") if line["sigma"] != "avg"]
    assert len(read_published("ablation")) == 2 * len(rows) == 80
    assert {one.strategy for one in read_published("ablation")} == set(
        map(canonical, ABLATIONS.values())
    )


@pytest.mark.parametrize(
    "experiment", [*COUNTS, "fixed_sweep", "ablation"], ids=lambda name: str(name)
)
def test_no_number_is_printed_twice(experiment):
    places = [
        (tuple(one.keys.items()), one.metric, one.strategy) for one in read_published(experiment)
    ]
    assert len(set(places)) == len(places)
    assert all(one.value > 0 for one in read_published(experiment))


def test_shares_are_read_from_percent():
    values = [one.value for name in ("classification", "anomaly") for one in read_published(name)]
    assert max(values) <= 1
    assert read_published("anomaly")[0] == Published(
        {"data": "SMD", "backbone": "PatchTST"}, "precision_pa", "raw", 0.4474
    )


def test_what_belongs_beside_a_row():
    value = Published({"data": "ILI"}, "mse", "sacm", 1.0)
    assert value.fits({"data": "ILI", "backbone": "PatchTST"}, "mse", "sacm")
    assert not value.fits({"data": "ETTh1", "backbone": "PatchTST"}, "mse", "sacm")
    assert not value.fits({"backbone": "PatchTST"}, "mse", "sacm")
    assert not value.fits({"data": "ILI"}, "mae", "sacm")
    assert not value.fits({"data": "ILI"}, "mse", "raw")


def test_a_picture_prints_no_numbers():
    assert read_published("gamma") == ()
