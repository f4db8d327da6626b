"""Channels of a data set that was read already become covariates."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from sacm.data.covariates.plan import ROLES, CovariatePlan
from sacm.data.datasets import ForecastingData
from sacm.errors import DataError


def move_channels(data: ForecastingData, plan: CovariatePlan) -> ForecastingData:
    """The same data with some of their channels as covariates.

    Raises:
        DataError: There is no such channel, or none is left to forecast.

    Example:
        >>> from sacm.data import load
        >>> etth1 = load("ETTh1")  # doctest: +SKIP
        >>> move_channels(etth1, CovariatePlan(past=("HUFL",))).columns  # doctest: +SKIP
        ('HULL', 'MUFL', 'MULL', 'LUFL', 'LULL', 'OT')
    """
    for name in plan.columns:
        if name not in data.columns:
            known = ", ".join(data.columns[:8])
            raise DataError(f"{data.name}: {name!r} is no channel; channels are {known}.")
    places = [data.columns.index(name) for name in plan.columns]
    rest = [place for place in range(data.channels) if place not in places]
    if not rest:
        raise DataError(f"{data.name}: every channel is a covariate, so none is left to forecast.")
    arrays: dict[str, Any] = {
        name: None if array is None else np.ascontiguousarray(array[:, rest])
        for name in ("values", "targets", "observed", "broken")
        for array in (getattr(data, name),)
    }
    return replace(
        data,
        columns=tuple(data.columns[place] for place in rest),
        covariates=np.ascontiguousarray(data.values[:, places]),
        **arrays,
        **{role: getattr(plan, role) for role in ROLES},
    )
