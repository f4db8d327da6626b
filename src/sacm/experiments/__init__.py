"""Comparisons, grids of runs, their results as one frame, and what these allow to say."""

from __future__ import annotations

from typing import Any

from sacm.registry import Registry

CHECKS: Registry[Any] = Registry("check")
"""Functions `(run, data)` of a finished run and the clean data it was trained on.

They return a record whose `test` holds numbers by name; a job writes it into the run folder.
"""
