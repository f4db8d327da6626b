"""Where the jobs of a grid run: processes of this machine, a Ray cluster, or a plug-in's engine."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from sacm.errors import ArgumentError, did_you_mean
from sacm.experiments.engines.engine import Engine, Outcome, threads_for
from sacm.registry import Registry

__all__ = ["ENGINES", "Engine", "Outcome", "make_engine", "register", "threads_for"]

EngineFactory = Callable[[int], Engine]
Factory = TypeVar("Factory", bound=EngineFactory)
ENGINES: Registry[EngineFactory] = Registry("engine")


def register(name: str) -> Callable[[Factory], Factory]:
    """Give a decorator that makes an engine available as `--engine NAME`.

    Args:
        name: The name of the engine.

    Returns:
        A decorator for a factory `(workers) -> Engine`, a function or a class.

    Raises:
        ArgumentError: If the name is taken.
    """

    def add(factory: Factory) -> Factory:
        ENGINES.register(name)(factory)
        return factory

    return add


@register("local")
def local_engine(workers: int) -> Engine:
    """Make an engine of processes on this machine."""
    from sacm.experiments.engines.local import LocalEngine

    return LocalEngine(workers)


@register("ray")
def ray_engine(workers: int) -> Engine:
    """Make an engine on a Ray cluster."""
    from sacm.experiments.engines.ray import RayEngine

    return RayEngine(workers)


def make_engine(name: str, *, workers: int) -> Engine:
    """Make an engine by name.

    Raises:
        ArgumentError: If there is none of that name, or less than one worker.
    """
    if workers < 1:
        raise ArgumentError(f"--workers must be at least 1, got {workers}.")
    factory = ENGINES.find(name)
    if factory is None:
        known = ENGINES.names()
        hint = did_you_mean(name, known)
        raise ArgumentError(f"there is no engine {name!r}: use {' or '.join(known)}.{hint}")
    return factory(workers)
