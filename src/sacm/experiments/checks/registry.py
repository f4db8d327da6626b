"""Checks by name.

A check is a function `(run, data)` of a finished run and the clean data it was trained on. It
returns a record whose `test` holds numbers by name; a job writes it into the run folder.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sacm.data.datasets import AnyData
from sacm.registry import Registry
from sacm.training.run import Run

Check = Callable[[Run, AnyData], dict[str, Any]]
CHECKS: Registry[Check] = Registry("check")
