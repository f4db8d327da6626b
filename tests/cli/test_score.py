from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import sacm as package
from tests.cli.conftest import Command, Example


def test_ranking_is_that_of_the_scorer(sacm: Command, example: Example) -> None:
    outcome = sacm("score", example.series, "--window", 24, "--json")
    assert outcome.code == 0
    found = json.loads(outcome.out)
    values = pd.read_csv(example.series)[["load", "heat"]].to_numpy()
    scaled = (values - values.mean(axis=0)) / values.std(axis=0)
    expected = package.score_windows(scaled.astype(np.float32), 24, 24)
    windows = found["windows"]
    assert [window["rank"] for window in windows] == list(range(1, 13))
    order = [(window["first_row"] - 1) // 24 for window in windows]
    assert order == np.argsort(-expected, kind="stable").tolist()
    scores = [window["score"] for window in windows]
    np.testing.assert_allclose(scores, np.sort(expected)[::-1], rtol=1e-4)
    assert all(window["last_row"] - window["first_row"] == 23 for window in windows)
    assert windows[0]["from"].startswith("2024-01-")


def test_files_are_written(sacm: Command, example: Example) -> None:
    arguments = ("--window", 24, "--out", "scores.csv")
    outcome = sacm("score", example.series, *arguments)
    assert outcome.code == 0
    assert "12 windows" in outcome.out
    table = pd.read_csv("scores.csv")
    assert len(table) == 12
    assert table["score"].is_monotonic_decreasing


def test_several_series_are_scored_apart(sacm: Command) -> None:
    generator = np.random.default_rng(0)
    parts = [
        pd.DataFrame(
            {
                "unique_id": name,
                "ds": pd.date_range("2024-01-01", periods=rows, freq="D"),
                "y": generator.normal(size=rows),
            }
        )
        for name, rows in (("a", 50), ("b", 70), ("short", 10))
    ]
    pd.concat(parts).to_csv("long.csv", index=False)
    outcome = sacm("score", "long.csv", "--window", 20, "--json")
    assert outcome.code == 0
    windows = json.loads(outcome.out)["windows"]
    assert sorted(window["series"] for window in windows) == ["a"] * 2 + ["b"] * 3
    assert max(window["last_row"] for window in windows) == 60


@pytest.mark.lab
def test_data_by_name(sacm: Command) -> None:
    outcome = sacm("score", "Plant", "--json")
    assert outcome.code == 0, outcome.err
    scores = [window["score"] for window in json.loads(outcome.out)["windows"]]
    data = package.data.load("Plant")
    scaled = package.data.ChannelScaler.fit([data.values]).transform(data.values)
    expected = np.sort(package.score_windows(scaled, 96, 96))[::-1]
    np.testing.assert_allclose(scores, expected, rtol=1e-6)
