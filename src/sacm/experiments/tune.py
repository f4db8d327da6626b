"""Search for good settings with Optuna; the best become a run like any other.

Trials see training and validation rows only: the data they get have no test part. Trials are runs
in a folder of the search, and the sampler is seeded: a search that was killed tries the same
settings again, takes what its finished runs say, and goes on with the one that was interrupted.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sacm.data.datasets import (
    AnomalyData,
    AnyData,
    ClassificationData,
    Segment,
    Splits,
    TelemetrySegment,
    fingerprint,
)
from sacm.errors import ArgumentError, SACMError
from sacm.settings import ResolvedSettings, RunSettings
from sacm.tasks import get_task
from sacm.training import Hardware, Run, train

TUNED = ("learning_rate", "size", "batch_size", "input_len", "strategy")
_INPUTS = (24, 48, 96, 192, 336)
_BATCHES = (16, 32, 64, 128)
_LEARNING_RATES = (1e-5, 1e-2)
_STARTUP_TRIALS = 5  # drawn at random before the sampler learns from them
OnTrial = Callable[[int, dict[str, Any]], None]


@dataclass(frozen=True)
class Tuned:
    """The run with the best settings, what was chosen, how every trial went, and their folder."""

    run: Run
    chosen: dict[str, Any]
    value: float
    trials: list[dict[str, Any]]
    folder: Path


def tune(
    settings: RunSettings,
    data: AnyData,
    *,
    trials: int = 30,
    strategies: Sequence[str] = ("raw", "sacm"),
    fixed: Collection[str] = (),
    folder: Path = Path("runs"),
    hardware: Hardware | None = None,
    on_trial: OnTrial | None = None,
) -> Tuned:
    """Search settings, then train the best on all training rows and test it.

    Args:
        settings: What all trials share.
        data: The data, with their test part, which only the last run sees.
        trials: How many settings are tried, those of earlier calls included.
        strategies: The strategies among which is chosen.
        fixed: Names of `TUNED` that are not searched.
        folder: Where runs are kept; trials go to `tuning` in it.
        hardware: Where to train.
        on_trial: Called with number and settings before each trial.

    Returns:
        The run of the best settings.

    Raises:
        ArgumentError: Optuna is missing.
        SACMError: No trial succeeded.
    """
    optuna = _import_optuna()
    hardware = hardware or Hardware(show_progress=False)
    seen = without_test(data)
    base = get_task(settings.task).resolve(settings, data)
    choices = _choices(base, seen, strategies, fixed)
    trials_folder = folder / "tuning" / _study_name(base, strategies, fixed, fingerprint(data))
    trials_folder.mkdir(parents=True, exist_ok=True)
    column = f"val_{base.select}"
    study = optuna.create_study(
        direction="maximize" if base.select == "accuracy" else "minimize",
        sampler=optuna.samplers.TPESampler(seed=base.seed, n_startup_trials=_STARTUP_TRIALS),
        pruner=optuna.pruners.MedianPruner(n_startup_trials=_STARTUP_TRIALS - 1, n_warmup_steps=1),
    )

    def train_trial(trial: Any) -> float:
        chosen = {}
        if "learning_rate" not in fixed:
            limits = _LEARNING_RATES
            chosen["learning_rate"] = trial.suggest_float("learning_rate", *limits, log=True)
        for name, values in choices.items():
            chosen[name] = trial.suggest_categorical(name, values)
        if on_trial is not None:
            on_trial(trial.number, chosen)

        def report(epoch: int, value: float) -> None:
            reported.append(epoch)
            trial.report(value, epoch)
            if trial.should_prune():
                raise optuna.TrialPruned

        reported: list[int] = []
        settings = base.model_copy(update=chosen)
        run = train(settings, folder=trials_folder, hardware=hardware, data=seen, on_epoch=report)
        if not reported:  # finished before: later trials are compared with its epochs all the same
            for row in run.history:
                trial.report(float(row[column]), int(row["epoch"]))
        return float(run.metrics[f"best_{column}"])

    study.optimize(train_trial, n_trials=trials, catch=(SACMError,))
    if not any(trial.state.name == "COMPLETE" for trial in study.trials):
        raise SACMError("no trial succeeded: see what stops a single training with `sacm train`.")
    chosen = dict(study.best_trial.params)
    run = train(base.model_copy(update=chosen), folder=folder, hardware=hardware, data=data)
    records = [
        {"number": t.number, "state": t.state.name.lower(), "value": t.value, **t.params}
        for t in study.trials
    ]
    return Tuned(run, chosen, float(study.best_value), records, trials_folder)


def _choices(
    base: ResolvedSettings, data: AnyData, strategies: Sequence[str], fixed: Collection[str]
) -> dict[str, list[Any]]:
    """What is searched besides the learning rate; what the user fixed is left out."""
    lengths = input_lengths(base, data)
    choices: dict[str, list[Any]] = {
        "size": ["small", "paper"],
        "batch_size": list(_BATCHES),
        "input_len": lengths if len(lengths) > 1 else [],
    }
    named = {name: values for name, values in choices.items() if values and name not in fixed}
    return {**named, "strategy": list(strategies)} if strategies else named


def input_lengths(base: ResolvedSettings, data: AnyData) -> list[int]:
    """Window lengths that leave at least as many validation windows as they have steps."""
    if isinstance(data, ClassificationData):
        return [base.input_len]
    rows = len(data.train) // 5 if isinstance(data, AnomalyData) else len(data.splits.val)
    fit = {length for length in _INPUTS if 2 * length + base.horizon <= rows}
    return sorted(fit | {base.input_len})


def best_first(trials: Sequence[dict[str, Any]], *, maximise: bool) -> list[dict[str, Any]]:
    """Complete trials, the best first."""
    done = [each for each in trials if each["state"] == "complete"]
    return sorted(done, key=lambda each: each["value"], reverse=maximise)


def without_test(data: AnyData) -> AnyData:
    """The same data as if their test part did not exist."""
    if isinstance(data, ClassificationData):
        subjects = None if data.subjects_test is None else data.subjects_test[:0]
        return replace(
            data,
            X_test=data.X_test[:0],
            y_test=data.y_test[:0],
            lengths_test=data.lengths_test[:0],
            subjects_test=subjects,
        )
    if isinstance(data, AnomalyData):
        segments = tuple(TelemetrySegment(s.name, s.train, range(0)) for s in data.segments)
        return replace(data, test=data.test[:0], labels=data.labels[:0], segments=segments)
    if not len(data.splits.test):
        return data
    stop = data.splits.test.start
    series = [Segment(s.name, s.start, min(s.stop, stop)) for s in data.segments if s.start < stop]
    arrays: dict[str, Any] = {
        name: None if getattr(data, name) is None else getattr(data, name)[:stop]
        for name in ("values", "timestamps", "targets", "observed")
    }
    splits = Splits(data.splits.train, data.splits.val, range(stop, stop))
    return replace(data, splits=splits, segments=tuple(series), **arrays)


def _import_optuna() -> Any:
    """Optuna, silent, or a sentence on how to get it."""
    try:
        import optuna
    except ImportError:
        raise ArgumentError("tuning needs Optuna: pip install 'sacm[tune]'.") from None
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna


def _study_name(
    base: ResolvedSettings, strategies: Sequence[str], fixed: Collection[str], mark: str
) -> str:
    """One name for one search: the same settings, data and choices continue it."""
    text = json.dumps([base.identity(), [sorted(strategies), sorted(fixed)], mark], sort_keys=True)
    digest = hashlib.sha256(text.encode()).hexdigest()[:10]
    return f"{base.run_id(mark).rpartition('_')[0]}_{digest}"
