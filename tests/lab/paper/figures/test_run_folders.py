from __future__ import annotations

import pytest

from sacm.errors import SACMError, SACMWarning
from sacm_lab.paper.figures.run_folders import alike, finished_runs, noise_level, title, titles
from tests.experiments.cases import write_run


@pytest.mark.parametrize(
    ("data", "level"),
    [("Synth-12@0.3", 0.3), ("synth12", 0.5), ("Synth-12", 0.5), ("ILI", None), ("a@b.csv", None)],
)
def test_noise_levels_are_read_off_names(data, level):
    assert noise_level(data) == level


def test_finished_runs_are_found_at_any_depth(tmp_path):
    (tmp_path / "a" / "b").mkdir(parents=True)
    done = write_run(tmp_path / "a" / "b", strategy="raw", seed=1, row={"mse": 1.0})
    other = write_run(
        tmp_path / "a",
        strategy="raw",
        seed=1,
        row={},
        task="classification",
        backbone="InceptionTime",
    )
    begun = write_run(tmp_path / "a", strategy="sacm", seed=1, row={"mse": 1.0})
    (begun.folder / "metrics.json").unlink()
    assert [run.folder for run in finished_runs(tmp_path, "forecasting")] == [done.folder]
    assert [run.folder for run in finished_runs(tmp_path, "classification")] == [other.folder]
    with pytest.raises(SACMError, match=r"there is no folder .*nowhere with runs"):
        finished_runs(tmp_path / "nowhere", "forecasting")


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("config.json", '{"task": "cooking"}'),
        ("config.json", "[]"),
        ("metrics.json", "{}"),
        ("metrics.json", "[]"),
        ("metrics.json", '{"test": {"mse": 1.'),
    ],
)
def test_a_damaged_run_is_named_and_left_out(tmp_path, file, text):
    whole, torn = (
        write_run(tmp_path, strategy="raw", seed=seed, row={"mse": 1.0}) for seed in (1, 2)
    )
    (torn.folder / file).write_text(text)
    with pytest.warns(SACMWarning, match=f"{torn.folder.name} is damaged and left out"):
        assert finished_runs(tmp_path, "forecasting") == [whole]


def test_runs_are_alike_but_for_the_fields_named(tmp_path):
    made = [
        write_run(tmp_path, strategy=s, seed=seed, row={"mse": 1.0})
        for s in ("raw", "sacm")
        for seed in (1, 2)
    ]
    assert alike(made, "strategy") == [[made[0], made[2]], [made[1], made[3]]]
    assert alike(made, "strategy", "seed") == [made]
    small = write_run(tmp_path, strategy="raw", seed=1, row={}, size="small")
    assert (title(made[0]), title(small)) == ("PatchTST", "PatchTST (small)")
    assert titles([made[0], small]) == ["PatchTST", "PatchTST (small)"]
    assert titles(made[:2]) == ["PatchTST\nseed 1", "PatchTST\nseed 2"]
    assert titles(made[:2], "seed") == ["PatchTST", "PatchTST"]
    assert titles([]) == []
