"""The record of a search for settings: an Optuna study in one file, shared by all processes."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sacm.errors import ArgumentError
from sacm.settings import ResolvedSettings

if TYPE_CHECKING:
    import optuna

SAMPLERS, PRUNERS = ("tpe", "random", "cmaes"), ("median", "hyperband", "none")


@dataclass(frozen=True)
class Search:
    """What is searched, and how.

    Attributes:
        trials: How many settings are tried, those of earlier calls included.
        strategies: The strategies among which is chosen.
        fixed: Settings that are not searched because the user named them.
        sampler: "tpe", "random" or "cmaes".
        pruner: "median" or "hyperband" stop bad trials early; "none" does not.
        workers: Trials at once; what they will say is not known when the next is drawn.
    """

    trials: int = 30
    strategies: tuple[str, ...] = ("raw", "sacm")
    fixed: tuple[str, ...] = ()
    sampler: str = "tpe"
    pruner: str = "median"
    workers: int = 1


def import_optuna() -> Any:
    """Optuna, silent, or a sentence on how to get it."""
    try:
        import optuna
    except ImportError:
        raise ArgumentError("tuning needs Optuna: pip install 'sacm[tune]'.") from None
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna


def study_name(base: ResolvedSettings, search: Search, mark: str) -> str:
    """One name for one search: the same settings, data and choices continue it."""
    choices = [sorted(search.strategies), sorted(search.fixed), search.sampler, search.pruner]
    text = json.dumps([base.identity(), choices, mark], sort_keys=True)
    return (
        f"{base.run_id(mark).rpartition('_')[0]}_{hashlib.sha256(text.encode()).hexdigest()[:10]}"
    )


def open_study(base: ResolvedSettings, search: Search, record: Path) -> optuna.Study:
    """The study in a file, new or as it was left."""
    optuna = import_optuna()
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend

    for name, known in (("sampler", SAMPLERS), ("pruner", PRUNERS)):
        if getattr(search, name) not in known:
            raise ArgumentError(f"unknown {name}: choose one of {', '.join(known)}.")
    lock: Any = _RecordLock(record)
    storage = JournalStorage(JournalFileBackend(str(record), lock_obj=lock))
    direction = "maximize" if base.select == "accuracy" else "minimize"
    study = optuna.create_study(
        study_name="sacm", storage=storage, load_if_exists=True, direction=direction
    )
    # A continued search must not draw again what it has drawn.
    seed = base.seed + len(study.trials)
    study.sampler = {
        "tpe": lambda: optuna.samplers.TPESampler(
            seed=seed, n_startup_trials=5, constant_liar=search.workers > 1
        ),
        "random": lambda: optuna.samplers.RandomSampler(seed=seed),
        "cmaes": lambda: optuna.samplers.CmaEsSampler(seed=seed),
    }[search.sampler]()
    study.pruner = {
        "median": lambda: optuna.pruners.MedianPruner(n_startup_trials=4, n_warmup_steps=1),
        "hyperband": lambda: optuna.pruners.HyperbandPruner(max_resource=base.epochs),
        "none": optuna.pruners.NopPruner,
    }[search.pruner]()
    return study


class _RecordLock:
    """A lock that the system releases when its process is killed; Optuna's own stays behind."""

    def __init__(self, record: Path) -> None:
        from filelock import FileLock

        self._lock = FileLock(record.with_suffix(".lock"))

    def acquire(self) -> bool:
        """Wait for the lock."""
        self._lock.acquire()
        return True

    def release(self) -> None:
        """Give it back."""
        self._lock.release()


def adopt_killed(study: optuna.Study) -> None:
    """Queue the settings of trials that were killed; their runs continue from the last epoch."""
    from optuna.trial import TrialState

    for trial in study.trials:
        if trial.state == TrialState.RUNNING:
            study.tell(trial.number, state=TrialState.FAIL)
            if trial.params:
                study.enqueue_trial(trial.params, user_attrs={"continues": trial.number})


def count_done(study: optuna.Study) -> int:
    """Trials that came to an end of their own, good or bad; a killed one will run again."""
    from optuna.trial import TrialState

    continued = {t.user_attrs["continues"] for t in study.trials if "continues" in t.user_attrs}
    ends = (TrialState.COMPLETE, TrialState.PRUNED, TrialState.FAIL)
    killed = (t.state == TrialState.FAIL and not t.params for t in study.trials)
    own = [t for t in study.trials if t.state in ends and t.number not in continued]
    return len(own) - sum(killed)
