"""`sacm corrupt`: the broken file, the truth beside it, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.cli.conftest import Command


@pytest.fixture
def file(tmp_path: Path) -> Path:
    t = np.arange(2000)
    stamps = pd.date_range("2024-01-01", periods=len(t), freq="h")
    table = pd.DataFrame({"date": stamps, "load": np.sin(t / 4) + 5, "heat": np.cos(t / 9)})
    table.to_csv(tmp_path / "plant.csv", index=False)
    return tmp_path / "plant.csv"


def test_the_truth_says_which_values_of_the_copy_are_broken(sacm: Command, file: Path) -> None:
    outcome = sacm("corrupt", file, "--kind", "zero", "--ratio", 0.2, "--seed", 3, "--out", "b.csv")
    assert outcome.code == 0, outcome.err
    assert "truth: b.truth.csv" in outcome.out
    before, after, truth = (pd.read_csv(name) for name in (file, "b.csv", "b.truth.csv"))
    assert list(after.columns) == list(truth.columns) == list(before.columns)
    assert (after["date"] == before["date"]).all()
    for column in ("load", "heat"):
        broken = truth[column] == "zero"
        assert broken.mean() == pytest.approx(0.2, abs=0.05)
        assert (after[column][broken] == 0).all()
        np.testing.assert_allclose(after[column][~broken], before[column][~broken], rtol=1e-12)


def test_chosen_channels_alone_are_broken_and_other_formats_are_written(
    sacm: Command, file: Path
) -> None:
    answer = sacm("corrupt", file, "--channels", "heat", "--out", "b.parquet", "--json")
    assert 0.2 < json.loads(answer.out)["share"] < 0.4
    before = pd.read_csv(file, float_precision="round_trip")
    after = pd.read_parquet("b.parquet")
    assert (after["load"] == before["load"]).all()
    np.save("rows.npy", before[["load", "heat"]].to_numpy())
    assert sacm("corrupt", "rows.npy", "--kind", "all", "--out", "c.npy").code == 0
    assert np.isnan(np.load("c.npy")).any()
    assert set(pd.read_csv("c.truth.csv", keep_default_na=False)["0"]) > {"", "missing", "code"}


def test_every_series_of_a_long_table_is_broken_by_itself(sacm: Command, tmp_path: Path) -> None:
    wave = np.sin(np.arange(600) / 4)
    stamps = pd.date_range("2024-01-01", periods=600, freq="h")
    parts = [pd.DataFrame({"unique_id": n, "ds": stamps, "y": wave}) for n in ("a", "b")]
    pd.concat(parts).to_csv("long.csv", index=False)
    assert (
        sacm("corrupt", "long.csv", "--id", "unique_id", "--kind", "shift", "--out", "b.csv").code
        == 0
    )
    before, after, truth = (pd.read_csv(n) for n in ("long.csv", "b.csv", "b.truth.csv"))
    changed = ~np.isclose(before["y"], after["y"], rtol=1e-9)
    assert (changed == (truth["y"] == "shift")).all()
    by_series = truth.assign(hit=changed).sort_values("ds").groupby("unique_id")["hit"]
    first, second = (group.to_numpy() for _, group in by_series)
    assert first.any()
    assert not np.array_equal(first, second)


def test_the_faults_are_listed(sacm: Command) -> None:
    listed = sacm("corrupt", "--list")
    assert all(name in listed.out for name in ("stuck", "packet_loss", "tsf_seq", "mix"))
    assert {"kind", "what"} == set(json.loads(sacm("corrupt", "--list", "--json").out)[0])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "name a file"),
        (("nothing.csv", "--out", "b.csv"), "no such file"),
        (("plant.csv", "--out", "plant.csv"), "holds the data"),
        (("plant.csv", "--out", "b.xyz"), "must end in"),
        (("plant.csv", "--out", "b.csv", "--kind", "rust"), "no fault 'rust'"),
        (("plant.csv", "--out", "b.csv", "--ratio", "2"), "between 0 and 1"),
        (("plant.csv", "--out", "b.csv", "--channels", "cold"), "no column 'cold'"),
    ],
)
def test_wrong_arguments_get_one_sentence(
    sacm: Command, file: Path, arguments: tuple[str, ...], message: str
) -> None:
    outcome = sacm("corrupt", *arguments)
    assert outcome.code == 2
    assert message in outcome.err
    assert outcome.err.count("\n") == 1
    assert not Path("b.csv").exists()
