"""Names that every part of the package can see: the tasks, sizes and kinds of scores."""

from __future__ import annotations

from typing import Literal

TaskName = Literal["forecasting", "classification", "anomaly"]
Size = Literal["paper", "small"]
ScoreKind = Literal["native", "reconstruction"]
