"""Data: public benchmarks, Synth-12 and the user's own files, as fast windows."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from sacm.data.batches import WindowBatches as WindowBatches
from sacm.data.corrupt import corrupt as corrupt
from sacm.data.corrupt import corrupt_training as corrupt_training
from sacm.data.datasets import AnomalyData as AnomalyData
from sacm.data.datasets import ClassificationData as ClassificationData
from sacm.data.datasets import ForecastingData as ForecastingData
from sacm.data.datasets import Splits as Splits
from sacm.data.datasets import fingerprint as fingerprint
from sacm.data.load import load as load
from sacm.data.load import names as names
from sacm.data.load import register as register
from sacm.data.load import resolve as resolve
from sacm.data.load import synth12 as synth12
from sacm.data.scaling import ChannelScaler as ChannelScaler
from sacm.data.scaling import fill_gaps as fill_gaps
from sacm.data.windows import anomaly_windows as anomaly_windows
from sacm.data.windows import classification_windows as classification_windows
from sacm.data.windows import forecasting_windows as forecasting_windows

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


def __getattr__(name: str) -> Any:
    """Load a function that reads files when it is first asked for."""
    if name not in _LAZY:
        raise AttributeError(f"module 'sacm.data' has no attribute {name!r}")
    return getattr(import_module(f"sacm.data.{_LAZY[name]}"), name)
