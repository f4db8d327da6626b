from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import sacm as package
from sacm.training import Run
from tests.cli.conftest import Command
from tests.quality import tables


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "plant.csv"
    tables.wide().to_csv(path, index=False)
    return path


def test_a_file_is_described_in_words_and_tables(sacm: Command, file: Path) -> None:
    outcome = sacm("quality", file)
    assert outcome.code == 0
    assert [line.split()[0] for line in outcome.err.splitlines()] == ["time:", "rows:", "channels"]
    assert outcome.out.rstrip("\n") == str(package.inspect(file))
    assert "plant: " in outcome.out
    assert "are broken" in outcome.out
    assert "stuck" in outcome.out


def test_every_output_is_written(sacm: Command, file: Path) -> None:
    arguments = ("--out", "q.html", "--flags", "flags.csv", "--repaired", "new/clean.csv")
    outcome = sacm("quality", file, *arguments)
    assert outcome.code == 0, outcome.err
    for line in ("report: q.html", "flags: flags.csv", "repaired: new/clean.csv"):
        assert line in outcome.out
    quality = package.inspect(file)
    assert len(pd.read_csv("flags.csv")) == len(quality.events)
    assert Path("q.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    raw, clean = pd.read_csv(file), pd.read_csv("new/clean.csv")
    assert list(clean.columns) == ["date", "load", "heat"]
    assert (clean["date"] == raw["date"]).all()
    good = quality.flags == 0
    channels = ["load", "heat"]
    np.testing.assert_array_equal(clean[channels].to_numpy()[good], raw[channels].to_numpy()[good])
    assert clean.notna().all(axis=None)


def test_json_holds_what_was_found(sacm: Command, file: Path) -> None:
    outcome = sacm("quality", file, "--json", "--out", "q.html")
    assert outcome.code == 0
    found = json.loads(outcome.out)
    quality = package.inspect(file)
    assert found["rows"] == tables.ROWS
    assert found["share"] == pytest.approx(quality.share)
    assert found["shares"] == quality.shares()
    assert found["report"] == "q.html"
    assert [each["kind"] for each in found["events"]] == [each.kind for each in quality.events]
    gap = next(each for each in found["events"] if each["kind"] == "missing")
    assert (gap["first"], gap["last"]) == (61, 66)
    assert gap["first_time"].startswith("2024-01-03T12")


def test_options_reach_the_inspection(sacm: Command, file: Path) -> None:
    found = json.loads(sacm("quality", file, "--json", "--false-events", 30, "--train", 0.5).out)
    expected = package.inspect(file, 0.5, false_events=30)
    assert found["share"] == pytest.approx(expected.share)
    table = tables.wide().rename(columns={"date": "seen"})[["load", "heat", "seen"]]
    table.to_csv("late.csv", index=False)
    assert sacm("quality", "late.csv", "--time-column", "seen").code == 0
    assert sacm("quality", "late.csv", "--time", "seen").code == 0


def test_a_long_table_comes_back_long(sacm: Command) -> None:
    tables.long().to_csv("long.csv", index=False)
    outcome = sacm("quality", "long.csv", "--repaired", "clean.csv", "--flags", "flags.csv")
    assert outcome.code == 0, outcome.err
    clean = pd.read_csv("clean.csv")
    assert list(clean.columns) == ["unique_id", "ds", "y"]
    assert (clean["unique_id"].to_numpy() == tables.long()["unique_id"].to_numpy()).all()
    assert set(pd.read_csv("flags.csv")["series"]) == {"a", "b"}


def test_names_are_printed_as_they_are(sacm: Command) -> None:
    names = {"load": "[red]load[/red] $x_1$", "heat": r"<b>heat</b> \frac"}
    tables.wide().rename(columns=names).to_csv("odd.csv", index=False)
    outcome = sacm("quality", "odd.csv", "--out", "q.html")
    assert outcome.code == 0, outcome.err
    assert all(name in outcome.out for name in names.values())
    page = Path("q.html").read_text(encoding="utf-8")
    assert "[red]load[/red] $x_1$" in page
    assert "<b>heat" not in page


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("nothing.csv",), "no file nothing.csv"),
        (("plant.csv", "--out", "."), "is a folder"),
        (("plant.csv", "--flags", "."), "is a folder"),
        (("plant.csv", "--repaired", "."), "is a folder"),
        (("plant.csv", "--repaired", "plant.csv"), "holds the data"),
        (("plant.csv", "--out", "q.html", "--repaired", "q.html"), "named for two outputs"),
        (("plant.csv", "--out", "plant.csv/q.html"), "cannot be written to"),
        (("plant.csv", "--false-events", "0"), "false_events must be a positive number"),
        (("plant.csv", "--false-events", "much"), "valid number"),
        (("plant.csv", "--repair", "some"), "repair must be fail, all, none"),
        (("plant.csv", "--fail-above", "lots"), "must be a share such as 1%"),
        (("plant.csv", "--rules", "none.yaml"), "none.yaml cannot be read"),
        (("plant.csv", "--keep", "none.csv"), "none.csv cannot be read"),
        (("plant.csv", "--train", "2"), "train = 2.0"),
        (("plant.csv", "--time", "when"), "no column 'when'"),
        (("plant.csv", "--colour", "red"), "No such option"),
        ((), "Missing argument"),
        (("notes.csv",), "no rows of numbers"),
    ],
)
def test_what_cannot_work_is_said_in_one_sentence(
    sacm: Command, file: Path, arguments: tuple[str, ...], sentence: str
) -> None:
    Path("notes.csv").write_text("a,b\nx,y\nz,w\n")
    before = file.read_bytes()
    outcome = sacm("quality", *arguments)
    assert outcome.code == 2
    assert sentence in outcome.err
    *said, error = outcome.err.splitlines()
    assert error.startswith("Error: ")
    assert all(line.startswith(("time: ", "rows: ", "channels ")) for line in said)
    assert outcome.out == ""
    assert file.read_bytes() == before
    assert {path.name for path in Path().iterdir()} <= {"plant.csv", "notes.csv", "cache"}


def test_the_page_loads_nothing(sacm: Command, file: Path) -> None:
    assert sacm("quality", file, "--out", "q.html").code == 0
    page = Path("q.html").read_text(encoding="utf-8")
    assert not re.findall(r"(?:src|href)\s*=\s*[\"'](?!#|data:)", page)
    assert not re.findall(r"url\((?!#|['\"]?data:)|@import|https?://", page)


def test_rules_are_written_read_and_obeyed(sacm: Command, file: Path) -> None:
    outcome = sacm("rules", file, "--out", "rules.yaml")
    assert outcome.code == 0, outcome.err
    assert outcome.out == "rules: rules.yaml\n"
    text = Path("rules.yaml").read_text(encoding="utf-8")
    assert sacm("rules", file).out == text
    strict = {"load": {"range": [-0.5, 0.5]}}
    Path("rules.yaml").write_text("load:\n  range: [-0.5, 0.5]\n", encoding="utf-8")
    found = json.loads(sacm("quality", file, "--rules", "rules.yaml", "--json").out)
    assert found["share"] == pytest.approx(package.inspect(file, rules=strict).share)
    assert "range" in {event["rule"] for event in found["events"]}


def test_kept_events_stay(sacm: Command, file: Path) -> None:
    assert sacm("quality", file, "--flags", "events.csv").code == 0
    events = pd.read_csv("events.csv")
    events["keep"] = np.where(events["kind"] == "stuck", "yes", "")
    events.to_csv("events.csv", index=False)
    found = json.loads(sacm("quality", file, "--keep", "events.csv", "--json").out)
    assert "stuck" not in {event["kind"] for event in found["events"]}


def test_a_share_of_broken_values_sets_the_exit_code(sacm: Command, file: Path) -> None:
    for limit, code in (("50%", 0), ("0.5", 0), ("1%", 1), ("0", 1)):
        outcome = sacm("quality", file, "--fail-above", limit)
        assert outcome.code == code
        assert ("more than --fail-above" in outcome.err) == bool(code)
    assert "are broken" in outcome.out


_SMALL = ("--size", "small", "--epochs", 1, "--input-len", 24, "--horizon", 6)


def test_rules_and_kept_events_hold_in_every_command_that_reads_data(
    sacm: Command, file: Path
) -> None:
    table = tables.wide()
    table.loc[395:397, "load"] = 8.0
    table.to_csv(file, index=False)
    Path("rules.yaml").write_text("load:\n  range: [-5, 5]\n", encoding="utf-8")
    assert sacm("quality", file, "--flags", "events.csv").code == 0
    events = pd.read_csv("events.csv")
    events["keep"] = np.where(events["kind"] == "stuck", "yes", "")
    events.to_csv("events.csv", index=False)
    files = ("--rules", "rules.yaml", "--keep", "events.csv")
    trained = sacm("train", "forecasting", "--data", file, *_SMALL, *files)
    assert trained.code == 0, trained.err
    assert "% rule" in trained.err
    assert "guard(rules=rules.yaml,keep=events.csv)" in trained.err
    Path("rules.yaml").unlink()  # the run carries them
    own = sacm("predict", "latest")
    assert "Of the last 24 values of 'load' 3 are missing" in own.err
    Path("strict.yaml").write_text("load:\n  range: [-5, 1]\n", encoding="utf-8")
    strict = ("--rules", "strict.yaml", "--keep", "events.csv")
    other = sacm("predict", "latest", *strict, "--max-repaired", 1)
    assert other.code == 0, other.err
    assert other.out != own.out
    again = json.loads(sacm("evaluate", "latest", "--json").out)
    stricter = json.loads(sacm("evaluate", "latest", *strict, "--json").out)
    assert stricter["test"] != again["test"] == Run.load(again["run"]).row
    assert sacm("backtest", "latest", *strict, "--origins", 2).code == 0
    strategies = ("--strategies", "raw,guard", "--seeds", 1)
    compared = sacm("compare", "forecasting", "--data", file, *_SMALL, *strict, *strategies)
    assert compared.code == 0, compared.err
    assert "guard(rules=strict.yaml,keep=events.csv)" in compared.err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--strategy", "raw", "--rules", "r.yaml"), "are for the guard, which raw has not"),
        (("--rules", "a,b.yaml"), "give the file a name without"),
        (("--rules", "none.yaml"), "none.yaml cannot be read"),
        (("--keep", "none.csv"), "none.csv cannot be read"),
    ],
)
def test_rules_that_cannot_be_obeyed_are_refused(
    sacm: Command, file: Path, arguments: tuple[object, ...], sentence: str
) -> None:
    outcome = sacm("train", "forecasting", "--data", file, *_SMALL, *arguments)
    assert outcome.code == 2
    assert sentence in outcome.err
