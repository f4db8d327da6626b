from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from sacm.backbones import names
from sacm.experiments import costs
from sacm.experiments.costs import TYPICAL_EPOCHS, Costs, Estimate, measure_epoch
from sacm.experiments.guess_cost import find_typical, read_table
from sacm.files import read_json, write_csv, write_json
from sacm.settings import RunSettings
from sacm.tasks.forecasting import Forecasting
from sacm.training.run import Run
from sacm.training.trainer import Training
from tests.experiments.tiny import groups_of, ili, run_all

pytestmark = pytest.mark.usefixtures("stand_in")


def settings(folder: Path, **changes: object) -> RunSettings:
    return groups_of(folder, ili(strategies=("raw",), **changes))[0].jobs[0].settings


def estimate(folder: Path, asked: RunSettings, *, threads: int = 1) -> float:
    return Costs(folder, threads=threads).estimate(asked).seconds


def measured(folder: Path) -> dict[str, float]:
    """Seconds an epoch of what had to be measured."""
    path = folder / "costs.json"
    return read_json(path) if path.exists() else {}


def test_measured_steps_are_kept_for_the_next_time(tmp_path: Path):
    asked = settings(tmp_path)
    first = estimate(tmp_path, asked)
    ((key, seconds),) = measured(tmp_path).items()
    assert first == pytest.approx(2 * seconds)  # it will have two epochs
    write_json(tmp_path / "costs.json", {key: 7.0})
    assert estimate(tmp_path, asked) == 14.0
    assert estimate(tmp_path, asked, threads=2) != 14.0  # another machine, so to speak
    assert len(measured(tmp_path)) == 2


def test_without_early_stopping_known_a_typical_number_of_epochs_is_assumed(tmp_path: Path):
    found = estimate(tmp_path, settings(tmp_path, epochs=100))
    (seconds,) = measured(tmp_path).values()
    assert found == pytest.approx(TYPICAL_EPOCHS * seconds)


def test_runs_of_the_same_kind_say_how_long_it_takes(tmp_path: Path):
    asked = settings(tmp_path, seed=99)
    estimate(tmp_path, asked)
    (key,) = measured(tmp_path)
    run_all(tmp_path, ili(1), ili(2, strategies=("raw",)))
    spent = []
    for number, path in enumerate(sorted(tmp_path.glob("*/metrics.json")), 1):
        record, history = read_json(path), Run(path.parent).history
        write_json(path, {**record, "train_seconds": 10.0 * number, "test_seconds": 1.0})
        rows = [{**row, "validation_seconds": 3.0} for row in history]
        write_csv(path.parent / "history.csv", rows)
        spent.append(10.0 * number + 2 * 3.0 + 1.0)
    write_json(tmp_path / "costs.json", {key: 1e6})  # whatever was measured before
    assert estimate(tmp_path, asked) == sorted(spent)[1]
    assert list(measured(tmp_path)) == [key]
    estimate(tmp_path, settings(tmp_path, stride=41))
    estimate(tmp_path, settings(tmp_path, epochs=3))
    assert len(measured(tmp_path)) == 3


def test_a_part_of_the_data_says_nothing_about_all_of_them(tmp_path: Path):
    run_all(tmp_path, ili(strategies=("raw",), train_fraction=0.5))
    (tmp_path / "costs.json").unlink()
    estimate(tmp_path, settings(tmp_path))
    assert measured(tmp_path)


def test_epochs_until_early_stopping_are_learnt_from_other_data(tmp_path: Path):
    run_all(tmp_path, ili(strategies=("raw",), epochs=8, patience=7))
    (path,) = tmp_path.glob("*/metrics.json")
    write_json(path, {**read_json(path), "epochs": 5})
    found = estimate(tmp_path, settings(tmp_path, epochs=100, stride=39))
    (mine,) = [value for key, value in measured(tmp_path).items() if "stride 39" in key]
    assert found == pytest.approx(5 * mine)


def test_measuring_leaves_nothing_behind(tmp_path: Path, monkeypatch):
    asked = settings(tmp_path)
    monkeypatch.chdir(tmp_path)
    before = torch.get_num_threads()
    assert measure_epoch(asked, before + 1) > 0
    assert torch.get_num_threads() == before
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int, int]]:
    """What is measured: training or validation, of how many windows, with how many threads."""
    found: list[tuple[str, int, int]] = []
    step, validate = Training.step, Forecasting.validate

    def watched_step(self: Training, batch: Any) -> torch.Tensor:
        found.append(("training", len(batch.x), torch.get_num_threads()))
        return step(self, batch)

    def watched_validate(self: Forecasting, model: Any, batches: Any, *more: Any) -> float:
        found.extend(("validation", len(b.x), torch.get_num_threads()) for b in batches)
        return validate(self, model, batches, *more)

    monkeypatch.setattr(Training, "step", watched_step)
    monkeypatch.setattr(Forecasting, "validate", watched_validate)
    return found


def test_full_batches_are_measured_with_a_workers_threads(
    tmp_path: Path, seen: list[Any], monkeypatch
):
    monkeypatch.setattr(costs, "_SLOW", 60.0)  # on a busy machine too
    measure_epoch(settings(tmp_path, stride=1), 2)
    whole = [("training", 32, 2), ("validation", 49, 2)]  # there are no more to validate by
    few = [("training", 4, 2), ("validation", 4, 2)]
    assert sorted(set(seen)) == sorted(whole + few)
    assert all(seen.count(one) >= 3 for one in whole)  # one measurement may be an accident


def test_a_slow_step_is_measured_with_few_windows(tmp_path: Path, seen: list[Any], monkeypatch):
    monkeypatch.setattr(costs, "_SLOW", 0.0)
    assert measure_epoch(settings(tmp_path, stride=1), 1) > 0
    assert sorted(set(seen)) == [("training", 4, 1), ("validation", 4, 1)]


def test_a_guess_measures_nothing_and_grows_with_the_work(tmp_path: Path, seen: list[Any]):
    def guess(**changes: object) -> Estimate:
        return Costs(tmp_path, threads=1, measure=False).estimate(settings(tmp_path, **changes))

    found = guess(epochs=100, stride=1)
    assert found.basis == "guess"
    assert 0 < found.seconds < 3600
    large = settings(tmp_path, epochs=100, stride=1).model_copy(update={"size": "paper"})
    assert Costs(tmp_path, threads=1, measure=False).estimate(large).seconds > found.seconds
    assert guess(epochs=100, stride=2).seconds < found.seconds
    assert guess(epochs=1, stride=1).seconds == pytest.approx(found.seconds / TYPICAL_EPOCHS)
    assert not seen
    assert not measured(tmp_path)


def test_known_costs_go_before_guesses(tmp_path: Path):
    asked = settings(tmp_path)
    assert Costs(tmp_path, threads=1).estimate(asked).basis == "measured"
    assert Costs(tmp_path, threads=1, measure=False).estimate(asked).basis == "measured"
    run_all(tmp_path, ili(1, strategies=("raw",)))
    assert Costs(tmp_path, threads=1, measure=False).estimate(asked).basis == "runs"


def test_every_network_has_a_guess():
    for task in ("forecasting", "classification", "anomaly"):
        for backbone in names(task):
            for size in ("small", "paper"):
                found = find_typical(task, backbone, size)
                assert f"{task}|{backbone}|{size}" in read_table()
                assert found.fixed + found.per_channel > 0
    assert find_typical("forecasting", "a plug-in's", "small").steps == 192


def test_what_cannot_be_read_is_no_hindrance(tmp_path: Path):
    run_all(tmp_path, ili(1), ili(2))
    torn, empty, other, lost = sorted(tmp_path.glob("*/metrics.json"))
    torn.write_text("{")
    empty.write_text("[]")
    (other.parent / "config.json").write_text('{"task": "forecasting", "of": "another version"}')
    (lost.parent / "history.csv").unlink()
    (tmp_path / "costs.json").write_text("[]")
    assert estimate(tmp_path, settings(tmp_path, seed=3)) > 0
    assert len(measured(tmp_path)) == 1


def test_a_run_that_cannot_be_measured_is_left_to_fail_by_itself(tmp_path: Path):
    vast = settings(tmp_path, overrides={"width": 2**22})  # 64 TiB a layer
    assert estimate(tmp_path, vast) == 0
    assert not measured(tmp_path)
