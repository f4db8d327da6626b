"""Repair what is broken in a series of several channels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from sacm.errors import ArgumentError
from sacm.quality.kinds import CLIPPED
from sacm.quality.series.arrays import Bools, Flags, Floats, find_stretches
from sacm.quality.series.choice import Choice, choose_methods
from sacm.quality.series.limits import robust_scale
from sacm.quality.series.methods import BaseMethod, SeriesPart, fill_line, fit_base_method
from sacm.quality.series.pieces import check_flags, check_pieces, check_table
from sacm.quality.series.season import find_season
from sacm.quality.series.state import from_plain, to_plain

_FIT_ROWS = 8_000
_FIT_CYCLES = 12
_SHORTEST_PIECE = 24


class Repair(NamedTuple):
    """Repaired values `[T, C]` and the deviation to expect of each, 0 where nothing changed."""

    values: Floats
    uncertainty: Floats


class SeriesRepairer:
    """Learns how each channel is best repaired, then fills what is flagged.

    A gap is filled by a line, or by the channel's season or median with a bridge from the gap's
    edges, alone or with the help of other channels. Which of these is found for each channel and
    length of gap by hiding good values.

    Attributes:
        season: Rows of one cycle of the common season; 0 if there is none.

    Example:
        >>> from sacm.quality.series.detector import SeriesDetector
        >>> values = np.random.default_rng(0).normal(size=(1000, 2))
        >>> flags = SeriesDetector().fit(values).detect(values)
        >>> repaired, uncertainty = SeriesRepairer().fit(values, flags).repair(values, flags)
        >>> repaired.shape
        (1000, 2)
    """

    def __init__(self) -> None:
        self.season = 0
        self._scales: list[float] = []
        self._methods: list[BaseMethod] = []
        self._choices: list[Choice] = []
        self._causal_choices: list[Choice] = []
        self._empty: list[bool] = []

    def fit(
        self,
        values: Any,
        flags: Any,
        pieces: Sequence[range] | None = None,
        start: int | Sequence[int] = 0,
        period: int | None = None,
    ) -> SeriesRepairer:
        """Learn from training rows.

        Args:
            values: Training rows `[T, C]`.
            flags: Flags `[T, C]` of the training rows; what is flagged is not learnt from.
            pieces: Ranges of rows that are series of their own; together they cover all rows.
            start: Row number of the first row (of each piece), which sets the season's phase.
            period: Rows of one cycle if it is known (a detector's `season`), 0 for no season;
                searched for if it is not given.

        Returns:
            This repairer.

        Raises:
            DataError: If the values are no table of numbers.
            ArgumentError: If flags or pieces do not fit the values.
        """
        table = check_table(values)
        good = (check_flags(flags, table.shape) == 0) & np.isfinite(table)
        spans = check_pieces(pieces, start, len(table))
        if period is None:
            longest = max((rows for rows, _ in spans), key=lambda rows: rows.stop - rows.start)
            period = find_season(table[longest], good[longest]).period
        self.season = period
        known = [table[good[:, c], c] for c in range(table.shape[1])]
        self._empty = [not len(one) for one in known]
        self._scales = [robust_scale(one) if len(one) else 0.0 for one in known]
        parts = _choose_parts(np.where(good, table, 0.0), good, spans, self.season)
        periods = (0, self.season) if self.season else (0,)
        self._methods = [fit_base_method(parts, period) for period in periods]
        scales = np.array(self._scales)
        self._choices = choose_methods(parts, lambda part: self._fill_all(part, False), scales)
        self._causal_choices = choose_methods(
            parts, lambda part: self._fill_all(part, True), scales
        )
        return self

    def repair(
        self,
        values: Any,
        flags: Any,
        pieces: Sequence[range] | None = None,
        start: int | Sequence[int] = 0,
        *,
        causal: bool = False,
    ) -> Repair:
        """Fill what is flagged or missing; every other value stays exactly as it is.

        Args:
            values: Rows `[T, C]` with the channels of the fit.
            flags: Flags `[T, C]`; 0 for healthy values.
            pieces: Ranges of rows that are series of their own; together they cover all rows.
            start: Row number of the first row (of each piece), counted as in the fit.
            causal: Fill each row from itself and earlier rows alone.

        Returns:
            Repaired values and the deviation to expect of each, in units of the data. A channel
            without any usable training value is filled with 0 and has infinite uncertainty.

        Raises:
            ArgumentError: If the repairer is not fitted or shapes differ.
        """
        table = check_table(values)
        self._check_fitted(table)
        marks = check_flags(flags, table.shape)
        good = (marks == 0) & np.isfinite(table)
        result, uncertainty = table.copy(), np.zeros(table.shape)
        for rows, number in check_pieces(pieces, start, len(table)):
            part = (np.where(good[rows], table[rows], 0.0), good[rows], number)
            filled, unsure = self._fill_chosen(part, causal)
            result[rows] = np.where(good[rows], table[rows], filled)
            uncertainty[rows] = unsure
        _respect_limits(result, table, marks, self._centres())
        return Repair(result, uncertainty)

    def to_dict(self) -> dict[str, Any]:
        """Everything that was learnt, as plain JSON values."""
        return {
            "season": self.season,
            "scales": to_plain(self._scales),
            "empty": self._empty,
            "methods": to_plain(self._methods),
            "choices": to_plain(self._choices),
            "causal_choices": to_plain(self._causal_choices),
        }

    @classmethod
    def from_dict(cls, state: dict[str, Any]) -> SeriesRepairer:
        """The repairer that `to_dict` described."""
        repairer = cls()
        repairer.season = state["season"]
        repairer._scales = [float(each) for each in state["scales"]]
        repairer._empty = list(state["empty"])
        repairer._methods = [from_plain(BaseMethod, each) for each in state["methods"]]
        repairer._choices = [from_plain(Choice, each) for each in state["choices"]]
        repairer._causal_choices = [from_plain(Choice, each) for each in state["causal_choices"]]
        return repairer

    def _centres(self) -> list[float]:
        return [base.centre for base in self._methods[0].bases]

    def _check_fitted(self, table: Floats) -> None:
        if not self._methods:
            raise ArgumentError("the repairer is not fitted; call fit with training rows first")
        if table.shape[1] != len(self._scales):
            raise ArgumentError(
                f"the values have {table.shape[1]} channels, the repairer was fitted on "
                f"{len(self._scales)}"
            )

    def _fill_all(self, part: SeriesPart, causal: bool) -> dict[int, Floats]:
        """A piece `[T, C]` filled in every way, by position in `METHODS`."""
        values, good, _ = part
        channels = set(range(values.shape[1]))
        together = channels if len(channels) > 1 else set()
        filled = {0: self._fill_lines(values, good, causal)}
        for index, method in enumerate(self._methods):
            found = method.fill(part, channels, together, causal=causal)
            for others in (False, True) if together else (False,):
                columns = [found[channel, others] for channel in sorted(channels)]
                filled[1 + 2 * index + others] = np.stack(columns, axis=1)
        return filled

    def _fill_lines(self, values: Floats, good: Bools, causal: bool) -> Floats:
        columns = [
            fill_line(values[:, c], good[:, c], centre, causal=causal)
            for c, centre in enumerate(self._centres())
        ]
        return np.stack(columns, axis=1)

    def _fill_chosen(self, part: SeriesPart, causal: bool) -> tuple[Floats, Floats]:
        """A piece filled in the way that suits each gap, and the deviation to expect."""
        values, good, _ = part
        choices = self._causal_choices if causal else self._choices
        filled, unsure = values.copy(), np.zeros(values.shape)
        wanted: dict[tuple[int, bool], dict[int, np.ndarray]] = {}
        for channel, choice in enumerate(choices):
            rows = np.flatnonzero(~good[:, channel])
            if not len(rows):
                continue
            lengths = _gap_lengths(good[:, channel], causal)[rows]
            error = choice.error_at(lengths)
            unsure[rows, channel] = np.inf if self._empty[channel] else error
            methods = choice.method_at(lengths)
            for method in np.unique(methods):
                chosen = rows[methods == method]
                if method == 0:
                    line = fill_line(
                        values[:, channel],
                        good[:, channel],
                        self._centres()[channel],
                        causal=causal,
                    )
                    filled[chosen, channel] = line[chosen]
                else:
                    index, others = divmod(int(method) - 1, 2)
                    wanted.setdefault((index, bool(others)), {})[channel] = chosen
        for index, method in enumerate(self._methods):
            alone, together = (wanted.get((index, others), {}) for others in (False, True))
            if not alone and not together:
                continue
            found = method.fill(part, set(alone), set(together), causal=causal)
            for others, group in ((False, alone), (True, together)):
                for channel, rows in group.items():
                    filled[rows, channel] = found[channel, others][rows]
        return filled, unsure


def _gap_lengths(good: Bools, causal: bool) -> Floats:
    """Length of the gap at each row, or with `causal` the rows since the last good value."""
    rows = np.arange(len(good))
    if causal:
        return rows - np.maximum.accumulate(np.where(good, rows, -1.0))
    lengths = np.zeros(len(good))
    starts, stops = find_stretches(~good)
    lengths[~good] = np.repeat(stops - starts, stops - starts)
    return lengths


def _respect_limits(result: Floats, table: Floats, marks: Flags, centres: list[float]) -> None:
    """A value cut off at a limit lay at the limit or beyond it."""
    for channel, centre in enumerate(centres):
        rows = np.flatnonzero(marks[:, channel] == CLIPPED)
        limit = table[rows, channel]
        beyond = np.where(
            limit > centre,
            np.maximum(result[rows, channel], limit),
            np.minimum(result[rows, channel], limit),
        )
        result[rows, channel] = beyond


def _choose_parts(
    table: Floats, good: Bools, spans: list[tuple[slice, int]], period: int
) -> list[SeriesPart]:
    """The last rows of the longest pieces, as many as are needed to learn from."""
    budget = max(_FIT_ROWS, _FIT_CYCLES * period)
    parts: list[SeriesPart] = []
    for rows, number in sorted(spans, key=lambda span: span[0].start - span[0].stop):
        length = min(rows.stop - rows.start, budget)
        if parts and length < _SHORTEST_PIECE:
            break
        first = rows.stop - length
        chosen = slice(first, rows.stop)
        parts.append((table[chosen], good[chosen], number + first - rows.start))
        budget -= length
    return parts
