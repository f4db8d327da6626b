"""The form in which data came in, so that results can be given back in the same form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
import torch

if TYPE_CHECKING:
    import pandas as pd

Kind = Literal["array", "tensor", "series", "pandas", "polars"]
ID_COLUMN = "unique_id"


@dataclass(frozen=True)
class Form:
    """The kind of object the data came in, and how it told the time.

    `time` names the time column, or the index if `indexed`; `counters` holds, for each series, last
    value and step of a time column of numbers. `zone` is the time zone of the timestamps, which
    were read by the `local` clock or in UTC.
    """

    kind: Kind
    flat: bool = False  # [T], not [T, C]
    long: bool = False
    time: str | None = None
    indexed: bool = False
    zone: str | None = None
    local: bool = False
    counters: dict[str, tuple[float, float]] = field(default_factory=dict)
    id_type: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Self:
        """The form that `to_dict` described."""
        return cls(**record)

    def give(
        self,
        values: np.ndarray,
        *,
        series: Sequence[str],
        columns: Sequence[str],
        times: np.ndarray | None,
        rows: int,
    ) -> Any:
        """Give forecasts back as an object like the one the data came in.

        Args:
            values: Forecasts `[S, H, C]`.
            series: Names of the S series.
            columns: Names of the C channels.
            times: Future timestamps `[S, H]`, None for data without dates.
            rows: Number of rows before the forecasts; counts on where rows have no time.

        Returns:
            An array, a tensor, or a pandas or polars frame or series.
        """
        if self.kind in ("array", "tensor"):
            array = values[0, :, 0] if self.flat else values[0]
            return torch.from_numpy(array) if self.kind == "tensor" else array
        if self.long:
            frame = self._long(values, series, columns, times)
        else:
            frame = self._wide(values[0], columns, None if times is None else times[0], rows)
        if self.kind == "polars":
            import polars as pl
            from polars import selectors

            stamps = selectors.datetime().cast(pl.Datetime("us", self.zone))
            return pl.from_pandas(frame).with_columns(stamps)
        return frame.iloc[:, 0] if self.kind == "series" else frame

    def _wide(
        self, values: np.ndarray, columns: Sequence[str], times: np.ndarray | None, rows: int
    ) -> pd.DataFrame:
        import pandas as pd

        frame = pd.DataFrame(values.astype(np.float64), columns=list(columns))
        stamps = self._stamps("", times, len(frame))
        if stamps is None:
            return frame.set_index(pd.RangeIndex(rows, rows + len(frame)))
        if self.indexed:
            return frame.set_index(pd.DatetimeIndex(stamps, name=self.time))
        frame.insert(0, self.time, stamps)
        return frame

    def _long(
        self,
        values: np.ndarray,
        series: Sequence[str],
        columns: Sequence[str],
        times: np.ndarray | None,
    ) -> pd.DataFrame:
        import pandas as pd

        if len(series) == 1 and list(columns) != ["y"]:  # the series are channels side by side
            series, values = columns, values[0].T[:, :, None]  # [S, H, 1]
            times = None if times is None else np.repeat(times, len(series), axis=0)
        parts = []
        for position, name in enumerate(series):
            own = None if times is None else times[position]
            stamps = self._stamps(name, own, values.shape[1])
            y = values[position, :, 0].astype(np.float64)
            parts.append(pd.DataFrame({ID_COLUMN: name, "ds": stamps, "y": y}))
        frame = pd.concat(parts, ignore_index=True)
        return frame if self.id_type is None else frame.astype({ID_COLUMN: self.id_type})

    def _stamps(self, series: str, times: np.ndarray | None, count: int) -> Any:
        """Future times `[count]` of one series; None if its rows have none."""
        import pandas as pd

        if times is not None:
            stamps = pd.Series(times)
            if self.zone is None:
                return stamps
            if self.local:  # an hour that the clock shows twice is taken the first time
                twice = np.ones(count, dtype=bool)
                return stamps.dt.tz_localize(
                    self.zone, ambiguous=twice, nonexistent="shift_forward"
                )
            return stamps.dt.tz_localize("UTC").dt.tz_convert(self.zone)
        if series not in self.counters:
            return None
        last, step = self.counters[series]
        ahead = last + step * np.arange(1, count + 1)
        whole = float(last).is_integer() and float(step).is_integer()
        return ahead.astype(np.int64) if whole else ahead
