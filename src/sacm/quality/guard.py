"""Guard: what was learnt from training rows, ready to repair tables and windows."""

from __future__ import annotations

import json
from dataclasses import replace
from numbers import Integral, Real
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from sacm.errors import ArgumentError, SACMError
from sacm.quality.clock import Clock
from sacm.quality.kinds import CODE, GOOD, MISSING
from sacm.quality.progress import Tell, tell_nobody
from sacm.quality.reading import read_subject
from sacm.quality.series.detector import SeriesDetector
from sacm.quality.series.repair import SeriesRepairer
from sacm.quality.subject import Subject, check_columns
from sacm.quality.windows.fit import fit_window_guard
from sacm.quality.windows.module import WindowGuard

_FORMAT = 1
FEW_BROKEN = 0.05
"""Share of broken training values that limits of windows are learnt in spite of."""
_LARGEST = 1e15


class GuardFindings(NamedTuple):
    """Flags `[T, C]` (uint8), repaired values `[T, C]`, and the deviation to expect of them."""

    flags: np.ndarray
    values: np.ndarray
    uncertainty: np.ndarray

    def give_back(self, subject: Subject) -> Any:
        """The repaired rows in the form in which they came."""
        return subject.restore(self.values, self.flags != 0)


class Guard:
    """Finds broken values and repairs them, by what training rows look like.

    Args:
        sensitivity: 1 keeps false flags on healthy series below 1 %; larger values flag more.
        window: Steps of the windows that `module` repairs; None learns no window guard.

    Attributes:
        columns_: Names of the channels.
        n_features_in_: Number of channels.
        unjudged_: Channels that cannot be judged, by name, with the reason.

    Example:
        >>> import numpy as np
        >>> rows = np.sin(np.arange(600) / 4)[:, None] + np.random.default_rng(0).normal(
        ...     0, 0.05, (600, 1))
        >>> guard = Guard(window=None).fit(rows[:500])
        >>> broken = rows[500:].copy(); broken[40] = 9.0
        >>> bool(abs(guard.transform(broken)[40, 0]) < 2)
        True
    """

    def __init__(self, sensitivity: float = 1.0, window: int | None = 96) -> None:
        self.sensitivity = sensitivity
        self.window = window

    def __repr__(self) -> str:
        return f"Guard(sensitivity={self.sensitivity!r}, window={self.window!r})"

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The arguments this guard was made with, by name; `deep` is there for scikit-learn."""
        return {"sensitivity": self.sensitivity, "window": self.window}

    def set_params(self, **params: Any) -> Self:
        """Change arguments by name; they count from the next `fit` on."""
        for name, value in params.items():
            if name not in self.get_params():
                raise ArgumentError(f"Guard has no {name!r}: it has sensitivity and window.")
            setattr(self, name, value)
        return self

    def fit(self, data: Any, y: None = None) -> Self:
        """Learn from training rows, which may be broken in up to a third of their values.

        Args:
            data: A frame, array or tensor `[T, C]`, file, long table or data set; of a data set
                only the training part is used.
            y: Not used; there for scikit-learn.

        Raises:
            DataError: The rows cannot be read.
            ArgumentError: `sensitivity` or `window` is no positive number.
        """
        return self.fit_subject(read_subject(data))

    def fit_subject(self, subject: Subject) -> Self:
        """Learn from the training rows of a subject that was read before."""
        self._learn(subject, tell_nobody)
        return self

    def inspect(self, subject: Subject, tell: Tell = tell_nobody) -> GuardFindings:
        """Learn from the training rows of a subject, then judge all its rows.

        Args:
            subject: The rows.
            tell: Called with the name of each step of the work, and as channels are done.
        """
        flags = self._learn(subject, tell)
        # Training rows that are all rows have been judged already.
        return self.find(subject, tell=tell, flags=flags if subject.trains_on_all else None)

    def _learn(self, subject: Subject, tell: Tell) -> np.ndarray:
        """Learn from the training rows; gives back their flags."""
        _check_settings(self.sensitivity, self.window)
        values, pieces, starts = subject.training_rows()
        step = "learning what is usual"
        tell(step)
        self.detector_ = SeriesDetector(float(self.sensitivity)).fit(
            values, pieces, starts, progress=lambda share: tell(step, share / 2)
        )
        flags = self.detector_.detect(
            values, pieces, starts, progress=lambda share: tell(step, (1 + share) / 2)
        )
        tell("learning to repair")
        season = self.detector_.season
        self.repairer_ = SeriesRepairer().fit(values, flags, pieces, starts, season)
        self.columns_ = subject.columns
        self.n_features_in_ = len(subject.columns)
        self.unjudged_ = {
            subject.columns[channel]: reason for channel, reason in self.detector_.unjudged.items()
        }
        self.clock_ = Clock.of(subject)
        self.window_guard_ = None
        self.no_window_guard_ = _why_no_windows(values, pieces, self.window)
        if self.window is not None and not self.no_window_guard_:
            self.window_guard_ = self._learn_windows(values, flags, pieces, starts, self.window)
        return flags

    def _learn_windows(
        self,
        values: np.ndarray,
        flags: np.ndarray,
        pieces: list[range],
        starts: list[int],
        window: int,
    ) -> WindowGuard:
        """Learn what windows look like, from repaired rows where many are broken."""
        before = None
        broken = ~np.isin(flags, (GOOD, MISSING, CODE))
        if broken.mean() > FEW_BROKEN:
            before = values
            repaired = self.repairer_.repair(values, flags, pieces, starts).values
            values = np.where(broken, repaired, values)
        return fit_window_guard(
            values, window, sensitivity=self.sensitivity, pieces=pieces, before=before
        )

    def find(
        self,
        subject: Subject,
        *,
        causal: bool = False,
        tell: Tell = tell_nobody,
        flags: np.ndarray | None = None,
    ) -> GuardFindings:
        """Flags, repaired values and uncertainty of rows.

        Args:
            subject: The rows; pieces know the number of their first row.
            causal: Judge and repair every row by itself and earlier rows alone. Otherwise rows are
                judged by those around them, but never by rows of another split.
            tell: Called with the name of each step of the work, and as channels are done.
            flags: Flags `[T, C]` of the rows, if they are known already.
        """
        self._check_fitted()
        check_columns(subject, self.columns_)
        parts = (subject.pieces, subject.starts) if causal else subject.parts()
        step = "finding what is broken"
        tell(step)
        if flags is None:
            flags = self.detector_.detect(
                subject.values, *parts, causal=causal, progress=lambda share: tell(step, share)
            )
        tell("repairing")
        repair = self.repairer_.repair(subject.values, flags, *parts, causal=causal)
        return GuardFindings(flags, repair.values, repair.uncertainty)

    def transform(self, data: Any, *, start: int | None = None) -> Any:
        """Repair rows; nothing after a row changes it.

        Args:
            data: Rows with the channels of the fit, in any form that `fit` takes.
            start: Number of the first row, counted from the first training row; it sets the phase
                of the season. Default: found from the dates, or else the rows follow the training
                rows. Pass 0 for the training rows themselves, if they have no dates.

        Returns:
            The repaired rows, in the form in which they came. Healthy values are unchanged.

        Raises:
            ArgumentError: The guard is not fitted, or the channels are not those of the fit.
            DataError: The rows cannot be read.
        """
        self._check_fitted()
        if start is not None and (not isinstance(start, Integral) or isinstance(start, bool)):
            raise ArgumentError(f"start = {start!r}: pass the number of the first row.")
        return self._repair(read_subject(data), start)

    def fit_transform(self, data: Any, y: None = None) -> Any:
        """Learn from rows and repair these rows, causally."""
        subject = read_subject(data)
        return self.fit_subject(subject)._repair(subject, 0)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the channels that `transform` gives back, for scikit-learn."""
        self._check_fitted()
        return np.asarray(self.columns_, dtype=object)

    def module(self) -> WindowGuard:
        """The repair of windows `[B, window, C]` as a torch module.

        Raises:
            ArgumentError: No window guard was learnt; the sentence says why.
        """
        self._check_fitted()
        if self.window_guard_ is None:
            raise ArgumentError(f"this guard repairs no windows: {self.no_window_guard_}.")
        return self.window_guard_

    def save(self, path: str | Path) -> None:
        """Write everything that was learnt to one safetensors file, whole or not at all."""
        from sacm.files import write_weights

        self._check_fitted()
        refuse_folder(Path(path))
        record = {
            "format": _FORMAT,
            "sensitivity": self.sensitivity,
            "window": self.window,
            "columns": list(self.columns_),
            "clock": self.clock_.to_dict(),
            "unjudged": self.unjudged_,
            "detector": self.detector_.to_dict(),
            "repairer": self.repairer_.to_dict(),
            "no_window_guard": self.no_window_guard_,
            "window_guard": None if self.window_guard_ is None else self.window_guard_.config(),
        }
        tensors = {} if self.window_guard_ is None else self.window_guard_.state_dict()
        write_weights(Path(path), tensors, metadata={"guard": json.dumps(record)})

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a guard that `save` wrote.

        Raises:
            SACMError: The file is missing, damaged, or saved by another version.
        """
        from sacm.files import read_metadata, read_weights

        tensors = read_weights(Path(path))
        try:
            record = json.loads(read_metadata(Path(path))["guard"])
            newer = record["format"] > _FORMAT
        except (KeyError, TypeError, ValueError) as error:
            raise SACMError(f"{path} is no saved guard, or is damaged ({error}).") from None
        if newer:
            raise SACMError(f"{path} was written by a newer version of sacm: update sacm.")
        try:
            guard = cls(record["sensitivity"], record["window"])
            guard.detector_ = SeriesDetector.from_dict(record["detector"])
            guard.repairer_ = SeriesRepairer.from_dict(record["repairer"])
            guard.columns_ = tuple(record["columns"])
            guard.clock_, guard.unjudged_ = Clock.from_dict(record["clock"]), record["unjudged"]
            guard.no_window_guard_ = record["no_window_guard"]
            config = record["window_guard"]
            guard.window_guard_ = None if config is None else WindowGuard.load(config, tensors)
        except (KeyError, TypeError, ValueError, AttributeError, ArgumentError):
            raise other_version_error(path) from None
        guard.n_features_in_ = len(guard.columns_)
        return guard

    def _repair(self, subject: Subject, start: int | None) -> Any:
        """Rows of a subject, repaired causally."""
        if start is None:
            starts = self.clock_.number_rows(subject)
        else:
            starts = tuple(int(start) + own for own in subject.starts)
        return self.find(replace(subject, starts=starts), causal=True).give_back(subject)

    def _check_fitted(self) -> None:
        if not hasattr(self, "detector_"):
            raise ArgumentError("this Guard is not fitted: call fit with training rows first.")


def other_version_error(path: str | Path) -> SACMError:
    """The error for a file that is whole, but holds what this version does not understand."""
    return SACMError(
        f"{path} was saved by another version of sacm, which this one cannot read: fit the guard, "
        "or train the run, again."
    )


def refuse_folder(path: Path) -> None:
    """Refuse to write a file where a folder is."""
    if path.is_dir():
        raise ArgumentError(f"{path} is a folder: name a file in it.")


def _check_settings(sensitivity: Any, window: Any) -> None:
    """Refuse what is no positive number."""
    number = isinstance(sensitivity, Real) and not isinstance(sensitivity, bool)
    if not number or not 0 < sensitivity < float("inf"):
        raise ArgumentError(f"sensitivity must be a positive number, got {sensitivity!r}.")
    whole = isinstance(window, Integral) and not isinstance(window, bool)
    if window is not None and (not whole or window < 1):
        raise ArgumentError(f"window must be a number of steps or None, got {window!r}.")


def _why_no_windows(values: np.ndarray, pieces: list[range], window: int | None) -> str:
    """Why no guard of windows can be learnt from rows `[T, C]`; empty if one can."""
    if window is None:
        return "it was made with window=None"
    longest = max(map(len, pieces))
    if longest < 2 * window:
        return f"windows of {window} steps cannot be learnt from series of {longest} rows"
    if not np.isfinite(values).any(axis=0).all():
        return "a channel has no value at all"
    if np.nanmax(np.abs(values)) > _LARGEST:
        return f"windows hold float32, which values above {_LARGEST:g} are too large for"
    return ""
