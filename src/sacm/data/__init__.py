"""Data: public benchmarks, Synth-12 and the user's own files, as fast windows.

data = sacm.data.load("ETTh1")
windows = sacm.data.forecasting_windows(data, input_len=96, horizon=96)
for batch in sacm.data.WindowBatches(windows.train, 32, shuffle=True, drop_last=True):
    batch.x, batch.y  # [32, 96, 7] each
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from sacm.data.batches import OverlapMean, WindowBatches
from sacm.data.corrupt import corrupt, corrupt_training
from sacm.data.covariates import stamp_features
from sacm.data.datasets import (
    AnomalyData,
    ClassificationData,
    ForecastingData,
    Segment,
    Splits,
    TelemetrySegment,
    fingerprint,
)
from sacm.data.load import load, names, register, resolve
from sacm.data.scaling import ChannelScaler, fill_gaps
from sacm.data.synthetic import synth12
from sacm.data.windows import anomaly_windows, classification_windows, forecasting_windows

if TYPE_CHECKING:
    from sacm.data.anomaly import anomaly_data as anomaly_data
    from sacm.data.cases import classification_data as classification_data
    from sacm.data.forecasting import forecasting_data as forecasting_data
    from sacm.data.read import read_table as read_table

# Reading needs pandas, which named data sets do without.
_LAZY = {
    "anomaly_data": "anomaly",
    "classification_data": "cases",
    "forecasting_data": "forecasting",
    "read_table": "read",
}

__all__ = [
    "AnomalyData",
    "ChannelScaler",
    "ClassificationData",
    "ForecastingData",
    "OverlapMean",
    "Segment",
    "Splits",
    "TelemetrySegment",
    "WindowBatches",
    "anomaly_data",
    "anomaly_windows",
    "classification_data",
    "classification_windows",
    "corrupt",
    "corrupt_training",
    "fill_gaps",
    "fingerprint",
    "forecasting_data",
    "forecasting_windows",
    "load",
    "names",
    "read_table",
    "register",
    "resolve",
    "stamp_features",
    "synth12",
]


def __getattr__(name: str) -> Any:
    """Load a function that reads files when it is first asked for."""
    if name not in _LAZY:
        raise AttributeError(f"module 'sacm.data' has no attribute {name!r}")
    value = getattr(import_module(f"sacm.data.{_LAZY[name]}"), name)
    globals()[name] = value
    return value
