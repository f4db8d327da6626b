"""How well intervals of forecasts do where the truth is known.

The calibration of a run is made at the end of its training: see `sacm.tasks.calibration`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sacm.data.batches import ForecastWindows
from sacm.metrics.forecasting import crps, measure_intervals
from sacm.tasks.calibration import forecast_residuals

if TYPE_CHECKING:
    from sacm.inference.predictor import Predictor

CRPS_LEVELS = tuple(round(0.05 * place, 2) for place in range(1, 20))


def measure_uncertainty(
    predictor: Predictor, windows: ForecastWindows, coverages: Sequence[float]
) -> dict[str, Any]:
    """How intervals would have done: the first half of the windows calibrates, the second tests.

    The windows are in order of time and chose nothing. Those of the second half that touch a
    target of the first are left out. Widths and the CRPS are in z-scored units.
    """
    residuals = forecast_residuals(predictor.network, windows, predictor.strategy)
    before, after = residuals.halves()
    errors = before.fit()
    intervals = []
    for coverage in coverages:
        low, high = (after.bound(errors, (1 + sign * coverage) / 2) for sign in (-1, 1))
        intervals.append(measure_intervals(after.values, low, high, coverage))
    quantiles = np.stack([after.bound(errors, level) for level in CRPS_LEVELS])
    return {
        "calibration_windows": len(before.values),
        "windows": len(after.values),
        "crps": crps(after.values, quantiles, CRPS_LEVELS),
        "intervals": intervals,
    }
