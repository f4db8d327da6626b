"""Fault augmentation, consistency and adversarial training."""

from __future__ import annotations

import pytest
import torch

from sacm.strategies import Step, TrainingContext, parse
from sacm.tasks import get_task
from sacm_lab.rivals.pgd import AttackRun
from tests.lab.rivals.cases import batches, network

CONTEXT = TrainingContext("forecasting", 2, 600, train=batches(), val=batches()[:1], seed=0)


def make_step(strategy: str = "raw") -> Step:
    torch.manual_seed(0)
    model = network("forecasting").train()
    chosen = parse(strategy)
    run = chosen.begin(model, CONTEXT)
    return Step(get_task("forecasting"), model, batches()[0], chosen, run)


def test_an_attack_stays_in_its_ball_and_raises_the_loss() -> None:
    step = make_step()
    x = step.batch.x
    moved = AttackRun(0.2, 7).attack(step)
    assert (moved - x).abs().max() <= 0.2 + 1e-6
    assert not moved.requires_grad
    assert step.model.training
    assert all(parameter.grad is None for parameter in step.model.parameters())
    with step.evaluating(), torch.no_grad():
        attacked, clean = step.loss(moved), step.loss(x)
        noise = step.loss(x + 0.2 * (2 * torch.rand_like(x) - 1).sign())
    assert attacked > max(clean, noise)


@pytest.mark.parametrize("families", ["transfer", "tested", "all"])
def test_augmentation_breaks_a_share_of_the_training_windows(families: str) -> None:
    torch.manual_seed(0)
    x = torch.randn(300, 24, 3)
    strategy = parse(f"augment(families={families},share=0.4)")
    changed = (strategy.inputs(x, training=True) != x).flatten(1).any(1).float().mean()
    assert 0.25 < changed < 0.5
    torch.testing.assert_close(strategy.inputs(x), x, rtol=0, atol=0)


def test_augmentation_with_transfer_families_is_exposure() -> None:
    x = torch.randn(64, 24, 3)
    torch.manual_seed(1)
    exposed = parse("expose").inputs(x, training=True)
    torch.manual_seed(1)
    torch.testing.assert_close(parse("augment").inputs(x, training=True), exposed, rtol=0, atol=0)


def test_consistency_is_the_distance_to_the_answer_for_the_clean_window() -> None:
    step = make_step("expose(consistency=2)")
    for dropout in (step.model.first, step.model.second):
        dropout.p = 0.0
    torch.manual_seed(3)
    found = step.run.loss(step)
    broken, clean = step.answer(), step.answer(step.batch.x).detach()
    assert not torch.equal(step.inputs, step.batch.x)
    expected = (broken - step.batch.y).abs().mean() + 2 * (broken - clean).abs().mean()
    torch.testing.assert_close(found, expected)
