"""`sacm paper` on made-up benchmarks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

from sacm.errors import ArgumentError
from sacm_lab.commands import format_duration, parse_duration
from sacm_lab.grid import forget_data
from sacm_lab.paper import figures
from sacm_lab.paper.catalogue import EXPERIMENTS
from sacm_lab.results import read_results, write_results
from tests.cli.conftest import Command
from tests.lab.frames import make_frame

NAME = "real_forecasting"
PART = ("--datasets", "ILI", "--backbones", "itransformer", "--horizons", "24", "--size", "small")
QUICK = ("--epochs", 2, "--stride", 20)


@pytest.fixture
def paper(
    sacm: Command, stand_in_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Command]:
    monkeypatch.setenv("SACM_DATA", str(stand_in_folder))
    forget_data()
    yield lambda *arguments: sacm("paper", *arguments)
    forget_data()


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """A result file of the replication."""

    def value(keys: dict, metric: str) -> float:
        shift = {"raw": 0.0, "sacm": 0.2}.get(keys["strategy"], 0.1)
        return 4.0 - shift + keys["horizon"] / 100 + keys["seed"] % 7 / 50

    path = tmp_path / "results" / "replication_ili.csv"
    write_results(make_frame(EXPERIMENTS.get("replication_ili"), value), path)
    return path


def test_the_list_names_everything(paper: Command) -> None:
    printed = paper("list")
    assert printed.code == 0
    for name in (*EXPERIMENTS.names(), "gains", *figures.names()):
        assert f" {name} " in printed.out
    record = json.loads(paper("list", "--json").out)
    assert [one["name"] for one in record["experiments"]] == EXPERIMENTS.names()


def test_a_plan_runs_nothing_and_times_a_few_steps(paper: Command, tmp_path: Path) -> None:
    outcome = paper("run", NAME, *PART, *QUICK, "--plan", "--json")
    assert outcome.code == 0, outcome.err
    record = json.loads(outcome.out)
    (group,) = record["groups"]
    assert [group[key] for key in ("data", "backbone", "size")] == ["ILI", "iTransformer", "small"]
    assert [group[key] for key in ("done", "failed", "to run")] == [0, 0, 2]
    assert group["s / epoch"] > 0
    assert record["runs"] == 2
    assert not list((tmp_path / "runs").glob("*/config.json"))
    printed = paper("run", NAME, "--datasets", "ILI,Weather", *PART[2:], *QUICK, "--plan")
    assert "2 runs to do; at most " in printed.err
    assert "Weather is not on this machine" in printed.err


def test_run_report_and_run_again_from_a_file(paper: Command, tmp_path: Path) -> None:
    first = paper("run", NAME, *PART, *QUICK, "--runs", "mine")
    assert first.code == 0, first.err
    assert "2 runs are finished" in first.out
    report = ("report", NAME, *PART, *QUICK, "--runs", "mine")
    assert paper(*report, "--format", "csv", "--out", "kept.csv").out == "written to kept.csv\n"
    frame = pd.read_csv(tmp_path / "kept.csv")
    assert frame["strategy"].tolist() == ["raw", "sacm"]
    assert frame["epoch_limit"].tolist() == [2, 2]
    again = json.loads(paper("report", NAME, "--results", "kept.csv", "--format", "json").out)
    folder = json.loads(paper(*report, "--format", "json").out)
    assert again == folder
    rows = {row["strategy"]: row for row in folder["tables"][0]["rows"] if row["metric"] == "MSE"}
    assert rows["sacm"]["wins"] in ("0/1", "1/1")
    assert rows["sacm"]["paper"] is not None
    # What the file holds is not run again; what it lacks is.
    plan = ("run", NAME, *PART, *QUICK, "--plan", "--json", "--runs", "other")
    assert json.loads(paper(*plan).out)["runs"] == 2
    assert json.loads(paper(*plan, "--results", "kept.csv").out)["runs"] == 0
    frame[:1].to_csv(tmp_path / "half.csv", index=False)
    assert json.loads(paper(*plan, "--results", "half.csv").out)["runs"] == 1


@pytest.mark.parametrize("style", ["table", "md", "latex", "csv", "json", "html"])
def test_the_replication_in_every_format(paper: Command, kept: Path, style: str) -> None:
    command = ("report", "replication_ili", "--results", kept.parent, "--format", style)
    printed = paper(*command)
    assert printed.code == 0, printed.err
    text = printed.out
    assert "iTransformer" in text
    assert paper(*command, "--out", f"out/report.{style}").code == 0
    if style == "csv":
        assert len(read_results([Path(f"out/report.{style}")])) == 1100
    elif style != "table":  # which has the width of a terminal
        assert Path(f"out/report.{style}").read_text(encoding="utf-8") == text
    if style == "md":
        assert "| ILI | iTransformer | paper | 24 | MSE | sacm | 5 |" in text
        assert "race(raw,sacm)" in text
        assert "best_fixed" in text
        assert "20 cells, the largest first: " in text


def test_a_report_before_anything_was_run(paper: Command, tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    for name in ("replication_classification", "rates", "anomaly"):
        outcome = paper("report", name)
        assert outcome.code == 0, outcome.err
        assert "0 runs are finished" in outcome.out


def test_a_summary_of_a_folder(paper: Command, kept: Path, tmp_path: Path) -> None:
    printed = paper("summary", "--results", kept.parent)
    assert printed.code == 0
    assert "replication_ili" in printed.out
    (tmp_path / "page.md").write_text("a\n<!-- results:begin -->\nold\n<!-- results:end -->\n")
    written = paper("summary", "--results", kept.parent, "--into", "page.md")
    assert written.out == "written to page.md\n"
    text = (tmp_path / "page.md").read_text()
    assert "| replication_ili | MSE | paper | sacm | 1100 | 20 |" in text


@pytest.mark.parametrize("kind", ["png", "svg"])
def test_gains_as_a_figure(paper: Command, kept: Path, kind: str) -> None:
    outcome = paper("figure", "gains", "--results", kept, "--out", f"gains.{kind}")
    assert outcome.out == f"figure: gains.{kind}\n", outcome.err
    start = {"png": b"\x89PNG", "svg": b"<?xml"}[kind]
    assert Path(f"gains.{kind}").read_bytes().startswith(start)


def test_figures(paper: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert paper("figure", "surrogate_risk", "--out", "risk.png").out == "figure: risk.png\n"
    monkeypatch.setattr(figures, "names", lambda: ["surrogate_risk", "gamma"])
    outcome = paper("figure", "all", "--out", "some")
    assert (outcome.code, outcome.out) == (0, "figure: some/surrogate_risk.png\n")
    assert outcome.err.startswith("gamma: there is no folder runs with runs")
    monkeypatch.setattr(figures, "names", lambda: ["gamma"])
    assert paper("figure", "all", "--out", "none").code == 1


WRONG = [
    ("run zero_shots", "Did you mean 'zero_shot'?"),
    (f"run {NAME} --datasets ILI,HAR", f"{NAME} has no data set 'HAR'"),
    (f"run {NAME} --backbones TranAD", f"{NAME} has no backbone 'TranAD'"),
    (f"run {NAME} --datasets ILI --horizons 24,96", f"{NAME} has no horizon 96: it has 24, 36"),
    ("run anomaly --horizons 24", "anomaly has no horizons"),
    (f"run {NAME} --seeds one", "--seeds 'one': expected whole numbers"),
    (f"run {NAME} --datasets ILI --seeds -1", "seed = -1"),
    (f"run {NAME} --size huge", "--size 'huge': use paper or small"),
    (f"run {NAME} --where luck=3", "--where 'luck=3': expected a setting"),
    ("run anomaly --datasets MSL --where score=luck", "score = 'luck'"),
    (f"run {NAME} --budget soon", "--budget 'soon': expected a time such as 2h"),
    (f"run {NAME} --engine slurm", "there is no engine 'slurm'"),
    (f"run {NAME} --datasets ILI --runs a_file/inside", "cannot be made: Not a directory"),
    (f"report {NAME} --format pdf", "--format 'pdf': use table, md, latex, csv, json, html"),
    (f"report {NAME} --runs nowhere", "--runs nowhere: there is no such folder"),
    (f"report {NAME} --runs merged", "the runs are further down, in merged/machine"),
    (f"report {NAME} --results nowhere.csv", "there is no nowhere.csv"),
    (f"report {NAME} --results empty", f"--results empty: there is no {NAME}.csv in it"),
    (f"report {NAME} --results a_file", "no file holds results"),
    ("summary --results empty", "empty holds no results"),
    ("figure surrogate_risks --out x.png", "Did you mean 'surrogate_risk'?"),
    ("figure surrogate_risk --out risk.pdf", "figures are written to .png or .svg"),
    ("draw", "No such command"),
]


@pytest.mark.parametrize(("command", "sentence"), WRONG, ids=lambda text: text[:60])
def test_one_helpful_sentence(paper: Command, tmp_path: Path, command: str, sentence: str) -> None:
    (tmp_path / "a_file").write_text("text\n1\n")
    (tmp_path / "empty").mkdir()
    (tmp_path / "merged" / "machine" / "run").mkdir(parents=True)
    (tmp_path / "merged" / "machine" / "run" / "config.json").write_text("{}")
    outcome = paper(*command.split())
    error = [line for line in outcome.err.splitlines() if line.strip()]
    assert (outcome.code, len(error), outcome.out) == (2, 1, ""), outcome.err
    assert error[0].startswith("Error: ")
    assert sentence in error[0]


def test_times() -> None:
    assert [parse_duration(text) for text in ("2h", "1h30m", "1.5d")] == [7200, 5400, 129_600]
    for text in ("h", "1x", "2h later", "-1h"):
        with pytest.raises(ArgumentError, match="--budget"):
            parse_duration(text)
    assert [format_duration(t) for t in (45.4, 90, 5400)] == ["45 s", "2 min", "1.5 h"]
