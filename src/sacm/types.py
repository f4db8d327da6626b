"""What every part of the package can see: tasks, sizes, kinds of scores, codes of gaps."""

from __future__ import annotations

from typing import Literal

TaskName = Literal["forecasting", "classification", "anomaly"]
Size = Literal["paper", "small"]
ScoreKind = Literal["native", "reconstruction"]

GAP_CODES = (-99999, -9999, -999.9, -999, -200, -99.9, -99, 999, 9999, 99999, 32767, -32768)
"""Numbers that loggers write where nothing was measured."""
