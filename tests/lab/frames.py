"""Frames of runs that were never made, with chosen results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd

from sacm.tasks import get_task
from sacm_lab.experiment import Experiment
from sacm_lab.runs import tidy

Value = Callable[[dict[str, Any], str], float | None]  # keys and metric to a result


def make_frame(
    experiment: Experiment, value: Value, *, seeds: tuple[int, ...] = ()
) -> pd.DataFrame:
    """Every run of an experiment; what has no result in any metric is left out."""
    rows: dict[str, dict[str, Any]] = {}
    places = [
        (data, backbone, horizon, seed, varied, target, row)
        for data in experiment.datasets
        for backbone in experiment.backbones
        for horizon in experiment.horizons_of(data)
        for seed in seeds or experiment.seeds
        for varied in experiment.varied()
        for target in experiment.targets.get(data, (None,))
        for row in (*experiment.strategies, *experiment.references)
    ]
    for data, backbone, horizon, seed, varied, target, row in places:
        settings = {**experiment.fixed, **experiment.by_data.get(data, {}), **varied}
        settings |= {"strategy": row, **experiment.references.get(row, {})}
        keys = {"data": data, "backbone": backbone, "size": "paper", "horizon": horizon or 0}
        keys |= {"seed": seed, "strategy": row, **varied} | ({"target": target} if target else {})
        own = experiment.own_checks.get(row, experiment.checks)
        place = f"@{target}" if target else f"@{own[0]}" if own else ""
        found = {f"{name}{place}": value(keys, name) for name in experiment.metrics}
        results = {name: each for name, each in found.items() if each is not None}
        if not results:
            continue
        if "train_seconds" in results:
            results["seconds"] = results.pop("train_seconds")
        settings["epoch_limit"] = settings.pop("epochs", 100)
        start = {"task": experiment.task, "select": get_task(experiment.task).selections[0]}
        line = {**start, **keys, **settings}
        line.pop("target", None)
        name = "_".join(str(each) for each in line.values())
        common = {"run": name, "state": "done", "epochs": 10, "seconds": 5.0}
        more = {"seconds_per_epoch": 0.5, "validation": 1.0, "early_validation": 1.0}
        rows.setdefault(name, {**common, **line, **more}).update(results)
    return tidy(list(rows.values()))
