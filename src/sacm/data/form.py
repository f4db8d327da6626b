"""The form in which data came in, so that results can be given back in the same form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
import torch
from torch import Tensor

from sacm.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

Kind = Literal["array", "tensor", "series", "pandas", "polars"]
ID_COLUMN = "unique_id"


@dataclass(frozen=True)
class Form:
    """The kind of object the data came in, and how it told the time.

    `time` names the time column, or the index if `indexed`; of a `long` table `id` names the column
    of series and `channels` those of values; `counters` holds, for each series, last
    value and step of a time column of numbers. `zone` is the time zone of the timestamps, which
    were read by the `local` clock or in UTC. `style` says how numbers write dates.
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
    style: str | None = None
    id: str = ID_COLUMN
    channels: tuple[str, ...] = ("y",)

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Self:
        """The form that `to_dict` described."""
        known = dict(record)
        if "channels" in known:
            known["channels"] = tuple(known["channels"])
        return cls(**known)

    def as_table(self) -> Self:
        """The form of a pandas table with its time in a column, `time` if its index had no name."""
        name = self.time or ("time" if self.indexed else None)
        return replace(self, kind="pandas", flat=False, indexed=False, time=name)

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

            zone = polars_zone(self.zone)
            for name in frame.columns[
                [getattr(kind, "tz", None) is not None for kind in frame.dtypes]
            ]:
                frame[name] = frame[name].dt.tz_convert(zone)
            stamps = selectors.datetime().cast(pl.Datetime("us", zone))
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
            return frame.set_index(pd.Index(stamps, name=self.time))
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

        if len(series) == 1 and not set(columns) <= set(self.channels):
            # The series are channels side by side.
            series, values = columns, values[0].T[:, :, None]  # [S, H, 1]
            times = None if times is None else np.repeat(times, len(series), axis=0)
            columns = self.channels
        parts = []
        for position, name in enumerate(series):
            own = None if times is None else times[position]
            stamps = self._stamps(name, own, values.shape[1])
            held = dict(zip(columns, values[position].T.astype(np.float64), strict=True))
            parts.append(pd.DataFrame({self.id: name, self.time or "ds": stamps, **held}))
        frame = pd.concat(parts, ignore_index=True)
        return frame if self.id_type is None else frame.astype({self.id: self.id_type})

    def _stamps(self, series: str, times: np.ndarray | None, count: int) -> Any:
        """Future times `[count]` of one series; None if its rows have none."""
        if times is not None:
            return self.write_times(times)
        if series not in self.counters:
            return None
        last, step = self.counters[series]
        ahead = last + step * np.arange(1, count + 1)
        whole = float(last).is_integer() and float(step).is_integer()
        return ahead.astype(np.int64) if whole else ahead

    def write_times(self, times: np.ndarray) -> pd.Series:
        """Write timestamps as the user's data did.

        Args:
            times: `[T]` datetime64 as they were read, in UTC or by the local clock.

        Returns:
            Numbers if the dates came as numbers, otherwise dates, with their zone or offset.
        """
        import pandas as pd

        if self.style is not None:
            from sacm.data.dates import write_numbers

            numbers = write_numbers(times, self.style)
            return pd.Series(times if numbers is None else numbers)
        stamps = pd.Series(times)
        if self.zone is None:
            return stamps
        if self.local:  # an hour that the clock shows twice is taken the first time
            twice = np.ones(len(times), dtype=bool)
            return stamps.dt.tz_localize(self.zone, ambiguous=twice, nonexistent="shift_forward")
        return stamps.dt.tz_localize("UTC").dt.tz_convert(self.zone)


def polars_zone(zone: str | None) -> str | None:
    """A zone as polars knows it: by name, so that of an offset only whole hours have one."""
    if zone is None or not zone.startswith("UTC") or zone == "UTC":
        return zone
    sign, hours, minutes = zone[3], int(zone[4:6]), zone[7:]
    return f"Etc/GMT{'-' if sign == '+' else '+'}{hours}" if minutes == "00" else "UTC"


def as_numpy(tensor: Tensor) -> np.ndarray:
    """The values of a tensor; bfloat16, which NumPy lacks, becomes float32 without loss.

    Raises:
        DataError: The tensor has no plain values: it is sparse, or on the meta device.
    """
    if tensor.layout is not torch.strided or tensor.is_meta:
        raise DataError("the data are a tensor without plain values: pass a dense one.")
    values = tensor.detach().cpu()
    array: np.ndarray = (values.float() if values.dtype == torch.bfloat16 else values).numpy()
    return array
