"""What finished runs are tested by besides their own test: functions by name.

A check is a function `(run, data)` of a finished run and the clean data it was trained on. It
returns a record whose `test` holds numbers by name; a job writes it into the run folder.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sacm.data.datasets import AnyData
from sacm.files import read_weights
from sacm.inject.attach import strip_state_dict
from sacm.registry import Registry
from sacm.training.run import Run

Check = Callable[[Run, AnyData], dict[str, Any]]
CHECKS: Registry[Check] = Registry("check")


@CHECKS.register("last")
def test_last_epoch(run: Run, data: AnyData) -> dict[str, Any]:
    """Test results of the last epoch's weights, by names that end in `_last`."""
    model = run.load_model()
    weights = read_weights(run.folder / "last.safetensors")
    model.load_state_dict(strip_state_dict(weights))
    windows = run.task.windows(run.settings, data, scaler=run.scaler)
    found = run.task.evaluate(model, windows, data, run.settings, run.strategy)
    return {"test": {f"{name}_last": value for name, value in found.row.items()}}
