"""What a prediction is worth: pure functions from predictions and truth to frozen reports."""

from __future__ import annotations

from sacm.metrics.catalogue import Metric, metric, register

__all__ = ["Metric", "metric", "register"]
