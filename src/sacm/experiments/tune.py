"""Search for good settings with Optuna; what is found becomes a run like any other.

Trials see training and validation rows only: the data they get have no test part. Every trial is
recorded in one file, so that a search that was killed goes on where it stopped. Trials run in this
process, or by an engine, as the runs of a grid do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sacm.data.datasets import AnomalyData, AnyData, ClassificationData
from sacm.data.fingerprint import fingerprint
from sacm.errors import SACMError
from sacm.experiments.engines import Engine, Outcome
from sacm.experiments.study import (
    Search,
    adopt_killed,
    count_done,
    import_optuna,
    open_study,
    study_name,
)
from sacm.experiments.trial_job import PRUNED, TrialJob, report_to, without_test
from sacm.settings import ResolvedSettings, RunSettings
from sacm.tasks import get_task
from sacm.training import Hardware, Run, train

if TYPE_CHECKING:
    import optuna

TUNED = ("learning_rate", "size", "batch_size", "input_len", "strategy")
TRIAL_FILE = "trials.log"
_INPUTS = (24, 48, 96, 192, 336)
OnTrial = Callable[[int, dict[str, Any]], None]


@dataclass(frozen=True)
class Tuned:
    """The run with the best settings, what was chosen, and how every trial went."""

    run: Run
    chosen: dict[str, Any]
    value: float
    trials: list[dict[str, Any]]
    record: Path


def tune(
    settings: RunSettings,
    data: AnyData,
    search: Search,
    *,
    folder: Path = Path("runs"),
    hardware: Hardware | None = None,
    engine: Engine | None = None,
    on_trial: OnTrial | None = None,
) -> Tuned:
    """Search settings, then train the best on all training rows and test it.

    Args:
        settings: What all trials share.
        data: The data, with their test part, which only the last run sees.
        search: What is searched.
        folder: Where runs are kept; trials go to `tuning` in it.
        hardware: Where to train.
        engine: Runs trials elsewhere, `search.workers` at once; `settings.data` must then name
            the data. Default: one after the other in this process.
        on_trial: Called with number and settings before each trial.

    Returns:
        The run of the best settings.

    Raises:
        ArgumentError: Optuna is missing, or a name is unknown.
        SACMError: No trial succeeded.
    """
    optuna = import_optuna()
    hardware = hardware or Hardware(show_progress=False)
    seen = without_test(data)
    base = get_task(settings.task).resolve(settings, data)
    place = folder / "tuning" / study_name(base, search, fingerprint(data))
    place.mkdir(parents=True, exist_ok=True)
    record = place / TRIAL_FILE
    study = open_study(base, search, record)
    adopt_killed(study)

    searching = _Searching(study, base, search, seen, place, hardware, on_trial)
    left = search.trials - count_done(study)
    if left > 0 and engine is None:
        study.optimize(searching.run_here, n_trials=left, catch=(SACMError,))
    elif left > 0 and engine is not None:
        searching.run_by(engine, left)
    done = [t for t in study.trials if t.state == optuna.trial.TrialState.COMPLETE]
    if not done:
        raise SACMError("no trial succeeded: see what stops a single training with `sacm train`.")
    best = study.best_trial
    chosen = {name: best.params[name] for name in best.params}
    run = train(base.model_copy(update=chosen), folder=folder, hardware=hardware, data=data)
    return Tuned(run, chosen, float(study.best_value), summarise_trials(study), record)


@dataclass(frozen=True)
class _Searching:
    """A search under way."""

    study: optuna.Study
    base: ResolvedSettings
    search: Search
    data: AnyData
    place: Path
    hardware: Hardware
    on_trial: OnTrial | None

    def run_here(self, trial: Any) -> float:
        """Train one trial in this process; its validation."""
        run = train(
            self._choose(trial),
            folder=self.place,
            hardware=self.hardware,
            data=self.data,
            on_epoch=report_to(trial),
        )
        return self._value(run)

    def run_by(self, engine: Engine, count: int) -> None:
        """Let an engine train so many trials; each is drawn when a worker is free."""
        for outcome in engine.run(self._jobs(count), self.place):
            self._tell(outcome)

    def _jobs(self, count: int) -> Iterator[TrialJob]:
        mark = fingerprint(self.data)
        for _ in range(count):
            trial = self.study.ask()
            settings = self._choose(trial)
            yield TrialJob(
                settings,
                settings.run_id(mark),
                base=self.base,
                search=self.search,
                record=(self.place / TRIAL_FILE).absolute(),
                trial=trial._trial_id,
                number=trial.number,
            )

    def _tell(self, outcome: Outcome) -> None:
        states = import_optuna().trial.TrialState
        job = outcome.job
        assert isinstance(job, TrialJob)
        if outcome.reason is None:
            self.study.tell(job.number, self._value(Run(self.place / job.run_id)))
        else:
            pruned = outcome.reason.startswith(PRUNED)
            self.study.tell(job.number, state=states.PRUNED if pruned else states.FAIL)

    def _choose(self, trial: Any) -> ResolvedSettings:
        """The settings of a trial, which is announced."""
        chosen = suggest(trial, self.base, self.search, self.data)
        if self.on_trial is not None:
            self.on_trial(trial.number, chosen)
        return self.base.model_copy(update=chosen)

    def _value(self, run: Run) -> float:
        return float(run.metrics[f"best_val_{self.base.select}"])


def suggest(
    trial: optuna.Trial, base: ResolvedSettings, search: Search, data: AnyData
) -> dict[str, Any]:
    """Settings of one trial; what the user fixed is left out."""
    chosen: dict[str, Any] = {}
    if "learning_rate" not in search.fixed:
        chosen["learning_rate"] = trial.suggest_float("learning_rate", 1e-5, 1e-2, log=True)
    if "size" not in search.fixed:
        chosen["size"] = trial.suggest_categorical("size", ["small", "paper"])
    if "batch_size" not in search.fixed:
        chosen["batch_size"] = trial.suggest_categorical("batch_size", [16, 32, 64, 128])
    lengths = input_lengths(base, data)
    if "input_len" not in search.fixed and len(lengths) > 1:
        chosen["input_len"] = trial.suggest_categorical("input_len", lengths)
    if len(search.strategies) > 1:
        chosen["strategy"] = trial.suggest_categorical("strategy", list(search.strategies))
    elif search.strategies:
        chosen["strategy"] = search.strategies[0]
    return chosen


def input_lengths(base: ResolvedSettings, data: AnyData) -> list[int]:
    """Window lengths that leave at least as many validation windows as they have steps."""
    if isinstance(data, ClassificationData):
        return [base.input_len]
    rows = len(data.train) // 5 if isinstance(data, AnomalyData) else len(data.splits.val)
    fit = {length for length in _INPUTS if 2 * length + base.horizon <= rows}
    return sorted(fit | {base.input_len})


def summarise_trials(study: optuna.Study) -> list[dict[str, Any]]:
    """Number, state, value and settings of every trial."""
    return [
        {"number": t.number, "state": t.state.name.lower(), "value": t.value, **t.params}
        for t in study.trials
    ]


def best_first(trials: Sequence[dict[str, Any]], *, maximise: bool) -> list[dict[str, Any]]:
    """Complete trials, the best first."""
    done = [each for each in trials if each["state"] == "complete"]
    return sorted(done, key=lambda each: each["value"], reverse=maximise)
