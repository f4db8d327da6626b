"""What other packages add to the laboratory, and what they cannot change."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import sacm
from sacm.errors import ArgumentError
from sacm.registry import temporary_entries
from sacm.tasks.forecasting import is_benchmark
from sacm_lab.paper import figures
from sacm_lab.paper.catalogue import EXPERIMENTS


@pytest.fixture(autouse=True)
def forget() -> Iterator[None]:
    with temporary_entries():
        yield


def waves() -> sacm.data.ForecastingData:
    return sacm.data.forecasting_data(np.sin(np.arange(400.0) / 5))


def test_a_new_data_set_changes_no_experiment_and_no_preset() -> None:
    before = [each.datasets for each in EXPERIMENTS.values()]
    sizes = {"real_forecasting": 9, "anomaly": 4, "classification": 32}
    assert {name: len(EXPERIMENTS.get(name).datasets) for name in sizes} == sizes
    for task in ("forecasting", "classification", "anomaly"):
        sacm.data.register(f"New {task}", task=task)(waves)  # type: ignore[arg-type]
    assert [each.datasets for each in EXPERIMENTS.values()] == before
    assert not is_benchmark("New forecasting")
    assert is_benchmark("ETTh1")
    assert is_benchmark("Synth-12@0.3")


def test_the_name_of_a_public_data_set_is_taken() -> None:
    with pytest.raises(ArgumentError, match="'ETTh1' is already registered"):
        sacm.data.register("etth1", task="forecasting")(waves)


def test_a_registered_figure_is_found() -> None:
    @figures.register("nothing", description="nothing at all")
    def draw() -> str:
        return "drawn"

    assert (figures.names()[-1], figures.describe("nothing")) == ("nothing", "nothing at all")
    assert figures.draw("nothing") == "drawn"
