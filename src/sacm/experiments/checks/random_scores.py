"""What random scores reach in anomaly detection: every measure needs it beside it."""

from __future__ import annotations

from typing import Any

import numpy as np

from sacm.data.datasets import AnomalyData, AnyData
from sacm.errors import ArgumentError
from sacm.experiments.checks.registry import CHECKS
from sacm.metrics.pointwise import auc_pr
from sacm.metrics.vus import vus_pr
from sacm.training.run import Run


@CHECKS.register("random")
def check_random_scores(run: Run, data: AnyData) -> dict[str, Any]:
    """VUS-PR and AUC-PR of uniform scores, drawn by the seed of the run."""
    if not isinstance(data, AnomalyData):
        raise ArgumentError("random scores are for anomaly detection.")
    scores = np.random.default_rng(run.settings.seed).random(len(data.labels))
    sizes = [len(segment.test) for segment in data.segments]
    borders = np.repeat(np.arange(len(sizes)), sizes)
    return {
        "test": {
            "auc_pr": auc_pr(scores, data.labels).value,
            "vus_pr": vus_pr(scores, data.labels, segments=borders).value,
        }
    }
