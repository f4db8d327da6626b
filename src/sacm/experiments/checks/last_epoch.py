"""The last epoch's weights, which nothing has chosen."""

from __future__ import annotations

from typing import Any

from sacm.data.datasets import AnyData
from sacm.experiments.checks.registry import CHECKS
from sacm.files import read_weights
from sacm.inject.attach import strip_state_dict
from sacm.training.run import Run


@CHECKS.register("last")
def check_last_epoch(run: Run, data: AnyData) -> dict[str, Any]:
    """Test results of the last epoch's weights, by names that end in `_last`."""
    model = run.load_model()
    weights = read_weights(run.folder / "last.safetensors")
    model.load_state_dict(strip_state_dict(weights))
    windows = run.task.windows(run.settings, data, scaler=run.scaler)
    found = run.task.evaluate(model, windows, data, run.settings, run.strategy)
    return {"test": {f"{name}_last": value for name, value in found.row.items()}}
