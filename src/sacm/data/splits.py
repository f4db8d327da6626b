"""Which rows train, which choose, which test."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from sacm.errors import ArgumentError, DataError

DEFAULT_RATIOS = (0.7, 0.1, 0.2)
HELD_OUT = 0.2  # of telemetry's training rows, for validation


@dataclass(frozen=True)
class Splits:
    """Half-open row ranges; `splits.train` and `splits["train"]` are the same."""

    train: range
    val: range
    test: range

    def __getitem__(self, name: str) -> range:
        if name not in ("train", "val", "test"):
            raise ArgumentError(f"There is no split {name!r}: use train, val or test.")
        rows: range = getattr(self, name)
        return rows

    def __iter__(self) -> Iterator[range]:
        return iter((self.train, self.val, self.test))


def split_by_ratio(rows: int, ratios: tuple[float, ...] = DEFAULT_RATIOS) -> Splits:
    """`int(rows * r)` for training and validation, the rest for testing.

    Without a test share the rest goes to validation.
    """
    if len(ratios) != 3 or min(ratios) < 0 or ratios[0] <= 0 or abs(sum(ratios) - 1) > 1e-6:
        raise ArgumentError(
            "ratios must be three shares (train, val, test) that add up to 1, none negative and "
            f"training above 0; got {tuple(ratios)}."
        )
    train, val = int(rows * ratios[0]), int(rows * ratios[1])
    if ratios[2] == 0:
        val = rows - train
    return Splits(range(train), range(train, train + val), range(train + val, rows))


def hold_out_tail(rows: int, validation: float = HELD_OUT) -> tuple[range, range]:
    """Training and validation rows of telemetry: the last share validates."""
    border = int(rows * (1 - validation))
    return range(border), range(border, rows)


def segment_ranges(segments: Iterable[range], rows: range) -> tuple[range, ...]:
    """The parts of `rows` inside each segment, empty ones left out."""
    cut = (range(max(s.start, rows.start), min(s.stop, rows.stop)) for s in segments)
    return tuple(part for part in cut if len(part))


def split_by_class(
    labels: np.ndarray, fraction: float = 0.2, *, seed: int = 42
) -> tuple[np.ndarray, np.ndarray]:
    """Sorted training and validation cases, `fraction` of every class for validation.

    A class of two or more gives at least one case and keeps at least one; a single case stays in
    training.
    """
    check_fraction(fraction)
    generator = np.random.default_rng(seed)
    chosen = []
    for label in np.unique(labels):
        cases = generator.permutation(np.flatnonzero(labels == label))
        count = min(max(1, round(fraction * len(cases))), len(cases) - 1)
        chosen.append(cases[:count])
    return complement(len(labels), np.concatenate(chosen))


def split_by_subject(
    subjects: np.ndarray, fraction: float = 0.2, *, seed: int = 42
) -> tuple[np.ndarray, np.ndarray]:
    """Sorted training and validation cases that share no subject."""
    check_fraction(fraction)
    people = np.unique(subjects)
    if len(people) < 2:
        raise DataError("A split by subject needs at least two subjects in the training cases.")
    count = min(max(1, round(fraction * len(people))), len(people) - 1)
    chosen = np.random.default_rng(seed).permutation(people)[:count]
    return complement(len(subjects), np.flatnonzero(np.isin(subjects, chosen)))


def check_fraction(fraction: float) -> None:
    """Refuse a validation share outside (0, 1)."""
    if not 0 < fraction < 1:
        raise ArgumentError(f"The validation fraction must be between 0 and 1, got {fraction}.")


def complement(count: int, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """All of `0 … count - 1` but `chosen`, and `chosen`, both sorted."""
    held = np.zeros(count, dtype=bool)
    held[chosen] = True
    return np.flatnonzero(~held), np.flatnonzero(held)
