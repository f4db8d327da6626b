"""Where the jobs of a grid run: processes of this machine, or a Ray cluster."""

from __future__ import annotations

from sacm.errors import ArgumentError
from sacm.experiments.engines.engine import Engine, Outcome, threads_for

ENGINES = ("local", "ray")

__all__ = ["ENGINES", "Engine", "Outcome", "make_engine", "threads_for"]


def make_engine(name: str, *, workers: int) -> Engine:
    """An engine by name."""
    if workers < 1:
        raise ArgumentError(f"--workers must be at least 1, got {workers}.")
    if name == "local":
        from sacm.experiments.engines.local import LocalEngine

        return LocalEngine(workers)
    if name == "ray":
        from sacm.experiments.engines.ray import RayEngine

        return RayEngine(workers)
    raise ArgumentError(f"there is no engine {name!r}: use {' or '.join(ENGINES)}.")
