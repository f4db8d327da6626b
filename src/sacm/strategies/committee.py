"""Several networks that train and answer as one: what ensembles and averaged weights are made of.

A committee is a backbone of its task. In training it is the member whose turn it is; in evaluation
its rule makes one answer of the members. It is saved and loaded like any network.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from sacm.backbones.base import Backbone, ClassifierNetwork, DetectorNetwork, ForecastNetwork
from sacm.errors import ArgumentError
from sacm.strategies.base import StrategyRun, TrainingStep
from sacm.types import ScoreKind

Ask = Callable[[Any, Tensor], Tensor]  # a member and windows [B, L, C] to an answer
Rule = Callable[[Ask, Sequence[Any], Tensor], Tensor]


def answer_by_mean(ask: Ask, members: Sequence[Any], x: Tensor) -> Tensor:
    """The mean of all members' answers."""
    return torch.stack([ask(member, x) for member in members]).mean(dim=0)


def answer_by_first(ask: Ask, members: Sequence[Any], x: Tensor) -> Tensor:
    """The answer of the first member."""
    return ask(members[0], x)


def answer_by_last(ask: Ask, members: Sequence[Any], x: Tensor) -> Tensor:
    """The answer of the last member."""
    return ask(members[-1], x)


class Committee(Backbone):
    """Members, a rule for their answers, and whose turn it is to be trained.

    Attributes:
        members: All networks.
        rule: Makes one answer of the members' in evaluation.
        turn: The member that a training forward runs.
        apart: Whether members learn by themselves, each from batches of its own.
    """

    members: nn.ModuleList
    rule: Rule
    turn: int
    apart: bool

    def seat(self, members: Sequence[Backbone], rule: Rule, *, apart: bool) -> None:
        """Take the members in."""
        self.members, self.rule, self.turn = nn.ModuleList(members), rule, 0
        self.apart = apart

    @property
    def all_members(self) -> list[Any]:
        """The members as a list."""
        return list(self.members)

    @property
    def trained(self) -> list[Any]:
        """The members with parameters to train."""
        return [m for m in self.members if any(p.requires_grad for p in m.parameters())]

    def turns(self) -> Iterator[None]:
        """Give each trained member its turn."""
        for turn in range(len(self.trained)):
            self.turn = turn
            yield
        self.turn = 0

    def consult(self, ask: Ask, x: Tensor) -> Tensor:
        """The answer of the member whose turn it is in training, of all in evaluation."""
        members = self.all_members
        return ask(members[self.turn], x) if self.training else self.rule(ask, members, x)

    def prepare(self, train_x: Tensor) -> None:
        """Prepare each member."""
        for member in self.all_members:
            member.prepare(train_x)

    def set_epoch(self, epoch: int) -> None:
        """Tell each member."""
        for member in self.all_members:
            member.set_epoch(epoch)

    def auxiliary_loss(self) -> Tensor:
        """That of the member whose turn it is."""
        loss: Tensor = self.all_members[self.turn].auxiliary_loss()
        return loss


class ForecastCommittee(Committee, ForecastNetwork):
    """Forecasters that answer as one."""

    def forward(
        self, x: Tensor, stamps: Tensor | None = None, covariates: Tensor | None = None
    ) -> Tensor:
        """Forecast `[B, H, C]`."""
        extra: tuple[Tensor | None, ...] = () if stamps is None else (stamps,)
        extra = extra if covariates is None else (stamps, covariates)
        return self.consult(lambda member, windows: member(windows, *extra), x)


class ClassifierCommittee(Committee, ClassifierNetwork):
    """Classifiers that answer as one: by the logarithm of what the rule makes of probabilities."""

    def forward(self, x: Tensor) -> Tensor:
        """Logits `[B, K]`."""
        if self.training:
            return self.consult(lambda member, windows: member(windows), x)
        chances = self.consult(lambda member, windows: member(windows).softmax(dim=-1), x)
        return chances.clamp_min(torch.finfo(chances.dtype).tiny).log()


class DetectorCommittee(Committee, DetectorNetwork):
    """Detectors that answer as one."""

    def training_loss(self, x: Tensor) -> Tensor:
        """That of the member whose turn it is, or by the rule in evaluation."""
        return self.consult(lambda member, windows: member.training_loss(windows), x)

    def validation_loss(self, x: Tensor) -> Tensor:
        """By the rule."""
        return self.consult(lambda member, windows: member.validation_loss(windows), x)

    def anomaly_scores(self, x: Tensor, *, score: ScoreKind = "native") -> Tensor:
        """Scores `[B, L]` by the rule."""
        return self.consult(lambda member, windows: member.anomaly_scores(windows, score=score), x)


def make_committee(members: Sequence[Backbone], rule: Rule, *, apart: bool = False) -> Committee:
    """A committee for the task of its members.

    Args:
        members: Networks of one task and one size.
        rule: Makes one answer of the members' in evaluation.
        apart: Whether members learn by themselves, each from batches of its own.

    Raises:
        ArgumentError: The networks are of no task of this package.
    """
    first = members[0]
    sizes: dict[str, Any] = {"input_len": first.input_len, "channels": first.channels}
    committee: Committee
    if isinstance(first, ForecastNetwork):
        committee = ForecastCommittee(horizon=first.horizon, **sizes)
    elif isinstance(first, ClassifierNetwork):
        committee = ClassifierCommittee(classes=first.classes, **sizes)
    elif isinstance(first, DetectorNetwork):
        committee = DetectorCommittee(**sizes)
    else:
        raise ArgumentError(f"{type(first).__name__} is a network of no known task.")
    committee.seat(members, rule, apart=apart)
    return committee


def turns(model: nn.Module) -> Iterator[None]:
    """One turn for an ordinary network, one for every trained member of a committee."""
    if isinstance(model, Committee):
        yield from model.turns()
    else:
        yield


def count_apart(model: nn.Module) -> int:
    """How many networks learn from batches of their own; 1 where all learn from the same."""
    return len(model.trained) if isinstance(model, Committee) and model.apart else 1


def check_processes(model: nn.Module, processes: int) -> None:
    """Refuse several trained networks in several processes, which would wait for each other's.

    Raises:
        ArgumentError: There are several of both.
    """
    if processes > 1 and isinstance(model, Committee) and len(model.trained) > 1:
        raise ArgumentError(
            f"the strategy trains {len(model.trained)} networks, which works in one process alone: "
            "use devices=1."
        )


@contextmanager
def acting_in_evaluation(model: nn.Module) -> Iterator[None]:
    """Evaluation mode of a network in training, for a while.

    Of a committee, only the member whose turn it is: without dropout and without a trace in batch
    statistics, but still itself.
    """
    committee = next((m for m in model.modules() if isinstance(m, Committee)), None)
    acting = model if committee is None else committee.all_members[committee.turn]
    acting.eval()
    try:
        yield
    finally:
        acting.train()


class MemberRuns(StrategyRun):
    """One strategy at work in every member of a committee; the member whose turn it is acts."""

    def __init__(self, committee: Committee, runs: Sequence[StrategyRun]) -> None:
        self.committee, self.runs = committee, list(runs)

    @property
    def current(self) -> StrategyRun:
        """The run of the member whose turn it is."""
        return self.runs[self.committee.turn]

    def begin_epoch(self, epoch: int) -> None:
        for run in self.runs:
            run.begin_epoch(epoch)

    def keep(self, batch: Any, prediction: Tensor) -> Tensor | None:
        return self.current.keep(batch, prediction)

    def change_inputs(self, x: Tensor, step: TrainingStep) -> Tensor:
        return self.current.change_inputs(x, step)

    def losses(self, answer: Tensor, target: Tensor) -> Tensor | None:
        return self.current.losses(answer, target)

    def detector_loss(self, model: Any, x: Tensor) -> Tensor | None:
        return self.current.detector_loss(model, x)

    def extra_loss(self, step: TrainingStep, answer: Tensor | None) -> Tensor | None:
        return self.current.extra_loss(step, answer)

    def after_step(self) -> None:
        for run in self.runs:
            run.after_step()

    def scalars(self) -> list[nn.Parameter]:
        return [scalar for run in self.runs for scalar in run.scalars()]

    def rates(self) -> Tensor | None:
        return self.current.rates()

    def state_dict(self) -> dict[str, Any]:
        return {str(i): run.state_dict() for i, run in enumerate(self.runs)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        for i, run in enumerate(self.runs):
            run.load_state_dict(state[str(i)])
