"""Things by name, and those that other packages add."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

import sacm
from sacm.data.corrupt import Fault
from sacm.data.load import find, resolve
from sacm.errors import ArgumentError, DataError, SACMWarning
from sacm.metrics import catalogue as metrics
from sacm.metrics.catalogue import (
    compute_metrics,
    mean_over_windows,
)
from sacm.registry import CORRUPTIONS, Registry, temporary_entries


@pytest.fixture(autouse=True)
def forget() -> Iterator[None]:
    with temporary_entries():
        yield


def colours() -> Registry[int]:
    registry: Registry[int] = Registry("colour")
    registry.register("Red", aliases=("crimson",))(1)
    registry.register("Blue")(2)
    return registry


def test_names_are_found_in_any_letter_case_and_by_alias() -> None:
    registry = colours()
    assert registry.get("rED") == registry.get("Crimson") == 1
    assert registry.entry("CRIMSON").name == "Red"
    assert "blue" in registry
    assert "green" not in registry
    assert registry.find("green") is None


def test_names_are_listed_once_and_in_order() -> None:
    registry = colours()
    assert registry.names() == ["Red", "Blue"]
    assert registry.items() == [("Red", 1), ("Blue", 2)]
    assert registry.values() == [1, 2]


def test_an_unknown_name_is_one_sentence_with_the_nearest_and_all_others() -> None:
    with pytest.raises(ArgumentError) as error:
        colours().get("blu")
    assert str(error.value) == "there is no colour 'blu'. Did you mean 'Blue'? Known: Red, Blue."


@pytest.mark.parametrize("name", ["red", "CRIMSON"])
def test_a_taken_name_is_refused_and_nothing_is_registered(name: str) -> None:
    registry = colours()
    with pytest.raises(ArgumentError, match="a colour named 'Red' is already registered"):
        registry.register("green", aliases=(name,))(3)
    assert registry.names() == ["Red", "Blue"]


def test_a_name_is_needed() -> None:
    with pytest.raises(ArgumentError, match="a colour needs a name"):
        colours().register("")(3)


def test_a_reloaded_function_replaces_itself() -> None:
    registry: Registry[object] = Registry("function")

    def make() -> object:
        def reloaded() -> None: ...

        return reloaded

    first, second = make(), make()
    registry.register("one")(first)
    registry.register("one")(second)
    assert registry.get("one") is second


def test_entries_of_a_block_are_forgotten_after_it() -> None:
    registry = colours()
    with temporary_entries():
        registry.register("green")(3)
        assert "green" in registry
    assert registry.names() == ["Red", "Blue"]


def test_a_reference_is_imported_by_the_first_get_and_not_to_list_names() -> None:
    registry: Registry[object] = Registry("module")
    reference = "sacm.metrics.catalogue:METRICS"
    registry.register("metrics")(reference)
    registry.register("absent")("a_module_that_is_not_there:thing")
    assert registry.names() == ["metrics", "absent"]
    assert "absent" in registry
    assert registry.get("metrics") is metrics.METRICS
    with pytest.raises(ModuleNotFoundError):
        registry.get("absent")


def test_a_class_may_register_itself_under_the_name_of_its_reference() -> None:
    registry: Registry[object] = Registry("error")
    registry.register("error")("sacm.errors:DataError")
    registry.register("error")(DataError)
    assert registry.get("error") is DataError


PLUGIN = """
from sacm.registry import Registry
from sacm.metrics import register

@register("luck", task="forecasting", label="luck", higher_is_better=True)
def luck(prediction, target, observed): ...
"""
ASK = """
import warnings
import sacm.metrics.catalogue as catalogue
warnings.showwarning = lambda message, category, *_, **__: print(category.__name__, message)
for _ in range(2):
    print("luck" in catalogue.METRICS.names())
    print(catalogue.metric("LUCK").label)
"""


def with_plugin(folder: Path, source: str) -> subprocess.CompletedProcess[str]:
    """Ask for a plug-in's metric in a process that has a package with this source installed."""
    (folder / "lucky_plugin.py").write_text(source)
    record = folder / "lucky-1.0.dist-info"
    record.mkdir()
    (record / "METADATA").write_text("Metadata-Version: 2.1\nName: lucky\nVersion: 1.0\n")
    (record / "entry_points.txt").write_text("[sacm.plugins]\nlucky = lucky_plugin\n")
    code = f"import sys; sys.path.insert(0, {str(folder)!r})\n{ASK}"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)


def test_an_unknown_name_is_looked_for_in_plugins(tmp_path: Path) -> None:
    done = with_plugin(tmp_path, PLUGIN)
    assert done.stdout.split() == ["True", "luck"] * 2, done.stderr


def test_a_plugin_that_fails_is_one_warning_and_the_rest_works(tmp_path: Path) -> None:
    done = with_plugin(tmp_path, "import nothing_of_that_name\n")
    first, second, *rest = done.stdout.splitlines()
    assert first == (
        "SACMWarning the plug-in lucky_plugin could not be loaded and is left out: "
        "ModuleNotFoundError: No module named 'nothing_of_that_name'."
    )
    assert second == "False"
    assert not rest
    assert "there is no metric 'LUCK'" in done.stderr


def waves() -> sacm.data.ForecastingData:
    """Two sines."""
    time = np.arange(400.0)
    return sacm.data.forecasting_data(np.stack([np.sin(time / 5), np.cos(time / 9)], axis=1))


def test_a_registered_data_set_is_loaded_listed_and_resolved() -> None:
    sacm.data.register("Two Waves", task="forecasting", aliases=("doublewave",))(waves)
    for spelling in ("Two Waves", "two-waves", "DoubleWave"):
        data = sacm.data.load(spelling)
        assert isinstance(data, sacm.data.ForecastingData)
        assert (data.name, data.values.shape) == ("Two Waves", (400, 2))
        assert resolve(spelling, task="forecasting").name == "Two Waves"
    assert "Two Waves" in sacm.data.names("forecasting")
    assert "Two Waves" not in sacm.data.names("anomaly")
    assert find("two waves").facts == ("Two sines.",)
    assert find("two waves").present
    with pytest.raises(ArgumentError, match="for forecasting, not for anomaly"):
        resolve("Two Waves", task="anomaly")


def test_a_loader_must_return_what_its_task_needs() -> None:
    sacm.data.register("Wrong", task="anomaly")(waves)  # type: ignore[type-var]
    with pytest.raises(DataError, match="loader of Wrong must return AnomalyData, got Forecast"):
        sacm.data.load("Wrong")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("synth 12", "cannot be named 'synth 12'"),
        ("waves.csv", "cannot be named"),
        ("a/b", "cannot be named"),
        ("--", "needs a name"),
    ],
)
def test_names_that_data_sets_cannot_have(name: str, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        sacm.data.register(name, task="forecasting")(waves)


def test_a_registered_forecasting_metric_is_the_mean_over_windows_for_any_batch_size() -> None:
    @metrics.register("worst", task="forecasting", label="worst error", higher_is_better=False)
    def worst(prediction: Tensor, target: Tensor, observed: Tensor) -> Tensor:
        return ((prediction - target).abs() * observed).flatten(1).amax(dim=1)

    generator = torch.Generator().manual_seed(0)
    prediction, target = torch.randn(2, 7, 5, 3, generator=generator)
    observed = torch.rand(7, 5, 3, generator=generator) < 0.7
    expected = float(worst(prediction, target, observed).double().mean())
    for size in (1, 3, 7):
        parts = zip(prediction.split(size), target.split(size), observed.split(size), strict=True)
        sums = [compute_metrics("forecasting", *part) for part in parts]
        assert mean_over_windows(sums, 7) == {"worst": pytest.approx(expected, abs=1e-12)}
    assert metrics.order_metrics({"worst", "mae", "f1_pa_random"}) == ["mae", "worst"]
    assert metrics.metric("worst").label == "worst error"


def test_registered_metrics_of_classes_and_of_anomaly_scores() -> None:
    @metrics.register("sure", task="classification", label="sureness", higher_is_better=True)
    def sure(probabilities: Tensor, labels: Tensor) -> Tensor:
        return probabilities.gather(1, labels[:, None]).mean()

    @metrics.register("alarms", task="anomaly", label="alarms", higher_is_better=False)
    def alarms(scores: np.ndarray, labels: np.ndarray, threshold: float, _: object) -> float:
        return float((scores >= threshold).mean())

    probabilities = torch.tensor([[0.5, 0.5], [0.1, 0.9]])
    found = compute_metrics("classification", probabilities, torch.tensor([1, 0]))
    assert found == {"sure": pytest.approx((0.5 + 0.1) / 2)}
    assert compute_metrics("anomaly", np.arange(4), np.zeros(4), 3.0, None)["alarms"] == 0.25


@pytest.mark.parametrize("result", [float("nan"), "none"])
def test_a_metric_that_fails_is_left_out_with_a_warning(result: object) -> None:
    @metrics.register("bad", task="anomaly", label="bad", higher_is_better=False)
    def bad(scores: np.ndarray, labels: np.ndarray, threshold: float, _: object) -> object:
        return result

    with pytest.warns(SACMWarning, match="the metric 'bad' is left out of this run"):
        assert compute_metrics("anomaly", np.arange(4), np.zeros(4), 3.0, None)["bad"] is None


def test_a_forecasting_metric_must_give_one_value_a_window() -> None:
    metrics.register("one", task="forecasting", label="one", higher_is_better=True)(
        lambda prediction, target, observed: prediction.mean()
    )
    with pytest.warns(SACMWarning, match=r"one value a window, \[N\], and returned \[\]"):
        sums = compute_metrics("forecasting", *torch.zeros(3, 2, 3, 1))
    assert mean_over_windows([sums], 2) == {"one": None}


def test_a_registered_corruption_is_applied_and_its_level_checked() -> None:
    def shrink(x: np.ndarray, level: float, seed: int) -> np.ndarray:
        return x * (1 - level)

    CORRUPTIONS.register("shrink")(Fault("values shrink", shrink, largest=1.0))

    assert "shrink" in CORRUPTIONS.names()
    series = torch.arange(3.0)
    assert torch.equal(sacm.data.corrupt(series, "Shrink", 0.5), series / 2)
    with pytest.raises(ArgumentError, match="level of shrink must be in 0 … 1"):
        sacm.data.corrupt(series, "shrink", 2.0)
