from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Command, Example

pytestmark = pytest.mark.slow

SMALL = ("--backbone", "iTransformer", "--size", "small", "--epochs", 1)


def arguments(task: str, data: Path) -> tuple[object, ...]:
    lengths = {"forecasting": ("--input-len", 12, "--horizon", 4), "anomaly": ("--input-len", 12)}
    return ("compare", task, "--data", data, *SMALL, *lengths.get(task, ()))


def test_tables_sentences_and_a_report(sacm: Command, example: Example):
    command = (*arguments("forecasting", example.series), "--seeds", "1,2", "--out", "out/r.html")
    done = sacm(*command, "--strategies", "raw,sacm")
    assert done.code == 0, done.err
    assert "Test results over seeds 1, 2" in done.out
    assert "MSE, raw units" not in done.out  # two channels have two units
    assert "sacm: MSE of " in done.out
    assert "paired t-test" in done.out
    assert "report: out/r.html" in done.out
    assert "[4/4] iTransformer, sacm, seed 2" in done.err
    assert Path("out/r.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_json_is_a_comparison_and_nothing_is_run_twice(sacm: Command, example: Example):
    strategies = "raw,sacm(p_max=0.4,gamma=2)"
    command = (
        *arguments("forecasting", example.series),
        *("--strategies", strategies, "--seeds", "3", "--set", "width=16"),
        *("--train-fraction", 0.8, "--stride", 2, "--lr", 1e-3, "--json"),
    )
    first = sacm(*command, "--out", "r.html")
    assert first.code == 0, first.err
    record = json.loads(first.out)
    assert record["strategies"] == ["raw", "sacm(p_max=0.4,gamma=2.0)"]
    assert record["settings"]["overrides"] == {"width": 16}
    assert [run["seed"] for run in record["runs"]] == [3, 3]
    assert record["report"] == "r.html"
    assert record["headline"][0].endswith("One seed cannot tell a difference from chance.")
    again = sacm(*command)
    assert again.code == 0, again.err
    assert json.loads(again.out) == {**record, "report": None}
    assert len(list(Path("runs").iterdir())) == 2


WRONG = [
    ("--strategies raw", "at least two strategies"),
    ("--strategies raw,sacm(", "the parentheses do not match"),
    ("--strategies raw,scam", "Did you mean 'sacm'"),
    ("--strategies sacm,sacm(p_max=0.5)", "strategy sacm is named twice"),
    ("--strategies raw,fixed(2)", "needs a rate in [0, 1)"),
    ("--seeds one", "expected whole numbers"),
    ("--seeds 1,1", "seed 1 is named twice"),
    ("--seeds ,", "at least one seed"),
    ("--seeds 1,-1", "seed = -1"),
    ("--horizon 5000", "have 210 rows to lie in"),
    ("--train-fraction 2", "train_fraction = 2.0"),
    ("--out {series}/inside/r.html", "cannot be made: Not a directory"),
    ("--out {folder}", "a report is an .html file"),
    ("--out report.pdf", "a report is an .html file"),
    ("--backbone Nothing", "no backbone 'Nothing'"),
]


@pytest.mark.parametrize(("words", "sentence"), WRONG)
def test_wrong_usage_is_one_sentence(sacm: Command, example: Example, words, sentence):
    rest = words.format(series=example.series, folder=example.folder).split()
    done = sacm(*arguments("forecasting", example.series), *rest)
    assert done.code == 2, done.err
    last = done.err.strip().splitlines()[-1]
    assert last.startswith("Error: ")
    assert sentence in last
    assert "Traceback" not in done.err
    assert done.out == ""
    assert not list(Path().glob("runs/*/metrics.json"))
