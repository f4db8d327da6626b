from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

from sacm.cli.experiments.words import duration, format_duration
from sacm.errors import ArgumentError
from sacm.experiments.grid_points import Selection
from sacm.experiments.jobs import load_data, record_job_failure
from sacm.experiments.named.experiment import points
from sacm.reports.named.summary import BEGIN, END
from sacm_lab.paper import figures
from sacm_lab.paper.experiments.catalogue import EXPERIMENTS, find
from tests.cli.conftest import Command
from tests.experiments import stand_in
from tests.experiments.cases import write_run
from tests.experiments.tiny import Carried, carry_out, groups_of, ili, tiny

NAME = "real_forecasting"
PART = ("--datasets", "ILI", "--backbones", "itransformer", "--horizons", "24", "--size", "small")
QUICK = ("--epochs", 2, "--stride", 20)


@pytest.fixture(scope="session")
def data_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stand_in")
    stand_in.write_all(folder)
    return folder


@pytest.fixture
def paper(sacm: Command, data_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Command]:
    """`sacm paper` with made-up benchmarks."""
    monkeypatch.setenv("SACM_DATA", str(data_folder))
    load_data.cache_clear()
    yield lambda *arguments: sacm("paper", *arguments)
    load_data.cache_clear()


@pytest.fixture(scope="module")
def done(data_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Carried]:
    """A finished part of an experiment."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SACM_DATA", str(data_folder))
        load_data.cache_clear()
        yield carry_out(NAME, tmp_path_factory.mktemp("runs"), tiny(NAME))
        load_data.cache_clear()


def test_the_list_names_everything(paper: Command):
    printed = paper("list")
    assert printed.code == 0
    for name in (*EXPERIMENTS, *figures.names()):
        assert f" {name} " in printed.out
    record = json.loads(paper("list", "--json").out)
    assert [one["name"] for one in record["experiments"]] == list(EXPERIMENTS)
    assert [one["name"] for one in record["figures"]] == figures.names()


def test_a_plan_runs_nothing(paper: Command, tmp_path: Path):
    outcome = paper("run", NAME, *PART, *QUICK, "--plan", "--json")
    assert outcome.code == 0
    record = json.loads(outcome.out)
    (group,) = record["groups"]
    assert [group[key] for key in ("data", "backbone", "size")] == ["ILI", "iTransformer", "small"]
    assert [group[key] for key in ("done", "failed", "to run", "no data")] == [0, 0, 2, 0]
    assert record["left"]["runs"] == 2
    assert record["left"]["seconds"] == pytest.approx(group["estimate"])
    assert group["by"] == "guess"
    assert not (tmp_path / "runs" / "costs.json").exists()
    measured = json.loads(paper("run", NAME, *PART, *QUICK, "--plan", "--measure", "--json").out)
    assert measured["groups"][0]["by"] == "measured"
    (tmp_path / "runs" / "costs.json").unlink()
    assert not list((tmp_path / "runs").glob("*/config.json"))
    printed = paper("run", NAME, *PART, *QUICK, "--plan")
    assert printed.code == 0
    assert "iTransformer" in printed.out
    assert "2 runs to do, about " in printed.err
    assert "--measure runs a few batches of each" in printed.err


def test_a_plan_tells_what_is_absent_and_what_failed(paper: Command, tmp_path: Path):
    arguments = ("run", NAME, "--backbones", "iTransformer", "--horizons", "24,96", "--plan")
    asked = ("--datasets", "ILI,Weather", "--size", "small", "--epochs", 2, "--stride", 40)
    (group,) = groups_of(tmp_path / "runs", ili(42))
    record_job_failure(group.jobs[0], tmp_path / "runs", "the loss is nan.", killed=False)
    outcome = paper(*arguments, *asked, "--json")
    here, absent = sorted(json.loads(outcome.out)["groups"], key=lambda one: one["data"])
    assert (here["failed"], here["to run"], absent["to run"], absent["no data"]) == (2, 0, 0, 2)
    assert "Runs without their data are left out" in paper(*arguments, *asked).err
    again = json.loads(paper(*arguments, *asked, "--json", "--retry-failed").out)
    assert again["left"]["runs"] == 2


def test_a_report_says_which_data_are_not_here(sacm: Command, done: Carried):
    outcome = sacm("paper", "report", NAME, *PART, *QUICK, "--runs", done.folder)
    assert outcome.code == 0
    assert "so their runs are not looked for: ILI." in outcome.err


def test_run_and_run_again(paper: Command, tmp_path: Path):
    first = paper("run", NAME, *PART, "--epochs", 1, "--stride", 60, "--runs", "mine")
    assert first.code == 0
    assert "iTransformer" in first.out
    assert "Note: Small size, not the paper's: iTransformer." in first.err
    assert "did not fit" not in first.err
    table = pd.read_parquet(tmp_path / "mine" / "runs.parquet")
    assert sorted(table["strategy"]) == ["raw", "sacm"]
    assert set(table["state"]) == {"done"}
    again = paper("run", NAME, *PART, "--epochs", 1, "--stride", 60, "--runs", "mine", "--json")
    record = json.loads(again.out)
    assert record["coverage"] == {
        "total": 2,
        "done": 2,
        "failed": 0,
        "missing": 0,
        "declared": len(points(find(NAME), Selection())) * 2,
    }
    ((sacm,),) = ([row for row in record["rows"] if row["metric"] == "mse"],)
    mse = table.set_index("strategy")["mse"]
    assert (sacm["baseline"]["mean"], sacm["value"]["mean"]) == (mse["raw"], mse["sacm"])


def test_a_budget_that_is_too_small_runs_nothing(paper: Command, tmp_path: Path):
    outcome = paper("run", NAME, *PART, *QUICK, "--budget", "0s", "--json")
    assert outcome.code == 0
    assert json.loads(outcome.out)["coverage"]["missing"] == 2
    assert not list((tmp_path / "runs").glob("*/metrics.json"))
    assert "2 runs did not fit into the budget; the cheapest pair needs about " in outcome.err


@pytest.mark.parametrize("style", ["table", "md", "latex", "csv", "json", "html"])
def test_reports(paper: Command, done: Carried, tmp_path: Path, style):
    command = ("report", NAME, *PART, *QUICK, "--runs", done.folder, "--format", style)
    printed = paper(*command)
    assert printed.code == 0
    assert "iTransformer" in printed.out
    suffix = {"table": "md", "latex": "tex"}.get(style, style)
    written = paper(*command, "--out", f"reports/ili.{suffix}")
    assert (written.code, written.out) == (0, f"report: reports/ili.{suffix}\n")
    text = (tmp_path / "reports" / f"ili.{suffix}").read_text(encoding="utf-8")
    if style == "csv":
        lines = list(csv.DictReader(io.StringIO(text)))
        assert {line["metric"] for line in lines} == {"mse", "mae"}
    elif style == "json":
        assert json.loads(text) == json.loads(printed.out)
    else:
        assert "iTransformer" in text


def test_a_brief_report_has_no_curves(paper: Command, done: Carried):
    report = ("report", NAME, *PART, *QUICK, "--runs", done.folder, "--format", "json")
    whole, brief = (json.loads(paper(*report, *more).out) for more in ((), ("--brief",)))
    for group in whole["groups"]:
        for run in group["runs"]:
            assert run.pop("history")
            run["history"] = []
    assert brief == whole


def test_a_report_finds_the_size_that_was_run(paper: Command, done: Carried):
    part = PART[: PART.index("--size")]
    found = paper("report", NAME, *part, *QUICK, "--runs", done.folder, "--format", "json")
    assert json.loads(found.out)["coverage"]["done"] == 2


def test_a_report_before_anything_was_run(paper: Command, tmp_path: Path):
    (tmp_path / "runs").mkdir()
    outcome = paper("report", NAME, *PART, "--format", "json")
    assert outcome.code == 0
    coverage = json.loads(outcome.out)["coverage"]
    assert coverage.pop("declared") > 2
    assert coverage == {"total": 2, "done": 0, "failed": 0, "missing": 2}
    for name in ("rates", "anomaly"):
        assert paper("report", name).code == 0


def test_reports_from_kept_findings(paper: Command, done: Carried, tmp_path: Path):
    report = ("report", NAME, *PART, *QUICK, "--runs", done.folder)
    paper(*report, "--format", "json", "--out", f"results/{NAME}.json")
    for place in ("results", f"results/{NAME}.json"):
        kept = paper("report", NAME, "--results", place, "--format", "md")
        assert kept.code == 0
        assert kept.out == paper(*report, "--format", "md").out.replace("\r", "")
    printed = paper("summary")
    assert printed.code == 0
    assert NAME in printed.out
    (tmp_path / "README.md").write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    assert paper("summary", "--into", "README.md").out == "written to README.md\n"
    text = (tmp_path / "README.md").read_text()
    assert text.startswith(f"before\n{BEGIN}\n|")
    assert text.endswith(f"{END}\nafter\n")
    assert NAME in text
    assert "old" not in text


def test_a_damaged_run_of_another_time_stops_nothing(paper: Command, tmp_path: Path):
    for name, text in (("old", '{"task": "forecasting", "of": "another version"}'), ("torn", "{")):
        (tmp_path / "runs" / name).mkdir(parents=True)
        (tmp_path / "runs" / name / "config.json").write_text(text)
        (tmp_path / "runs" / name / "metrics.json").write_text("{}")
    outcome = paper("run", NAME, *PART, *QUICK, "--budget", "0s", "--json")
    assert outcome.code == 0
    states = pd.read_parquet(tmp_path / "runs" / "runs.parquet").set_index("run")["state"]
    assert states.to_dict() == {"old": "damaged", "torn": "damaged"}


def test_a_figure(paper: Command, tmp_path: Path):
    assert paper("figure", "surrogate_risk", "--out", "risk.png").out == "figure: risk.png\n"
    assert (tmp_path / "risk.png").read_bytes().startswith(b"\x89PNG")
    outcome = paper("figure", "surrogate_risk", "--out", "drawings")
    assert outcome.out == "figure: drawings/surrogate_risk.png\n"


def test_a_figure_names_damaged_runs_and_does_without(paper: Command, tmp_path: Path):
    (tmp_path / "runs").mkdir()
    run = write_run(tmp_path / "runs", strategy="raw", seed=1, row={"mse": 1.0})
    (run.folder / "metrics.json").write_text("{}")
    outcome = paper("figure", "error_against_noise")
    assert outcome.code == 2
    assert f"Note: runs/{run.folder.name} is damaged and left out" in outcome.err
    assert "runs holds no finished pairs" in outcome.err


def test_all_figures_fail_only_if_none_is_drawn(
    paper: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(figures, "names", lambda: ["surrogate_risk", "gamma"])
    outcome = paper("figure", "all", "--out", "some")
    assert (outcome.code, outcome.out) == (0, "figure: some/surrogate_risk.png\n")
    assert outcome.err.startswith("gamma: there is no folder runs with runs")
    monkeypatch.setattr(figures, "names", lambda: ["gamma"])
    assert paper("figure", "all", "--out", "none").code == 1


WRONG = [
    ("run zero_shots", "there is no experiment 'zero_shots'. Did you mean 'zero_shot'?"),
    ("report nothing_like_it", "Experiments: synth12, "),
    (f"run {NAME} --datasets ILI,HAR", f"{NAME} has no data set 'HAR'"),
    (f"run {NAME} --backbones TranAD", f"{NAME} has no backbone 'TranAD'"),
    (f"run {NAME} --small TranAD", f"{NAME} has no backbone 'TranAD'"),
    (f"run {NAME} --horizons 25", f"{NAME} has no horizon 25"),
    (f"run {NAME} --datasets ILI --horizons 24,96", f"{NAME} has no horizon 96: it has 24, 36"),
    (f"run {NAME} --datasets ILI,ETTh1 --horizons 96", "ILI has none of these horizons"),
    (f"run {NAME} --horizons short", "--horizons 'short': expected whole numbers"),
    ("run anomaly --horizons 24", "anomaly has no horizons"),
    (f"run {NAME} --seeds one", "--seeds 'one': expected whole numbers"),
    (f"run {NAME} --datasets ILI --seeds -1", "seed = -1"),
    (f"run {NAME} --size huge", "--size 'huge': use paper or small"),
    (f"run {NAME} --datasets ILI --epochs 0", "'--epochs'"),
    (f"run {NAME} --stride none", "'--stride'"),
    ("run anomaly --datasets MSL --score luck", "score = 'luck'"),
    (f"run {NAME} --budget soon", "--budget 'soon': expected a time such as 2h"),
    (f"run {NAME} --budget 90", "--budget '90': expected a time such as 2h"),
    (f"run {NAME} --workers 0", "'--workers'"),
    (f"run {NAME} --engine slurm", "there is no engine 'slurm': use local or ray"),
    (f"run {NAME} --datasets ILI --runs a_file/inside", "cannot be made: Not a directory"),
    (f"report {NAME} --format pdf", "--format 'pdf': use table, md, latex, csv, json, html"),
    (f"report {NAME} --datasets ILI --out a_file/report.md", "a_file cannot be made"),
    (f"report {NAME} --datasets ILI --format html --out .", "is a folder"),
    (f"report {NAME} --runs nowhere", "--runs nowhere: there is no such folder"),
    (f"report {NAME} --runs merged", "the runs are further down, in merged/machine"),
    (f"report {NAME} --results kept --datasets ILI", "leave out what narrows them"),
    (f"report {NAME} --results nowhere", "there is no nowhere"),
    (f"report {NAME} --results empty", f"there is no empty/{NAME}.json"),
    (f"report {NAME} --results torn.json", "torn.json is damaged"),
    (f"report {NAME} --results other.json", "other.json holds no findings"),
    ("report rates --results kept.json", f"kept.json holds findings of {NAME}, not of rates"),
    ("summary --results empty", "empty holds no findings"),
    ("summary --results nowhere", "nowhere holds no findings"),
    ("summary --results torn", "is damaged"),
    ("summary --results kept --into a_file", "must occur once"),
    ("figure surrogate_risks", "Did you mean 'surrogate_risk'?"),
    ("figure gamma --runs nowhere", "there is no folder nowhere with runs: name another"),
    ("figure surrogate_risk --out risk.pdf", "figures are written to .png"),
    ("figure surrogate_risk --out a_file/risk.png", "a_file cannot be made"),
    ("draw", "No such command"),
]


@pytest.fixture
def bad_places(paper: Command, done: Carried, tmp_path: Path) -> None:
    """Files and folders with something wrong, where the commands run."""
    (tmp_path / "a_file").write_text("text")
    for folder in ("runs", "empty", "torn", "kept"):
        (tmp_path / folder).mkdir()
    (tmp_path / "merged" / "machine" / "run").mkdir(parents=True)
    (tmp_path / "merged" / "machine" / "run" / "config.json").write_text("{}")
    (tmp_path / "torn.json").write_text("{")
    (tmp_path / "torn" / "rates.json").write_text("{")
    (tmp_path / "other.json").write_text('{"name": "rates"}')
    for path in (tmp_path / "kept.json", tmp_path / "kept" / f"{NAME}.json"):
        path.write_text(json.dumps(done.findings.to_dict()))


@pytest.mark.usefixtures("bad_places")
@pytest.mark.parametrize(("command", "sentence"), WRONG, ids=lambda text: text[:60])
def test_one_helpful_sentence(paper: Command, command: str, sentence: str):
    outcome = paper(*command.split())
    error = [line for line in outcome.err.splitlines() if line.strip()]
    assert outcome.code == 2
    assert len(error) == 1
    assert error[0].startswith("Error: ")
    assert sentence in error[0]
    assert outcome.out == ""


def test_times():
    assert duration("2h") == 7200
    assert duration("1h30m") == 5400
    assert duration(" 1.5d ") == 129_600
    assert duration("45s") == 45
    for text in ("h", "1x", "2h later", "-1h", "1 h"):
        with pytest.raises(ArgumentError, match="--budget"):
            duration(text)
    assert [format_duration(t) for t in (0, 45.4, 89, 90, 720, 5400)] == [
        *("0 s", "45 s", "89 s", "2 min", "12 min", "1.5 h")
    ]


def test_help_is_there_without_anything_heavy(paper: Command):
    for command in ("run", "report", "figure", "summary", "list"):
        printed = paper(command, "--help")
        assert printed.code == 0
        assert f"Example: sacm paper {command}" in printed.out
