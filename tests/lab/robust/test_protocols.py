"""Every protocol from its declaration to its findings, in a tiny size."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sacm.data.corrupt import corrupt_training
from sacm.errors import ArgumentError
from sacm.experiments.jobs import load_data, record_job_failure
from sacm.experiments.named.pairs import value_of
from sacm.experiments.plan import make_plan
from sacm.files import read_json
from sacm.training import Hardware
from sacm.training.replay import replay
from sacm.training.run import Run
from sacm_lab.robust.choose import choose
from sacm_lab.robust.faults import TESTED
from sacm_lab.robust.gather import find_protocol_groups
from sacm_lab.robust.protocols import ON_CLEAN, PROTECTED, PROTOCOLS, RANDOM
from tests.lab.robust.conftest import Carried, carry_out, tiny


def test_t_has_every_row_and_is_not_run_twice(protocol_t: Carried) -> None:
    assert protocol_t.tally.failed == ()
    cover = protocol_t.found.findings.coverage
    assert cover.done == cover.total == 2 * 7
    groups = find_protocol_groups(protocol_t.experiment, protocol_t.selection, protocol_t.folder)
    assert make_plan(groups, protocol_t.folder, together=False).jobs_left == 0


def test_errors_of_t_are_in_deviations_of_the_clean_training_rows(protocol_t: Carried) -> None:
    data = load_data("Waves", "forecasting")
    clean = data.values[: data.splits.train.stop].astype(float).std(axis=0)
    for job in protocol_t.groups[0].jobs:
        report = Run(protocol_t.folder / job.run_id).metrics["report"]
        units = np.mean(np.array(report["raw"]["channel_mse"]) / clean**2)
        assert report["scaled"]["mse"] == pytest.approx(units, rel=1e-4)


def test_the_seed_of_a_run_draws_its_faults_and_its_scaler_sees_them(protocol_t: Carried) -> None:
    data = load_data("Waves", "forecasting")
    for group in protocol_t.groups:
        raw = next(job for job in group.jobs if job.settings.strategy == "raw")
        seed = raw.settings.seed
        worse = corrupt_training(data, "mix(0.3)", seed=seed).values[: data.splits.train.stop]
        scaler = Run(protocol_t.folder / raw.run_id).scaler
        np.testing.assert_allclose(scaler.mean, worse.mean(axis=0), atol=1e-5)


def test_f_measures_faults_and_protects_without_training(protocol_f: Carried) -> None:
    assert protocol_f.tally.failed == ()
    assert protocol_f.tally.done == 2 * 2  # raw and sacm; the protected network is that of raw
    group = protocol_f.found.findings.groups[0]
    raw, protected = (
        {name: value_of(group, row, name) for name in protocol_f.experiment.metrics}
        for row in ("raw", PROTECTED)
    )
    degradations = [v for name, v in raw.items() if name.startswith("degradation_")]
    assert raw["worst_degradation"] == max(degradations)
    mean = np.mean(degradations) * raw["clean_mse"]
    assert raw["mean_fault_mse"] == pytest.approx(mean)
    assert raw != protected
    job = protocol_f.groups[0].jobs[0]
    assert job.settings.split == (0.6, 0.2, 0.2)
    record = read_json(protocol_f.folder / job.run_id / "check_faults.json")
    assert set(record["blocks"]) == {"clean", *TESTED}
    # All test windows are used, so the clean error is that of the run itself.
    own = record["test"]["clean_mse"]
    assert own == pytest.approx(Run(protocol_f.folder / job.run_id).row["mse"], rel=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["TF", "N", "C"])
def test_the_other_protocols_run(name: str, made_data: None, tmp_path: Path) -> None:
    carried = carry_out(name, tmp_path)
    assert carried.tally.failed == ()
    cover = carried.found.findings.coverage
    assert cover.done == cover.total
    group = carried.found.findings.groups[0]
    first = carried.experiment.metrics[0]
    rows = carried.experiment.run_rows
    assert all(value_of(group, row, first) is not None for row in rows)
    assert value_of(group, "raw", first) != value_of(group, ON_CLEAN, first)
    if name == "N":
        assert value_of(group, "raw", "accuracy_last_ten") is not None
    if name == "C":
        assert 0 < value_of(group, RANDOM, "vus_pr") < 0.5
    assert any(one.strategy == "sacm" for one in carried.found.recovered)


def test_declared_strategies_that_are_not_there_are_named_and_left_out() -> None:
    chosen = choose(PROTOCOLS.get("T"))
    assert chosen.experiment.strategies[0] == "raw"
    declared = PROTOCOLS.get("T").strategies
    assert len(chosen.experiment.strategies) + len(chosen.unknown) == len(declared)


def test_references_are_run_as_they_are_asked_for() -> None:
    declared = PROTOCOLS.get("T")
    assert choose(declared).experiment.references == declared.references
    assert list(choose(declared, references=(ON_CLEAN,)).experiment.references) == [ON_CLEAN]
    assert not choose(declared, references=("none",)).experiment.references
    with pytest.raises(ArgumentError, match="T has no reference 'oracle': use raw on clean"):
        choose(declared, references=("oracle",))


def test_a_contaminated_run_is_replayed_to_the_last_digit(
    protocol_t: Carried, tmp_path: Path
) -> None:
    job = protocol_t.groups[0].jobs[0]
    assert job.settings.contamination == "mix(0.3)"
    run = Run(protocol_t.folder / job.run_id)
    again = replay(run, run.load_data(), folder=tmp_path, hardware=Hardware(show_progress=False))
    assert again.same
    assert again.run.folder.name == run.folder.name


def test_a_failed_strategy_costs_its_own_row_only(made_data: None, tmp_path: Path) -> None:
    experiment, selection = tiny("T", "sacm")
    groups = find_protocol_groups(experiment, selection, tmp_path)[:1]
    record_job_failure(groups[0].jobs[1], tmp_path, "no luck", killed=False)
    assert make_plan(groups, tmp_path).jobs_left == 0
    assert make_plan(groups, tmp_path, together=False).jobs_left == len(groups[0].jobs) - 1
