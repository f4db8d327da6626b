"""Every protocol in a size that runs in seconds, on data made here."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

import sacm.data
from sacm.experiments.grid import JobGroup
from sacm.experiments.grid_points import Selection
from sacm.experiments.jobs import load_data
from sacm.experiments.named.experiment import Experiment
from sacm.experiments.plan import make_plan
from sacm.experiments.run_plan import Tally, run_plan
from sacm.registry import temporary_entries
from sacm_lab.robust.choose import choose
from sacm_lab.robust.findings import RobustFindings
from sacm_lab.robust.gather import find_protocol_groups, gather
from sacm_lab.robust.protocols import PROTOCOLS
from tests.cli.conftest import sacm as command
from tests.experiments.tiny import InProcess
from tests.training.cases import make_data

sacm_command = command  # the fixture `sacm`, under a name that does not hide the package
DATA = {"forecasting": "Waves", "classification": "Cases", "anomaly": "Telemetry"}
SETTINGS: dict[str, dict[str, Any]] = {
    "forecasting": {"input_len": 24, "stride": 8},
    "classification": {},
    "anomaly": {"input_len": 20, "stride": 10},
}
TINY = {"width": 8, "hidden": 8}


@dataclass(frozen=True)
class Carried:
    """A protocol that has been run."""

    experiment: Experiment
    selection: Selection
    folder: Path
    groups: list[JobGroup]
    tally: Tally
    found: RobustFindings


def tiny(name: str, *strategies: str) -> tuple[Experiment, Selection]:
    """One data set, one tiny network, one fault, two seeds, two epochs."""
    declared = PROTOCOLS.get(name)
    kinds = {"N": ("symmetric",), "C": ("anomalies",), "F": ()}.get(name, ("mix",))
    experiment, _ = choose(
        declared,
        datasets=(DATA[declared.task],),
        backbones=("iTransformer",),
        strategies=strategies or ("sacm",),
        kinds=kinds,
        ratios=(0.3,) if kinds else (),
    )
    horizons = (8,) if declared.task == "forecasting" else ()
    own = {**SETTINGS[declared.task], "epochs": 2, "overrides": TINY}
    selection = Selection(seeds=(1, 2), sizes=("small",), settings=own)
    return replace(experiment, horizons=horizons), selection


def carry_out(name: str, folder: Path, *strategies: str) -> Carried:
    """From the declaration to the findings."""
    experiment, selection = tiny(name, *strategies)
    groups = find_protocol_groups(experiment, selection, folder)
    plan = make_plan(groups, folder, together=False)
    tally = run_plan(plan, InProcess(), folder, workers=1)
    found = gather(experiment, selection, groups, folder)
    return Carried(experiment, selection, folder, groups, tally, found)


# As long as this folder's tests: other tests count the data sets that there are.
@pytest.fixture(scope="package")
def made_data() -> Iterator[None]:
    """The data of the protocols, by name."""
    with temporary_entries():
        for task, name in DATA.items():
            sacm.data.register(name, task=task)(lambda task=task: make_data(task))
        yield
        load_data.cache_clear()


@pytest.fixture(scope="package")
def protocol_t(made_data: None, tmp_path_factory: pytest.TempPathFactory) -> Carried:
    """T with two strategies."""
    return carry_out("T", tmp_path_factory.mktemp("t"), "guard", "sacm")


@pytest.fixture(scope="package")
def protocol_f(made_data: None, tmp_path_factory: pytest.TempPathFactory) -> Carried:
    """F with one strategy."""
    return carry_out("F", tmp_path_factory.mktemp("f"), "sacm")
