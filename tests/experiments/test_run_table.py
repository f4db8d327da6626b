from __future__ import annotations

import shutil
from pathlib import Path

import pandas as pd
import polars
import pytest

from sacm.experiments.jobs import record_job_failure
from sacm.experiments.run_table import table, write_run_table
from sacm.files import read_json, write_json
from tests.experiments.tiny import groups_of, ili, run_all

pytestmark = pytest.mark.usefixtures("stand_in")


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Two finished runs, a failed one, one that was killed, one that is under way."""
    folder = tmp_path / "runs"
    run_all(folder, ili(1))
    failed, killed, begun = groups_of(folder, ili(2, strategies=("raw", "sacm", "fixed(p=0.1)")))[
        0
    ].jobs
    for job in (failed, killed, begun):
        write_json(folder / job.run_id / "config.json", job.settings.model_dump())
    record_job_failure(failed, folder, "the loss is nan.", killed=False)
    record_job_failure(killed, folder, "killed by SIGKILL.", killed=True)
    return folder


def test_a_line_for_every_run(runs: Path):
    found = pd.read_parquet(write_run_table(runs))
    assert sorted(found["state"]) == ["begun", "done", "done", "failed", "interrupted"]
    reasons = found.set_index("state")["reason"]
    assert reasons["failed"] == "the loss is nan."
    assert pd.isna(reasons["begun"])
    assert set(found["data"]) == {"ILI"}
    assert sorted(found["seed"]) == [1, 1, 2, 2, 2]


def test_lines_hold_what_the_runs_say(runs: Path):
    found = table(runs).set_index("run")
    for path in runs.glob("*/metrics.json"):
        record, line = read_json(path), found.loc[path.parent.name]
        assert line["mse"] == record["test"]["mse"]
        assert line["mae_raw"] == record["test"]["mae_raw"]
        assert line["epochs"] == record["epochs"] == 2
        assert line["train_seconds"] == record["train_seconds"]
        assert line["best_val_mae"] == record["best_val_mae"]
        assert (line["strategy"], line["stride"]) == (path.parent.name.split("_")[2], 40)


def test_a_result_that_is_called_as_a_setting_keeps_out_of_its_column(runs: Path):
    path = next(runs.glob("*/metrics.json"))
    record = read_json(path)
    write_json(path, {**record, "test": {**record["test"], "precision": 0.25}})  # a detector's
    found = pd.read_parquet(write_run_table(runs)).set_index("run")
    assert set(found["precision"]) == {"32-true"}
    assert found.loc[path.parent.name, "test_precision"] == 0.25


def test_other_libraries_read_the_same(runs: Path):
    path = write_run_table(runs)
    theirs, ours = polars.read_parquet(path), pd.read_parquet(path)
    assert theirs.columns == list(ours.columns)
    assert theirs["mse"].drop_nulls().to_list() == ours["mse"].dropna().to_list()
    done = theirs.filter(polars.col("state") == "done")
    assert done["run"].to_list() == sorted(path.parent.name for path in runs.glob("*/metrics.json"))


def test_two_folders_are_merged_by_copying(tmp_path: Path):
    here, there, both = (tmp_path / name for name in ("here", "there", "both"))
    run_all(here, ili(1))
    run_all(there, ili(1, strategies=("raw",)), ili(2))
    for folder in (here, there):
        write_run_table(folder)
        shutil.copytree(folder, both, dirs_exist_ok=True)
    found = pd.read_parquet(write_run_table(both))
    names = set(table(here)["run"]) | set(table(there)["run"])
    assert sorted(found["run"]) == sorted(names)
    assert len(names) == 4
    shared = set(table(here)["run"]) & set(table(there)["run"])
    assert len(shared) == 1


def test_a_damaged_run_is_a_line_too(runs: Path):
    first, second = sorted(runs.glob("*/metrics.json"))
    first.write_text("{")
    (second.parent / "config.json").write_text('{"task": "forecasting", "of": "another version"}')
    found = pd.read_parquet(write_run_table(runs)).set_index("run")
    assert found.loc[first.parent.name, "state"] == "damaged"
    assert "metrics.json is damaged" in found.loc[first.parent.name, "reason"]
    assert found.loc[second.parent.name, "state"] == "damaged"
    assert len(found) == 5


@pytest.mark.parametrize(("text", "reason"), [("[]", "holds no record"), ("{}", "holds no epochs")])
def test_results_of_another_kind_are_damaged(runs: Path, text: str, reason: str):
    first, second = sorted(runs.glob("*/metrics.json"))
    first.write_text(text)
    (second.parent / "config.json").write_text("[]")
    found = table(runs).set_index("run")
    assert found.loc[first.parent.name, "state"] == "damaged"
    assert reason in found.loc[first.parent.name, "reason"]
    assert "config.json is damaged" in found.loc[second.parent.name, "reason"]


def test_a_copied_folder_does_not_count_twice(runs: Path):
    before = table(runs)
    original = sorted(runs.glob("*/metrics.json"))[0].parent
    for name in (f"{original.name} (copy)", f"Copy of {original.name}"):
        shutil.copytree(original, runs / name)
        (runs / name / "metrics.json").unlink()  # a copy may be of an earlier time
    assert set(table(runs)["run"]) == set(before["run"])
    assert list(table(runs)["state"]).count("done") == 2
    shutil.rmtree(original)
    assert len(table(runs)) == len(before)  # a copy alone is still a run


def test_a_folder_without_runs(tmp_path: Path):
    assert len(pd.read_parquet(write_run_table(tmp_path))) == 0
