"""Search for good settings with Optuna; the best become a run like any other.

Trials get data without a test part. They are runs in a folder of the search, and the sampler is
seeded: a search that was killed tries the same settings again and reuses its finished runs.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sacm.data.datasets import AnomalyData, AnyData, ClassificationData, fingerprint
from sacm.errors import ArgumentError, RunError, SACMError
from sacm.settings import ResolvedSettings, RunSettings
from sacm.tasks import get_task
from sacm.training import Hardware, Run, train

TUNED = ("learning_rate", "size", "batch_size", "input_len", "strategy")
_SIZES = ("small", "paper")
_INPUTS = (24, 48, 96, 192, 336)
_BATCHES = (16, 32, 64, 128)
_LEARNING_RATES = (1e-5, 1e-2)
_TEST_CASES = ("X_test", "y_test", "lengths_test", "subjects_test")
_STARTUP_TRIALS = 5  # drawn at random before the sampler learns from them


@dataclass(frozen=True)
class Tuned:
    """The best run, what was chosen, all trials (the best first), and their folder."""

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
    on_trial: Callable[[int, dict[str, Any]], None] | None = None,
) -> Tuned:
    """Search settings, then train the best and test it; a `RunError` if no trial succeeded.

    Args:
        settings: What all trials share.
        data: The data, with their test part, which only the last run sees.
        trials: How many settings are tried, those of earlier calls included.
        strategies: The strategies among which is chosen.
        fixed: Names of `TUNED` that are not searched.
        folder: Where runs are kept; trials go to `tuning` in it.
        hardware: Where to train.
        on_trial: Called with number and settings before each trial.
    """
    try:
        import optuna
    except ImportError:
        raise ArgumentError("tuning needs Optuna: pip install 'sacm[tune]'.") from None
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    hardware = replace(hardware or Hardware(), show_progress=False)
    seen = without_test(data)
    base = get_task(settings.task).resolve(settings, data)
    every = {"size": _SIZES, "batch_size": _BATCHES, "input_len": input_lengths(base, seen)}
    choices = {name: values for name, values in every.items() if name not in fixed}
    choices["strategy"] = strategies
    # One folder for one search: the same settings, data and choices continue it.
    search = [base.identity(), [sorted(strategies), sorted(fixed)], fingerprint(data)]
    digest = hashlib.sha256(json.dumps(search, sort_keys=True).encode()).hexdigest()[:10]
    trials_folder = folder / "tuning" / f"{base.run_id('').rpartition('_')[0]}_{digest}"
    trials_folder.mkdir(parents=True, exist_ok=True)
    column, highest = f"val_{base.select}", base.select == "accuracy"
    study = optuna.create_study(
        direction="maximize" if highest else "minimize",
        sampler=optuna.samplers.TPESampler(seed=base.seed, n_startup_trials=_STARTUP_TRIALS),
        pruner=optuna.pruners.MedianPruner(n_startup_trials=_STARTUP_TRIALS - 1, n_warmup_steps=1),
    )

    def train_trial(trial: Any) -> float:
        if "learning_rate" not in fixed:
            trial.suggest_float("learning_rate", *_LEARNING_RATES, log=True)
        for name, values in choices.items():
            if len(values) > 1 or name == "strategy":
                trial.suggest_categorical(name, values)
        chosen = dict(trial.params)
        if on_trial is not None:
            on_trial(trial.number + 1, chosen)
        reported: list[int] = []

        def report(epoch: int, value: float) -> None:
            reported.append(epoch)
            trial.report(value, epoch)
            if trial.should_prune():
                raise optuna.TrialPruned

        settings = base.model_copy(update=chosen)
        run = train(settings, folder=trials_folder, hardware=hardware, data=seen, on_epoch=report)
        if not reported:  # finished before: later trials are compared with its epochs all the same
            for row in run.history:
                trial.report(float(row[column]), int(row["epoch"]))
        return float(run.metrics[f"best_{column}"])

    study.optimize(train_trial, n_trials=trials, catch=(SACMError,))
    records = [
        {"number": t.number + 1, "state": t.state.name.lower(), "value": t.value, **t.params}
        for t in study.trials
    ]
    sign = -1 if highest else 1
    records.sort(key=lambda each: (each["state"] != "complete", sign * (each["value"] or 0)))
    if records[0]["state"] != "complete":
        raise RunError("no trial succeeded: see what stops a single training with `sacm train`.")
    chosen = dict(study.best_trial.params)
    run = train(base.model_copy(update=chosen), folder=folder, hardware=hardware, data=data)
    return Tuned(run, chosen, float(study.best_value), records, trials_folder)


def input_lengths(base: ResolvedSettings, data: AnyData) -> list[int]:
    """Window lengths that leave at least as many validation windows as they have steps."""
    if isinstance(data, ClassificationData):
        return [base.input_len]
    rows = len(data.train) // 5 if isinstance(data, AnomalyData) else len(data.splits.val)
    fit = {length for length in _INPUTS if 2 * length + base.horizon <= rows}
    return sorted(fit | {base.input_len})


def without_test(data: AnyData) -> AnyData:
    """The same data without a test part."""
    if isinstance(data, ClassificationData):
        arrays = {name: getattr(data, name) for name in _TEST_CASES}
        empty: Any = {name: None if a is None else a[:0] for name, a in arrays.items()}
        return replace(data, **empty)
    if isinstance(data, AnomalyData):
        segments = tuple(segment._replace(test=range(0)) for segment in data.segments)
        return replace(data, test=data.test[:0], labels=data.labels[:0], segments=segments)
    stop = data.splits.test.start
    return replace(data, splits=replace(data.splits, test=range(stop, stop)))
