"""The protocols: what their runs are tested by, what is recovered, and the commands."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sacm.data
from sacm.errors import ArgumentError
from sacm.registry import temporary_entries
from sacm_lab import CHECKS
from sacm_lab.commands import Asked, collect_rows
from sacm_lab.experiment import Experiment, Part, make_jobs, select_rows
from sacm_lab.grid import forget_data
from sacm_lab.results import write_results
from sacm_lab.robust.checks import block_means, summarise
from sacm_lab.robust.commands import choose_protocol
from sacm_lab.robust.protocols import ON_CLEAN, PROTECTED, PROTOCOLS, RANDOM
from sacm_lab.robust.report import protocol_report, recovered_shares
from tests.cli.conftest import Command
from tests.lab.frames import make_frame
from tests.lab.tiny import run_all
from tests.training.cases import make_data

DATA = {"forecasting": "Waves", "classification": "Cases", "anomaly": "Telemetry"}
SETTINGS: dict[str, dict[str, Any]] = {
    "forecasting": {"input_len": 24, "stride": 8},
    "classification": {},
    "anomaly": {"input_len": 20, "stride": 10},
}
NAMES = ["training", "test", "both", "labels", "anomalies"]


@pytest.fixture
def made_data() -> Iterator[None]:
    with temporary_entries():
        for task, name in DATA.items():
            sacm.data.register(name, task=task)(lambda task=task: make_data(task))
        yield
        forget_data()


def tiny(name: str) -> tuple[Experiment, Part]:
    """One data set, one tiny network, one fault, two seeds, two epochs."""
    task = PROTOCOLS.get(name).task
    more = {"epochs": 2, "overrides": {"width": 8, "hidden": 8}}
    part = Part(
        datasets=(DATA[task],),
        backbones=("itransformer",),
        seeds=(1, 2),
        settings={**SETTINGS[task], **more},
    )
    experiment, part = choose_protocol(name, Asked(part, ("sacm",)))
    vary = {key: values[:1] for key, values in experiment.vary.items()}
    by_task = {"horizons": (8,)} if task == "forecasting" else {}
    return replace(experiment, vary=vary, **by_task), part


@pytest.mark.slow
@pytest.mark.usefixtures("made_data")
@pytest.mark.parametrize("name", NAMES)
def test_a_protocol_from_jobs_to_its_report(name: str, tmp_path: Path) -> None:
    experiment, part = tiny(name)
    jobs, absent = make_jobs(experiment, part)
    assert not absent
    tally = run_all(tmp_path, *jobs)
    assert not tally.failed, tally.failed[0].reason
    frame, rows = collect_rows(experiment, part, tmp_path, [])
    done = frame[frame["state"] == "done"]
    assert set(done["strategy"]) == {"raw", "sacm", *experiment.references}
    for metric in experiment.metrics:
        values = done[~done["strategy"].isin((PROTECTED, RANDOM))][metric]
        assert values.notna().all(), metric
    report = protocol_report(experiment, frame, rows)
    assert report.tables[0].rows
    if ON_CLEAN in experiment.references:
        assert "recovered" in report.tables[-1].headings or len(recovered_shares(experiment, frame))
    if PROTECTED in experiment.references:
        own = done[done["strategy"] == PROTECTED]
        assert own["mean_fault_mse"].notna().all()


def test_recovered_shares_by_hand() -> None:
    experiment = PROTOCOLS.get("training")
    experiment = replace(
        experiment, datasets=("ILI",), backbones=("PatchTST",), strategies=("raw", "guard", "trim")
    )
    errors = {"raw": 3.0, ON_CLEAN: 2.0, "guard on clean": 2.1, "guard": 2.25, "trim": 3.5}

    def value(keys: dict[str, Any], metric: str) -> float | None:
        return errors.get(keys["strategy"])

    frame = select_rows(experiment, make_frame(experiment, value), Part(), settings=False)
    shares = recovered_shares(experiment, frame)
    found = shares[shares["contamination"] == "mix(0.3)"].set_index("strategy")
    assert found["lost"].to_dict() == pytest.approx({"guard": 0.5, "trim": 0.5})
    assert found["won"].to_dict() == pytest.approx({"guard": 0.375, "trim": -0.25})
    report = protocol_report(experiment, frame, frame)
    overall = next(table for table in report.tables if table.caption == "Over all cells")
    recovered = {
        row["strategy"]: row["recovered"] for row in overall.records() if row["metric"] == "MSE"
    }
    assert (recovered["guard"], recovered["trim"]) == ("75%", "-50%")
    assert "Broken training data cost raw 50% in MSE, the mean of 2 cells." in report.sentences


def test_errors_under_faults_are_summarised_by_hand() -> None:
    errors = {"clean": np.array([1.0, 3.0]), "a": np.array([4.0, 4.0]), "b": np.array([1.0, 1.0])}
    assert summarise(errors) == {
        "clean_mse": 2.0,
        "mean_fault_mse": 2.5,
        "worst_degradation": 2.0,
        "degradation_a": 2.0,
        "degradation_b": 0.5,
    }
    assert block_means(np.arange(40.0))[:2] == [0.5, 2.5]


def test_checks_are_registered_by_reference() -> None:
    assert {"faults", "protect", "last", "random"} <= set(CHECKS.names())
    with pytest.raises(ArgumentError, match="random scores are for anomaly detection"):
        CHECKS.get("random")(None, make_data("forecasting"))


def test_names_that_a_protocol_does_not_list_may_be_added() -> None:
    asked = Asked(Part(datasets=("weather",), backbones=("timemixer",)), ("fixed(0.2)",))
    experiment, part = choose_protocol("training", asked, kind="stuck,mix", ratio="0.1")
    assert experiment.datasets == ("Weather",)
    assert experiment.backbones == ("TimeMixer",)
    assert experiment.strategies == ("raw", "fixed(p=0.2)")
    assert experiment.vary["contamination"] == ("stuck(0.1)", "mix(0.1)")
    assert part.size == "small"
    alone, _ = choose_protocol("training", Asked(Part(), ()), references="none")
    assert not alone.references


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kind": "stuck", "name": "test"}, "test breaks no training data"),
        ({"ratio": "much"}, "--ratio 'much': expected numbers"),
        ({"references": "nothing"}, "training has no reference 'nothing': use raw on clean"),
        ({"name": "T"}, "there is no protocol 'T'"),
    ],
)
def test_what_a_protocol_cannot_be_asked(options: dict[str, str], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        choose_protocol(**{"name": "training", "asked": Asked(Part(), ()), **options})


def test_commands_from_a_file(sacm: Command, tmp_path: Path) -> None:
    experiment = replace(PROTOCOLS.get("labels"), datasets=("Epilepsy",))

    def value(keys: dict[str, Any], metric: str) -> float:
        return 0.8 + 0.01 * len(keys["strategy"]) + keys["seed"] / 1000

    frame = make_frame(experiment, value).assign(size="small")
    write_results(frame, tmp_path / "robust" / "labels_epilepsy.csv")
    assert all(f" {name} " in sacm("robust", "list").out for name in NAMES)
    printed = sacm("robust", "report", "labels", "--results", "robust", "--format", "json")
    assert printed.code == 0, printed.err
    record = json.loads(printed.out)
    assert record["title"] == "labels: Wrong labels in classification"
    rows = [row for row in record["tables"][0]["rows"] if row["metric"] == "accuracy"]
    assert {row["data"] for row in rows} == {"Epilepsy"}
    (tmp_path / "page.md").write_text("<!-- robust:begin -->\n<!-- robust:end -->\n")
    assert sacm("robust", "summary", "--results", "robust", "--into", "page.md").code == 0
    assert "| labels | accuracy | small | " in (tmp_path / "page.md").read_text()
    assert "holds no results" in sacm("robust", "summary", "--results", ".").err
