"""Forecasting, classification and anomaly detection: what a batch means, loss, selection, test."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sacm.data.corrupt import parse_contamination
from sacm.data.load import names_file
from sacm.errors import ArgumentError
from sacm.settings import AUTO, RunSettings, option_name
from sacm.strategies.registry import canonical, parse, parts_of
from sacm.tasks.anomaly import Anomaly
from sacm.tasks.base import Result, Task
from sacm.tasks.classification import Classification
from sacm.tasks.forecasting import Forecasting

TASKS: dict[str, Task[Any]] = {
    task.name: task for task in (Forecasting(), Classification(), Anomaly())
}

# Where candidates compete: seconds, and repaired rows against rows as they came.
TIME_LIMIT, CANDIDATE_STRATEGY = 60.0, "race(guard,raw)"
# Settings that only networks have: who names one of them does not want candidates. Most
# candidates know no covariates.
_OF_A_NETWORK = (
    *("size", "epochs", "patience", "learning_rate", "weight_decay", "gradient_clip", "batch_size"),
    *("stride", "validation_stride", "select", "train_fraction", "contamination", "watch"),
    *("precision", "compile", "overrides", "past", "future"),
)

__all__ = ["Result", "get_task", "let_compete", "make_settings"]


def get_task(name: str) -> Task[Any]:
    """A task by its name."""
    if name not in TASKS:
        raise ArgumentError(f"unknown task {name!r}: choose one of {', '.join(TASKS)}.")
    return TASKS[name]


def make_settings(**values: Any) -> RunSettings:
    """Make settings from fields of `RunSettings`, with usual spellings, and check them.

    An `ArgumentError` says which value cannot be used, and what to do.

    Example:
        >>> make_settings(task="anomaly", data="MSL").backbone
        'TranAD'
    """
    task = get_task(str(values.get("task")))
    settings = RunSettings.of(values)
    task.check(settings)
    names = {
        "backbone": task.find_backbone(settings),
        "strategy": canonical(settings.strategy or task.default_strategy),
    }
    if settings.contamination:
        kind, ratio = parse_contamination(settings.contamination)
        names["contamination"] = f"{kind}({ratio:g})"
    return settings.model_copy(update=names)


def let_compete(values: Mapping[str, Any]) -> dict[str, Any]:
    """Let candidates compete where a user's own series is forecast and no network is described.

    They do with the backbone `auto`, a time limit and a race of strategies. Fields of `RunSettings`
    at their defaults count as not asked for. Settings of a network beside a time limit, without a
    network, are an `ArgumentError`.

    Example:
        >>> let_compete({"task": "forecasting", "data": "my.csv"})["backbone"]
        'auto'
    """
    fields, values = RunSettings.model_fields, dict(values)
    asked = {k: v for k, v in values.items() if k in fields and v != fields[k].default}
    own_series = asked.get("task") == "forecasting" and names_file(str(asked.get("data", "")))
    if not own_series or asked.get("backbone", AUTO) != AUTO:
        return values
    described = [name for name in _OF_A_NETWORK if name in asked]
    strategy = parse(asked.get("strategy", Forecasting.default_strategy))
    if any(part.name not in ("raw", "guard") for part in parts_of(strategy)):
        described.append("strategy")
    if not described:
        chosen = {"backbone": AUTO, "time_limit": TIME_LIMIT, "strategy": CANDIDATE_STRATEGY}
        return {**values, **{k: asked.get(k, default) for k, default in chosen.items()}}
    if "backbone" in asked or "time_limit" in asked:
        options = ", ".join(map(option_name, described))
        raise ArgumentError(
            f"{options}: only networks take this, not all candidates that compete within a time "
            "limit: leave it out, or name a network with backbone= (--backbone)."
        )
    return values
