"""An example plug-in: importing this package registers everything in it."""

from __future__ import annotations

from sacm_example_plugin import backbone, dataset, metric, scorer, strategy

__all__ = ["backbone", "dataset", "metric", "scorer", "strategy"]
