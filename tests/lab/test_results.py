"""Result files, and rows that are derived from the runs of a grid."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from sacm.errors import DataError
from sacm_lab.results import add_best_fixed, add_race, join_results, read_results, write_results
from sacm_lab.runs import collect_runs
from tests.experiments.cases import write_run
from tests.lab.test_gains import frame, run


def test_a_file_is_the_frame(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    runs.mkdir()
    for seed, value in ((1, 0.1 + 0.2), (2, None)):
        write_run(runs, strategy="raw", seed=seed, row={"mse": value}, contamination="mix(0.3)")
    frame = collect_runs(runs)
    write_results(frame, tmp_path / "a.csv")
    again = read_results([tmp_path / "a.csv"])
    pd.testing.assert_frame_equal(again, frame.fillna(np.nan), check_dtype=False)
    assert again["mse"][0] == 0.1 + 0.2
    write_results(again, tmp_path / "b.csv")
    assert (tmp_path / "a.csv").read_text() == (tmp_path / "b.csv").read_text()
    assert len(read_results([tmp_path])) == 2  # the same runs in two files of a folder


def test_joined_frames_hold_a_run_once(tmp_path: Path) -> None:
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
    kept = write_run(tmp_path / "one", strategy="raw", seed=1, row={"mse": 1.0})
    frame = collect_runs(tmp_path / "one")
    begun = frame.assign(state="begun", mse=None)
    assert join_results(begun, frame)["mse"].tolist() == [1.0]
    with pytest.raises(DataError, match=f"two rows of {kept.folder.name} differ: mse 1.0 and 2.0"):
        join_results(frame, frame.assign(mse=2.0))


def test_the_best_fixed_rate_is_chosen_by_validation() -> None:
    runs = frame(
        *(
            run(f"fixed(p={p})", 1, mse, validation=v)
            for p, mse, v in ((0.1, 3.0, 0.5), (0.2, 9.0, 0.4), (0.3, 1.0, 0.4))
        ),
        run("fixed(p=0.1)", 2, 3.0, validation=0.1),  # not every rate was run with seed 2
        run("raw", 1, 2.0, validation=0.0),
    )
    added = add_best_fixed(runs)
    (best,) = added[added["strategy"] == "best_fixed"].to_dict("records")
    assert (best["seed"], best["mse"], best["chosen"]) == (1, 9.0, "fixed(p=0.2)")
    assert len(add_best_fixed(runs.drop(columns="validation"))) == len(runs)


def test_a_race_takes_the_arm_that_is_ahead_after_four_epochs() -> None:
    rows = [
        run("raw", 1, 4.0, early_validation=0.50, seconds=20.0, seconds_per_epoch=2.0),
        run("sacm", 1, 3.0, early_validation=0.40, seconds=30.0, seconds_per_epoch=3.0),
        run("raw", 2, 4.0, early_validation=0.50),
        run("sacm", 2, 3.0, early_validation=0.60),
        run("raw", 3, 4.0, early_validation=0.50),
        run("sacm", 3, 3.0, early_validation=None),
    ]
    races = add_race(frame(*rows))
    races = races[races["strategy"] == "race(raw,sacm)"].set_index("seed")
    assert races["chosen"].to_dict() == {1: "sacm", 2: "raw"}
    assert races["mse"].to_dict() == {1: 3.0, 2: 4.0}
    assert races.loc[1, "seconds"] == 30.0 + 4 * 2.0
    assert races.loc[1, "cost"] == pytest.approx(38 / 30)


def test_a_race_by_accuracy_takes_the_higher() -> None:
    rows = [
        run("raw", 1, 4.0, early_validation=0.9, select="accuracy"),
        run("sacm", 1, 3.0, early_validation=0.8, select="accuracy"),
    ]
    assert add_race(frame(*rows))["chosen"].dropna().tolist() == ["raw"]
