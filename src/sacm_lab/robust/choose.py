"""The part of a protocol that is asked for; names that it does not list may be added."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from sacm.backbones.registry import entry
from sacm.data.corrupt import Contamination
from sacm.data.load import find, is_synthetic
from sacm.errors import ArgumentError
from sacm.experiments.named.experiment import Experiment
from sacm.strategies.registry import canonical

VARIED = "contamination"
NO_REFERENCE = "none"


class Chosen(NamedTuple):
    """A protocol narrowed or widened to what was asked for, and strategies that are not there."""

    experiment: Experiment
    unknown: tuple[str, ...]


def choose(
    experiment: Experiment,
    *,
    datasets: tuple[str, ...] = (),
    backbones: tuple[str, ...] = (),
    strategies: tuple[str, ...] = (),
    kinds: tuple[str, ...] = (),
    ratios: tuple[float, ...] = (),
    references: tuple[str, ...] = (),
) -> Chosen:
    """Put what was asked for in place of what a protocol declares; empty means: as declared.

    Args:
        experiment: The protocol.
        datasets: Names of data sets, also of others than it declares.
        backbones: Likewise.
        strategies: Likewise; `raw` is always there, because the others are measured by it.
        kinds: Faults that break the training data.
        ratios: Shares that they break.
        references: Rows that are no strategies; `none` for no such row.

    Raises:
        ArgumentError: A name is unknown, or the protocol breaks no training data.
    """
    named, unknown = _strategies(strategies or experiment.strategies, strict=bool(strategies))
    changed = replace(
        experiment,
        datasets=tuple(_data_name(name) for name in datasets) or experiment.datasets,
        backbones=tuple(entry(name, experiment.task).name for name in backbones)
        or experiment.backbones,
        strategies=named,
        vary={**experiment.vary, **_contaminations(experiment, kinds, ratios)},
        references=_references(experiment, references),
    )
    return Chosen(changed, unknown)


def _data_name(name: str) -> str:
    whole, at, part = name.partition("@")
    return name if is_synthetic(name) else f"{find(whole).name}{at}{part}"


def _strategies(asked: tuple[str, ...], *, strict: bool) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Strategies in their usual spelling, `raw` first; and those that are not registered."""
    found: dict[str, None] = {"raw": None}
    unknown = []
    for name in asked:
        try:
            found[canonical(name)] = None
        except ArgumentError:
            if strict:
                raise
            unknown.append(name)
    return tuple(found), tuple(unknown)


def _references(experiment: Experiment, asked: tuple[str, ...]) -> dict[str, Mapping[str, Any]]:
    """The references that are asked for; all of them if none is named."""
    declared = dict(experiment.references)
    if not asked:
        return declared
    names = () if asked == (NO_REFERENCE,) else asked
    unknown = [name for name in names if name not in declared]
    if unknown:
        raise ArgumentError(
            f"{experiment.name} has no reference {unknown[0]!r}: use "
            f"{', '.join([*declared, NO_REFERENCE])}."
        )
    return {name: declared[name] for name in names}


def _contaminations(
    experiment: Experiment, kinds: tuple[str, ...], ratios: tuple[float, ...]
) -> dict[str, tuple[str, ...]]:
    """Every kind with every ratio, where one of them is named."""
    if not kinds and not ratios:
        return {}
    if VARIED not in experiment.vary:
        raise ArgumentError(f"{experiment.name} breaks no training data: leave out kind and ratio.")
    declared = [Contamination.parse(text) for text in experiment.vary[VARIED]]
    names = kinds or tuple(dict.fromkeys(one.kind for one in declared))
    shares = ratios or tuple(dict.fromkeys(one.ratio for one in declared))
    return {
        VARIED: tuple(
            str(Contamination.parse(f"{kind}({ratio:g})")) for kind in names for ratio in shares
        )
    }
