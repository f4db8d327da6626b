"""The three tasks by name, where every part of the package can see them."""

from __future__ import annotations

from typing import Literal

TaskName = Literal["forecasting", "classification", "anomaly"]
