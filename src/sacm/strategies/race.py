"""A race: several strategies begin, and the one with the best validation goes on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from sacm.errors import ArgumentError
from sacm.files import read_json, write_json
from sacm.strategies.base import Strategy
from sacm.strategies.combined import Combined
from sacm.strategies.registry import canonical, parse, parts_of, register

RECORD = "race.json"
LEAD = 0.005  # smaller differences in validation did not tell which strategy is better at test


@register("race", aliases=("auto",))
@dataclass(frozen=True)
class Race(Strategy):
    """Train several strategies for a few epochs and go on with the best (auto: raw and sacm).

    All begin from the same weights and see the same batches. The score of each is its mean
    validation result from the second epoch on; the finished run is that of the winner.

    members: The strategies, separated by commas; the first wins unless another is 0.5 % better.
    epochs: Epochs of the race.
    """

    combines: ClassVar[bool] = False

    members: tuple[str, ...] = ("raw", "sacm")
    epochs: int = 4

    def __post_init__(self) -> None:
        if self.epochs < 1:
            raise ArgumentError(f"race(epochs=…) must be 1 or more, got {self.epochs}.")
        members = tuple(map(canonical, self.members))
        if len(set(members)) < max(2, len(members)):
            raise ArgumentError(f"race needs two or more different strategies, got {members}.")
        if any(isinstance(parse(member), Race) for member in members):
            raise ArgumentError(f"a race cannot be a member of a race: {', '.join(members)}.")
        object.__setattr__(self, "members", members)  # frozen, and spelled in one way

    def check_task(self, task: str) -> None:
        for member in self.members:
            parse(member).check_task(task)

    def load(self, folder: Path) -> Strategy:
        """The winner of a finished run."""
        result = RaceResult.load(folder)
        return Winner(parts_of(parse(result.winner).load(folder)), result)


@dataclass(frozen=True)
class RaceResult:
    """Who won a race, and by how much."""

    winner: str
    scores: dict[str, float]  # the mean validation result of each member
    margin: float  # of the winner over the best other score, as a share of that one
    extra_seconds: float  # of the other members
    sentence: str  # the same for people
    # Of candidates that are no strategies: those that the run is the mean of, all of them with
    # errors, weights, steps and seconds, and the validation result of the mean.
    members: list[dict[str, Any]] = field(default_factory=list)
    table: list[dict[str, Any]] = field(default_factory=list)
    error: float | None = None

    @classmethod
    def load(cls, folder: Path) -> RaceResult:
        """Read the result from the folder of a run."""
        return cls(**read_json(folder / RECORD))

    def save(self, folder: Path) -> None:
        """Write the result into the folder of a run."""
        write_json(folder / RECORD, asdict(self))


@dataclass(frozen=True, eq=False)
class Winner(Combined):
    """The strategy that won, as it is in a finished run; saved, it can be loaded by its race."""

    result: RaceResult

    def save(self, folder: Path) -> None:
        super().save(folder)
        self.result.save(folder)


def choose_winner(scores: dict[str, float], *, select: str) -> str:
    """The best member by its score, if it leads the first one by enough; else the first.

    Example:
        >>> choose_winner({"raw": 1.0, "sacm": 0.998}, select="mae")
        'raw'
    """
    first, sign = next(iter(scores)), 1 if select == "accuracy" else -1  # more is better, or less
    best = max(scores, key=lambda name: sign * scores[name])
    gain = sign * (scores[best] - scores[first]) / max(abs(scores[first]), 1e-12)
    return best if gain > LEAD else first


def decide(
    validation: dict[str, Sequence[float]], seconds: dict[str, float], *, select: str
) -> RaceResult:
    """Find the winner by validation results of every epoch; only of accuracies more is better."""
    # The first epoch says little; where it is the only one, it decides.
    counted = {name: values[1:] or values for name, values in validation.items()}
    scores = {name: sum(values) / len(values) for name, values in counted.items()}
    winner, sign = choose_winner(scores, select=select), 1 if select == "accuracy" else -1
    others = sorted(scores.keys() - {winner}, key=lambda name: (-sign * scores[name], name))
    margin = sign * (scores[winner] - scores[others[0]]) / max(abs(scores[others[0]]), 1e-12)
    last = max(map(len, validation.values()))
    epochs = f"mean of epochs 2 to {last}" if last > 2 else f"epoch {last}"
    how = f"by {margin:.1%}" if margin >= 0 else f"as none leads it by more than {LEAD:.1%}"
    sentence = (
        f"{winner} won the race {how}: validation {select}, {epochs}, {scores[winner]:.4g} against "
        f"{', '.join(f'{name} {scores[name]:.4g}' for name in others)}."
    )
    extra = sum(spent for name, spent in seconds.items() if name != winner)
    return RaceResult(winner, scores, margin, round(extra, 3), sentence)
