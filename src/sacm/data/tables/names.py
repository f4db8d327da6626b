"""What the name of a column says about it: a counter, a label, or a place in the calendar."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

COUNTER_NAMES = (
    *("", "unnamed0", "index", "idx", "id", "no", "nr", "num", "number", "row", "rownum", "rowid"),
    *("rownumber", "rowno", "n", "i", "k", "t", "step", "steps", "timestep", "timeindex", "sno"),
    *("counter", "seq", "sequence", "sample", "sampleno", "obs", "observation", "record"),
    *("seconds", "elapsed", "elapsedtime", "times", "timesec", "timems"),
)
LABEL_WORDS = (
    *("label", "labels", "anomaly", "anomalies", "anomalous", "isanomaly", "attack", "attacks"),
    *("outlier", "outliers", "isoutlier", "changepoint", "changepoints", "fault", "faulty"),
    *("isattack", "isfault", "groundtruth", "intrusion"),
)
# Smallest and largest value of each part of the calendar.
CALENDAR_RANGES = {
    "year": (1000, 2999),
    "quarter": (1, 4),
    "month": (1, 12),
    "week": (1, 53),
    "weekofyear": (1, 53),
    "day": (1, 31),
    "dayofyear": (1, 366),
    "weekday": (0, 7),
    "dayofweek": (0, 7),
    "dow": (0, 7),
    "hour": (0, 24),
    "minute": (0, 59),
    "second": (0, 59),
}


def plain_name(name: object) -> str:
    """A name in small letters, without anything that is neither letter nor digit."""
    return re.sub(r"[^a-z0-9]", "", str(name).lower())


def words_of(name: str) -> set[str]:
    """The words in a name, also of one in camel case, and the name as a whole."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)
    return {*re.split(r"[^a-z0-9]+", spaced.lower()), plain_name(name)}


def is_label_name(name: str) -> bool:
    """Whether a name is that of labels: anomaly, Attack_label, isOutlier and the like."""
    return not words_of(name).isdisjoint(LABEL_WORDS)


def read_whole_numbers(column: pd.Series) -> np.ndarray | None:
    """A column of whole numbers as int64; None if it holds anything else."""
    import pandas as pd

    if not pd.api.types.is_numeric_dtype(column) or column.dtype.kind == "c":
        return None
    values = column.to_numpy(dtype=np.float64, na_value=np.nan)
    if not len(values) or not np.isfinite(values).all() or (values != np.floor(values)).any():
        return None
    return values.astype(np.int64)


def rises_by_one(column: pd.Series) -> bool:
    """Whether whole numbers rise by one from every row to the next."""
    values = read_whole_numbers(column)
    return values is not None and len(values) > 2 and bool((np.diff(values) == 1).all())


def is_counter(column: pd.Series) -> bool:
    """Whether a column has the name of a counter and rises by the same step in every row."""
    import pandas as pd

    if plain_name(column.name) not in COUNTER_NAMES:
        return False
    if not pd.api.types.is_numeric_dtype(column) or column.dtype.kind not in "iuf":
        return False
    values = column.to_numpy(dtype=np.float64, na_value=np.nan)
    steps = np.diff(values)
    if len(steps) < 2 or not np.isfinite(steps).all() or not (steps > 0).all():
        return False
    return bool(np.allclose(steps, np.median(steps), rtol=1e-3))


def calendar_part(column: pd.Series) -> str | None:
    """The part of the calendar that a column is, by its name and its values."""
    part = plain_name(column.name)
    values = read_whole_numbers(column) if part in CALENDAR_RANGES else None
    if values is None:
        return None
    low, high = CALENDAR_RANGES[part]
    return part if values.min() >= low and values.max() <= high else None
