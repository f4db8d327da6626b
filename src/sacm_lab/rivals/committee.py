"""Several networks that answer as one: what ensembles and averaged weights are made of.

A committee is a backbone of its task. In training it is its first member; in evaluation its rule
makes one answer of the members. It is saved and loaded like any network.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from sacm.backbones.base import Backbone, ClassifierNetwork, DetectorNetwork, ForecastNetwork
from sacm.errors import ArgumentError
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
    """Members, and a rule for their answers.

    Attributes:
        members: All networks.
        rule: Makes one answer of the members' in evaluation.
    """

    members: nn.ModuleList
    rule: Rule

    @property
    def networks(self) -> list[Any]:
        """The members as a list."""
        return list(self.members)

    def consult(self, ask: Ask, x: Tensor) -> Tensor:
        """The answer of the first member in training, of all in evaluation."""
        networks = self.networks
        return ask(networks[0], x) if self.training else self.rule(ask, networks, x)

    def prepare(self, train_x: Tensor) -> None:
        """Prepare each member."""
        for member in self.networks:
            member.prepare(train_x)

    def set_epoch(self, epoch: int) -> None:
        """Tell each member."""
        for member in self.networks:
            member.set_epoch(epoch)

    def auxiliary_loss(self) -> Tensor:
        """The sum of those of the members that are trained."""
        trained = [m for m in self.networks if any(p.requires_grad for p in m.parameters())]
        return torch.stack([member.auxiliary_loss() for member in trained]).sum()


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
        """That of the first member, or by the rule in evaluation."""
        return self.consult(lambda member, windows: member.training_loss(windows), x)

    def validation_loss(self, x: Tensor) -> Tensor:
        """By the rule."""
        return self.consult(lambda member, windows: member.validation_loss(windows), x)

    def anomaly_scores(self, x: Tensor, *, score: ScoreKind = "native") -> Tensor:
        """Scores `[B, L]` by the rule."""
        return self.consult(lambda member, windows: member.anomaly_scores(windows, score=score), x)


def make_committee(members: Sequence[Backbone], rule: Rule) -> Committee:
    """A committee for the task of its members."""
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
    committee.members, committee.rule = nn.ModuleList(members), rule
    return committee
