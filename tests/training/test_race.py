"""A race is the plain run of its winner, and says who won."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from sacm import Predictor
from sacm.strategies.race import decide
from sacm.training import Run
from sacm.training.trainer import Training
from tests.training.cases import make_data, small_run

_STOP = RuntimeError("stopped")


def assert_equal_but_for_the_race(race: Run, plain: Run) -> None:
    """The same weights, history and results, to the last digit."""

    def facts(run: Run) -> dict[str, Any]:
        return {
            key: value
            for key, value in run.metrics.items()
            if "seconds" not in key and key not in ("race", "notes")
        }

    assert facts(race) == facts(plain)
    for name in ("best.safetensors", "last.safetensors"):
        ours, theirs = load_file(race.folder / name), load_file(plain.folder / name)
        assert ours.keys() == theirs.keys()
        assert all(torch.equal(ours[key], theirs[key]) for key in ours)
    columns = [key for key in plain.history[0] if "seconds" not in key]
    for ours, theirs in zip(race.history, plain.history, strict=True):
        assert [ours[key] for key in columns] == [theirs[key] for key in columns]


@pytest.mark.parametrize(
    ("task", "members", "winner"),
    [
        ("forecasting", "raw,fixed(p=0.9)", "raw"),
        ("forecasting", "fixed(p=0.9),sacm", "sacm"),
        ("classification", "fixed(p=0.9),raw", None),
        ("anomaly", "fixed(p=0.1),raw", None),
    ],
)
def test_the_finished_run_is_that_of_the_winner(
    task: str, members: str, winner: str | None, tmp_path: Path
) -> None:
    race = small_run(task, tmp_path, strategy=f"race({members},epochs=2)")
    result = race.metrics["race"]
    assert winner in (None, result["winner"])
    assert_equal_but_for_the_race(race, small_run(task, tmp_path, strategy=result["winner"]))
    assert set(result["scores"]) == set(members.split(","))
    assert result["extra_seconds"] > 0
    assert result["sentence"] in race.metrics["notes"]
    assert not (race.folder / "race").exists()
    assert Predictor.load(race).evaluate(make_data(task)).row == pytest.approx(race.row)


def test_a_stopped_race_ends_like_one_that_was_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    strategy = "race(sacm,fixed(p=0.9),epochs=2)"
    whole = small_run("forecasting", tmp_path / "whole", strategy=strategy)
    original = Training._record
    for stop_at in (2, 3, 4, 5):  # in each member's epochs, and after the race
        calls = 0

        def stop(self: Training, *arguments: Any, stop_at: int = stop_at) -> None:
            nonlocal calls
            calls += 1
            if calls == stop_at:
                raise _STOP
            original(self, *arguments)

        folder = tmp_path / f"stopped-{stop_at}"
        with monkeypatch.context() as patch:
            patch.setattr(Training, "_record", stop)
            with pytest.raises(RuntimeError, match="stopped"):
                small_run("forecasting", folder, strategy=strategy)
        again = small_run("forecasting", folder, strategy=strategy)
        assert_equal_but_for_the_race(again, whole)
        assert again.metrics["race"]["scores"] == whole.metrics["race"]["scores"]


def test_the_mean_from_the_second_epoch_on_decides_and_the_first_wins_a_tie() -> None:
    seconds = {"raw": 3.0, "sacm": 4.0}
    result = decide({"raw": [1.0, 0.5, 0.5], "sacm": [9.0, 0.4, 0.5]}, seconds, select="mae")
    assert (result.winner, result.extra_seconds) == ("sacm", 3.0)
    assert result.margin == pytest.approx(0.1)
    assert result.sentence == (
        "sacm won the race by 10.0%: validation mae, mean of epochs 2 to 3, 0.45 against raw 0.5."
    )
    tie = decide({"raw": [0.2, 0.9], "sacm": [0.3, 0.9]}, seconds, select="accuracy")
    assert tie.winner == "raw"
    close = decide({"raw": [0.5, 0.5], "sacm": [0.5, 0.498]}, seconds, select="mae")
    assert close.winner == "raw"
    assert close.sentence.startswith("raw won the race as none leads it by more than 0.5%:")
    assert decide({"raw": [0.2], "sacm": [0.3]}, seconds, select="accuracy").winner == "sacm"
