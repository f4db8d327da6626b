"""Every experiment in a size that runs in seconds, and an engine without processes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sacm.experiments.engines import Engine, Outcome
from sacm.experiments.engines.local import describe_error
from sacm.experiments.grid import Grid, JobGroup
from sacm.experiments.grid_points import Key, Point, Selection
from sacm.experiments.jobs import Job, execute
from sacm.experiments.named.collect import collect
from sacm.experiments.named.experiment import Experiment, points
from sacm.experiments.named.findings import Findings
from sacm.experiments.named.tabulate import tabulate
from sacm.experiments.plan import Plan, make_plan
from sacm.experiments.run_plan import Tally, run_plan
from sacm.files import read_json
from sacm_lab.paper.experiments.catalogue import find

# experiment: data set, backbone, horizon
PARTS: dict[str, tuple[str, str, int | None]] = {
    "synth12": ("Synth-12@0.3", "iTransformer", 96),
    "real_forecasting": ("ILI", "iTransformer", 24),
    "rates": ("ILI", "PatchTST", 24),
    "data_fraction": ("ILI", "PatchTST", 24),
    "zero_shot": ("ETTh1", "PatchTST", 96),
    "classification": ("BasicMotions", "iTransformer", None),
    "anomaly": ("MSL", "iTransformer", None),
    "strategies": ("ILI", "PatchTST", 48),
    "fixed_sweep": ("ILI", "PatchTST", 48),
    "ablation": ("Synth-12@0.1", "PatchTST", 96),
    "gamma": ("Synth-12@0.1", "PatchTST", 96),
    "batch_size": ("ETTh1", "PatchTST", 96),
    "efficiency": ("ETTh1", "TimeMixer", 96),
    "selective": ("ILI", "Informer", 60),
    "denoise": ("ILI", "PatchTST", 24),
    "paired_seeds": ("ILI", "PatchTST", 24),
    "replication_ili": ("ILI", "iTransformer", 24),
    "replication_ili_large": ("ILI", "TimeMixer", 24),
    "replication_forecasting": ("ETTh1", "iTransformer", 96),
    "replication_synth12": ("Synth-12@0.1", "iTransformer", 96),
    "replication_classification": ("BasicMotions", "iTransformer", None),
    "replication_anomaly": ("MSL", "iTransformer", None),
}


class InProcess:
    """Jobs one after the other, here."""

    def run(self, jobs: Iterable[Job], folder: Path) -> Iterator[Outcome]:
        for job in jobs:
            try:
                execute(job, folder)
            except Exception as error:
                yield Outcome(job, describe_error(error))
            else:
                yield Outcome(job)


def tiny(name: str, **changes: Any) -> Selection:
    """One data set, one small backbone, one horizon, two epochs of a few windows."""
    data, backbone, horizon = PARTS[name]
    settings = {"epochs": 2}
    if find(name).task != "classification":  # which has no use for it
        settings["stride"] = 1000 if data.startswith("Synth") else 20
    parts = {
        "datasets": (data,),
        "backbones": (backbone,),
        "horizons": () if horizon is None else (horizon,),
        "sizes": ("small",),
        "seeds": (42,) if name.startswith("replication") else (),
        "settings": settings,
    }
    return Selection(**{**parts, **changes})


@dataclass(frozen=True)
class Carried:
    """An experiment that has been run."""

    experiment: Experiment
    folder: Path
    groups: list[JobGroup]
    plan: Plan
    tally: Tally
    findings: Findings


def carry_out(name: str, folder: Path, selection: Selection | None = None) -> Carried:
    """From the declaration to the findings."""
    experiment = find(name)
    selection = selection or tiny(name)
    groups = Grid(selection, folder).groups(points(experiment, selection))
    plan = make_plan(groups, folder)
    tally = run_plan(plan, InProcess(), folder, workers=1)
    findings = tabulate(experiment, collect(experiment, groups, folder))
    return Carried(experiment, folder, groups, plan, tally, findings)


def ili(seed: int = 1, *, strategies: tuple[str, ...] = ("raw", "sacm"), **changes: Any) -> Point:
    """A place in a grid that takes part of a second: iTransformer on ILI."""
    keys: dict[str, Key] = {"data": "ILI", "backbone": "iTransformer", "horizon": 24, "seed": seed}
    settings = {"task": "forecasting", **keys, "epochs": 2, "stride": 40}
    return Point(keys, {**settings, **changes}, strategies)


SMALL = Selection(sizes=("small",))


def groups_of(folder: Path, *places: Point) -> list[JobGroup]:
    """Their jobs, in the small size."""
    return Grid(SMALL, folder).groups(places)


def run_all(folder: Path, *places: Point, engine: Engine | None = None) -> Tally:
    """Run what is left of them."""
    plan = make_plan(groups_of(folder, *places), folder)
    return run_plan(plan, engine or InProcess(), folder, workers=1)


def results(folder: Path) -> dict[str, tuple[Any, str]]:
    """Test results of every finished run, and a digest of its weights."""
    return {
        path.parent.name: (read_json(path)["test"], digest(path.parent / "best.safetensors"))
        for path in folder.glob("*/metrics.json")
    }


def digest(path: Path) -> str:
    """SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()
