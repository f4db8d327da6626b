"""Fault augmentation, consistency and adversarial training."""

from __future__ import annotations

import pytest
import torch

from sacm.errors import ArgumentError
from sacm.strategies import TrainingContext, parse
from sacm.strategies.expose import ConsistencyRun
from sacm.strategies.pgd import AttackRun
from sacm.tasks.base import NetworkStep
from sacm.tasks.forecasting import forecast
from sacm.testing.strategy_cases import batches, network

CONTEXT = TrainingContext("forecasting", 2, 600, train=batches(), val=batches()[:1], seed=0)


def make_step() -> NetworkStep:
    torch.manual_seed(0)
    model = network("forecasting").train()
    return NetworkStep(
        model, batches()[0], forecast, lambda answer, batch: (answer - batch.y).square().mean()
    )


def test_an_attack_stays_in_its_ball_and_raises_the_loss() -> None:
    step = make_step()
    x = step.batch.x
    moved = AttackRun(0.2, 7).change_inputs(x, step)
    assert (moved - x).abs().max() <= 0.2 + 1e-6
    assert not moved.requires_grad
    assert step.model.training
    assert all(parameter.grad is None for parameter in step.model.parameters())
    with step.network_in_evaluation(), torch.no_grad():
        attacked, clean = step.loss(moved), step.loss(x)
        noise = step.loss(x + 0.2 * (2 * torch.rand_like(x) - 1).sign())
    assert attacked > max(clean, noise)


def test_an_attack_on_a_linear_network_ends_in_the_corner() -> None:
    step = make_step()
    linear = NetworkStep(step.model, step.batch, forecast, lambda answer, batch: answer.sum())
    moved = AttackRun(0.1, 5).change_inputs(step.batch.x, linear)
    with step.network_in_evaluation():
        x = step.batch.x.clone().requires_grad_()
        (slope,) = torch.autograd.grad(linear.loss(x), x)
    torch.testing.assert_close(moved, step.batch.x + 0.1 * slope.sign())


@pytest.mark.parametrize("families", ["transfer", "tested", "all"])
def test_augmentation_breaks_a_share_of_the_training_windows(families: str) -> None:
    torch.manual_seed(0)
    x = torch.randn(300, 24, 3)
    strategy = parse(f"augment(families={families},share=0.4)")
    changed = (strategy.training_inputs(x) != x).flatten(1).any(1).float().mean()
    assert 0.25 < changed < 0.5
    torch.testing.assert_close(strategy.inputs(x), x, rtol=0, atol=0)


def test_augmentation_with_transfer_families_is_exposure() -> None:
    x = torch.randn(64, 24, 3)
    torch.manual_seed(1)
    exposed = parse("expose").training_inputs(x)
    torch.manual_seed(1)
    torch.testing.assert_close(parse("augment").training_inputs(x), exposed, rtol=0, atol=0)


def test_consistency_is_the_distance_to_the_answer_for_the_clean_window() -> None:
    step = make_step()
    run = parse("expose(consistency=2)").begin(step.model, CONTEXT)
    assert isinstance(run, ConsistencyRun)
    with step.network_in_evaluation():
        broken = step.answer(step.batch.x + 1)
        clean = step.answer(step.batch.x).detach()
    found = run.extra_loss(step, broken)
    torch.testing.assert_close(found, 2 * (broken - clean).abs().mean())
    assert type(parse("expose").begin(step.model, CONTEXT)).__name__ == "StrategyRun"


def test_wrong_options_and_tasks_are_one_sentence() -> None:
    for text in ("pgd(0)", "pgd(steps=0)", "augment(families=none)", "augment(share=2)"):
        with pytest.raises(ArgumentError, match=text.partition("(")[0]):
            parse(text)
    with pytest.raises(ArgumentError, match="consistency"):
        parse("expose(consistency=-1)")
    with pytest.raises(ArgumentError, match="consistency"):
        parse("expose(consistency=1)").check_task("anomaly")
    with pytest.raises(ArgumentError, match="pgd is for forecasting and classification"):
        parse("pgd").check_task("anomaly")
