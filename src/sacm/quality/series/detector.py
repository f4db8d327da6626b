"""Find what is broken in a series of several channels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from sacm.errors import ArgumentError
from sacm.quality.kinds import BURST, SHIFT, SPIKE
from sacm.quality.progress import Progress, no_progress
from sacm.quality.series.acquit import acquit, find_partners
from sacm.quality.series.angles import is_angle
from sacm.quality.series.arrays import Bools, Flags, Floats
from sacm.quality.series.channel import ChannelModel, GrossModel, fit_channel, fit_gross
from sacm.quality.series.pieces import check_pieces, check_table
from sacm.quality.series.relative import RelativeModel, find_relative, fit_relatives
from sacm.quality.series.scatter import ScatterModel, find_scattered, fit_scatter
from sacm.quality.series.season import find_season
from sacm.quality.series.state import from_plain, to_plain

_FIT_ROWS = 16_384
_BLOCKS = 4
_MOST_PIECES = 64
_PARTNER_ROWS = 20_000
_LOST = 0.6


class SeriesDetector:
    """Learns from training rows what each channel looks like, then flags what does not.

    Args:
        sensitivity: Factor on every cut. 1 keeps false flags on healthy series below 1 %; larger
            values flag more.

    Attributes:
        season: Rows of one cycle of the common season; 0 if there is none.
        unjudged: Channels that cannot be judged, with the reason. Their missing values are
            flagged all the same.

    Example:
        >>> values = np.random.default_rng(0).normal(size=(1000, 2))
        >>> detector = SeriesDetector().fit(values[:800])
        >>> flags = detector.detect(values[800:], start=800, causal=True)
    """

    def __init__(self, sensitivity: float = 1.0) -> None:
        if not sensitivity > 0 or not np.isfinite(sensitivity):
            raise ArgumentError(f"sensitivity must be a positive number, not {sensitivity}")
        self.sensitivity = float(sensitivity)
        self.season = 0
        self.unjudged: dict[int, str] = {}
        self._channels: list[ChannelModel] = []
        self._partners: list[list[tuple[int, int]]] = []
        self._relatives: list[RelativeModel | None] = []

    def fit(
        self,
        values: Any,
        pieces: Sequence[range] | None = None,
        start: int | Sequence[int] = 0,
        *,
        progress: Progress = no_progress,
    ) -> SeriesDetector:
        """Learn from training rows; they may be contaminated by up to a third.

        Args:
            values: Training rows `[T, C]`, NaN where missing.
            pieces: Ranges of rows that are series of their own; together they cover all rows.
            start: Row number of the first row (of each piece), which sets the season's phase.
            progress: Called with the share that is done, channel by channel.

        Returns:
            This detector.

        Raises:
            DataError: If the values are no table of numbers.
            ArgumentError: If the pieces do not cover the rows one after the other.
        """
        table = check_table(values)
        parts = check_pieces(pieces, start, len(table))
        self.unjudged = {}
        grosses, flags = self._fit_gross(table, parts)
        blocks = _choose_blocks(parts)
        scatters = self._fit_scatters(table, grosses, flags, parts, blocks)
        longest = max((rows for rows, _ in parts), key=lambda rows: rows.stop - rows.start)
        season = find_season(table[longest], flags[longest] == 0)
        self.season = season.period
        self._channels = []
        healthy = [np.zeros((rows.stop - rows.start, table.shape[1]), bool) for rows, _ in blocks]
        for channel, gross in enumerate(grosses):
            progress(channel / len(grosses))
            if gross is None:
                self._channels.append(ChannelModel())
                continue
            if gross.scale == 0:
                self._channels.append(ChannelModel(gross))
                continue
            fitted = fit_channel(
                [table[rows, channel] for rows, _ in blocks],
                [flags[rows, channel] for rows, _ in blocks],
                [number for _, number in blocks],
                gross,
                season.period_of(channel),
                self.sensitivity,
                # The many rows of a long series tell as much in two turns.
                turns=3 if blocks is parts else 2,
            )
            if isinstance(fitted, str):
                self.unjudged[channel] = fitted
                self._channels.append(ChannelModel(gross))
                continue
            self._channels.append(replace(fitted[0], scatter=scatters[channel]))
            for mask, own in zip(healthy, fitted[1], strict=True):
                mask[:, channel] = own
        self._relatives = self._fit_relatives(table, healthy, blocks)
        self._partners = self._fit_partners(table, flags, parts)
        return self

    def detect(
        self,
        values: Any,
        pieces: Sequence[range] | None = None,
        start: int | Sequence[int] = 0,
        *,
        causal: bool = False,
        progress: Progress = no_progress,
    ) -> Flags:
        """Flag what is broken.

        Args:
            values: Rows `[T, C]` with the channels of the fit.
            pieces: Ranges of rows that are series of their own; together they cover all rows.
            start: Row number of the first row (of each piece), counted as in the fit.
            causal: Judge every row by itself and earlier rows alone. Shifts that return cannot
                be seen then, and a stuck sensor only once it has been stuck for long enough.
            progress: Called with the share that is done, channel by channel.

        Returns:
            Flags `[T, C]` (uint8): positions in `KINDS`, 0 for healthy values.

        Raises:
            ArgumentError: If the detector is not fitted or the channels differ.
        """
        table = check_table(values)
        self._check_fitted(table)
        flags = np.zeros(table.shape, np.uint8)
        for rows, number in check_pieces(pieces, start, len(table)):
            piece = table[rows]
            for channel, model in enumerate(self._channels):
                flags[rows, channel] = model.find(piece[:, channel], number, causal=causal)
                done = rows.start + len(piece) * (channel + 1) / len(self._channels)
                progress(done / len(table))
            if not causal:
                flags[rows] = self._judge_together(piece, flags[rows], number)
        return flags

    def to_dict(self) -> dict[str, Any]:
        """Everything that was learnt, as plain JSON values."""
        return {
            "sensitivity": self.sensitivity,
            "season": self.season,
            "unjudged": {str(channel): reason for channel, reason in self.unjudged.items()},
            "channels": to_plain(self._channels),
            "partners": to_plain(self._partners),
            "relatives": to_plain(self._relatives),
        }

    @classmethod
    def from_dict(cls, state: dict[str, Any]) -> SeriesDetector:
        """The detector that `to_dict` described."""
        detector = cls(state["sensitivity"])
        detector.season = state["season"]
        detector.unjudged = {int(c): reason for c, reason in state["unjudged"].items()}
        detector._channels = [from_plain(ChannelModel, each) for each in state["channels"]]
        detector._partners = [[(c, sign) for c, sign in each] for each in state["partners"]]
        detector._relatives = [
            from_plain(RelativeModel | None, each) for each in state["relatives"]
        ]
        return detector

    def _check_fitted(self, table: Floats) -> None:
        if not self._channels:
            raise ArgumentError("the detector is not fitted; call fit with training rows first")
        if table.shape[1] != len(self._channels):
            raise ArgumentError(
                f"the values have {table.shape[1]} channels, the detector was fitted on "
                f"{len(self._channels)}"
            )

    def _fit_gross(
        self, table: Floats, parts: list[tuple[slice, int]]
    ) -> tuple[list[GrossModel | None], Flags]:
        """Codes, limits, clipping and runs of every channel, and what they flag."""
        flags = np.zeros(table.shape, np.uint8)
        models: list[GrossModel | None] = []
        for channel in range(table.shape[1]):
            column = np.ascontiguousarray(table[:, channel])
            fitted = fit_gross([column[rows] for rows, _ in parts], self.sensitivity)
            if isinstance(fitted, str):
                self.unjudged[channel] = fitted
                models.append(None)
                flags[:, channel] = 1
                continue
            for rows, _ in parts:
                flags[rows, channel] = fitted.find(column[rows])
            if fitted.scale == 0:
                self.unjudged[channel] = "constant but for its gap codes"
            elif np.mean(flags[:, channel] > 0) > _LOST:
                self.unjudged[channel] = (
                    f"{np.mean(flags[:, channel] > 0):.0%} of its values are missing, codes or "
                    "stuck; only gaps, codes, runs and limits are judged"
                )
            models.append(fitted)
        return models, flags

    def _fit_scatters(
        self,
        table: Floats,
        grosses: list[GrossModel | None],
        flags: Flags,
        parts: list[tuple[slice, int]],
        blocks: list[tuple[slice, int]],
    ) -> list[ScatterModel | None]:
        """Wild values on many single steps of every channel; they are added to `flags`."""
        models: list[ScatterModel | None] = []
        for channel, gross in enumerate(grosses):
            models.append(None)
            if gross is None or gross.scale == 0:
                continue
            values = [table[rows, channel] for rows, _ in blocks]
            good = [flags[rows, channel] == 0 for rows, _ in blocks]
            model = fit_scatter(values, good, self.sensitivity)
            known = [np.where(ok, part, np.nan) for part, ok in zip(values, good, strict=True)]
            if model is None or is_angle(known):
                continue
            models[-1] = model
            for rows, _ in parts:
                own = flags[rows, channel]
                own[find_scattered(table[rows, channel], own == 0, model)] = SPIKE
        return models

    def _fit_partners(
        self, table: Floats, flags: Flags, parts: list[tuple[slice, int]]
    ) -> list[list[tuple[int, int]]]:
        """Related channels, from the last rows of the longest piece."""
        rows, number = max(parts, key=lambda part: part[0].stop - part[0].start)
        first = max(rows.start, rows.stop - _PARTNER_ROWS)
        number += first - rows.start
        residuals: list[Floats | None] = []
        for channel, model in enumerate(self._channels):
            if model.local is None or rows.stop - first < 24:
                residuals.append(None)
                continue
            column = np.ascontiguousarray(table[first : rows.stop, channel])
            good = flags[first : rows.stop, channel] == 0
            residuals.append(model.measure(column, good, number)[1] if good.any() else None)
        return find_partners(residuals)

    def _fit_relatives(
        self, table: Floats, healthy: list[Bools], blocks: list[tuple[slice, int]]
    ) -> list[RelativeModel | None]:
        """Channels that can be judged beside the others."""
        judged = [channel for channel in self._channels if channel.local is not None]
        if len(judged) < 2:
            return [None] * len(self._channels)
        plain = [
            self._flatten(table[rows], good, number)
            for (rows, number), good in zip(blocks, healthy, strict=True)
        ]
        scales = np.array([1.0 if c.gross is None else c.gross.scale for c in self._channels])
        models = [channel.local for channel in self._channels]
        return fit_relatives(
            plain,
            healthy,
            [number for _, number in blocks],
            models,
            scales,
            self.sensitivity,
        )

    def _flatten(self, piece: Floats, good: Bools, number: int) -> Floats:
        """A piece `[T, C]` without season, around 0 and in deviations; 0 where not judged."""
        plain = np.zeros(piece.shape)
        for channel, model in enumerate(self._channels):
            if model.local is not None:
                plain[:, channel] = model.flatten(piece[:, channel], good[:, channel], number)
        return plain

    def _judge_together(self, piece: Floats, flags: Flags, number: int) -> Flags:
        """Take back what related channels explain, and add what shows only beside them."""
        result = flags

        def measure(channel: int) -> tuple[Floats, Floats]:
            good = np.isin(flags[:, channel], (0, SPIKE, BURST, SHIFT))
            return self._channels[channel].measure(piece[:, channel], good, number)

        if any(self._partners):
            result = acquit(flags, self._partners, measure)
            self._accuse_again(piece, flags, result)
        if any(self._relatives):
            plain = self._flatten(piece, flags == 0, number)
            for channel, model in enumerate(self._relatives):
                if model is not None:
                    good = flags[:, channel] == 0
                    found = find_relative(plain, good, number, channel, model)
                    result[:, channel] = np.where(good, found, result[:, channel])
        return result

    def _accuse_again(self, piece: Floats, flags: Flags, result: Flags) -> None:
        """Where every third value is wild, those of related channels meet by chance."""
        for channel, model in enumerate(self._channels):
            if model.scatter is not None and model.gross is not None:
                good = model.gross.find(piece[:, channel]) == 0
                wild = find_scattered(piece[:, channel], good, model.scatter)
                result[wild & (flags[:, channel] == SPIKE), channel] = SPIKE


def _choose_blocks(parts: list[tuple[slice, int]]) -> list[tuple[slice, int]]:
    """Pieces to fit on: at most 64 of them, and of long series four blocks spread over each."""
    if len(parts) > _MOST_PIECES:
        parts = [parts[i * len(parts) // _MOST_PIECES] for i in range(_MOST_PIECES)]
    total = sum(rows.stop - rows.start for rows, _ in parts)
    if total <= _FIT_ROWS:
        return parts
    blocks = []
    share = _FIT_ROWS / total
    for rows, number in parts:
        length = rows.stop - rows.start
        size = max(int(length * share) // _BLOCKS, 1)
        count = _BLOCKS if size >= 1024 else 1
        size = int(length * share) // count
        for index in range(count):
            first = (length - size) * index // max(count - 1, 1)
            blocks.append((slice(rows.start + first, rows.start + first + size), number + first))
    return blocks
