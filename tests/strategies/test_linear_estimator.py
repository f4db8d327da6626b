"""The estimator behind the anomaly mask."""

from __future__ import annotations

from sacm.strategies.linear_estimator import LinearEstimator


def test_the_linear_estimator_has_the_published_size() -> None:
    assert sum(p.numel() for p in LinearEstimator(24, 60).parameters()) == 3000
