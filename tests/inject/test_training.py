"""What a training loop does with an attached model."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

import sacm

from . import models
from .models import CHANNELS, attached, windows


def test_scores_and_rates_are_those_of_the_scorer_and_the_mapper() -> None:
    model, x = models.MLP(), windows()
    modulator = attached(model)
    assert modulator.rates is None
    assert modulator.scores is None
    model(x)
    scores = sacm.SpectralScorer(CHANNELS)(x).scores.detach()
    torch.testing.assert_close(modulator.scores, scores)
    torch.testing.assert_close(modulator.rates, sacm.RateMapper()(scores).detach())
    assert not modulator.rates.requires_grad
    assert not modulator.scores.requires_grad
    model.eval()(windows(3))
    assert modulator.rates.shape == (6,), "those of the last training forward"


def test_the_scalars_get_the_gradient_of_the_composed_formula() -> None:
    """The whole chain, scorer to site, against plain tensor operations with the same masks."""
    torch.manual_seed(0)
    model, x = models.MLP(), windows()
    modulator = attached(model)
    modulator.checks_left = 0  # hooks see the verification too
    seen = []
    for site in (model.hidden[2], model.second[1]):
        site.register_forward_hook(lambda _, args, out: seen.append((args[0] != 0, out != 0)))
    model(x).square().sum().backward()
    found = [p.grad.clone() for p in modulator.parameters()]

    model.zero_grad()
    rates = modulator.mapper(modulator.scorer(x).scores)
    h = model.hidden[1](model.hidden[0](x.flatten(1)))
    for index, following in enumerate((model.second[0], model.head)):
        alive, kept = seen[index]
        keep = (1 - rates)[:, None]
        mask = torch.where(alive, kept, torch.ones_like(kept)).to(h.dtype)
        # Where the input is 0 the mask is not to be seen, and does not matter.
        h = following(h * (mask + keep - keep.detach()) / keep)
    h.square().sum().backward()
    for parameter, gradient in zip(modulator.parameters(), found, strict=True):
        torch.testing.assert_close(gradient, parameter.grad, rtol=1e-4, atol=1e-6)


def test_training_moves_the_scalars_and_lowers_the_loss() -> None:
    torch.manual_seed(0)
    model = models.MLP()
    modulator = attached(model)
    before = [p.detach().clone() for p in modulator.parameters()]
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    losses = []
    for step in range(60):
        x = windows(16, seed=step)
        loss = (model(x) - x[:, :5].mean(dim=2)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert sum(losses[-10:]) < 0.7 * sum(losses[:10])
    for parameter, old in zip(modulator.parameters(), before, strict=True):
        assert not torch.equal(parameter, old)


def test_gradients_of_several_batches_add_up() -> None:
    torch.manual_seed(0)
    model = models.MLP()
    modulator = attached(model)
    batches = [windows(6, seed=1), windows(4, seed=2)]

    def run(seed: int, x: Tensor) -> Tensor:
        torch.manual_seed(seed)
        return model(x).square().mean()

    single = []
    for seed, x in enumerate(batches):
        model.zero_grad()
        run(seed, x).backward()
        single.append([p.grad.clone() for p in model.parameters()])
    model.zero_grad()
    for seed, x in enumerate(batches):
        run(seed, x).backward()
    accumulated = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    sum(run(seed, x) for seed, x in enumerate(batches)).backward()  # two graphs alive at once
    together = [p.grad.clone() for p in model.parameters()]
    for first, second, added, joint in zip(*single, accumulated, together, strict=True):
        torch.testing.assert_close(added, first + second)
        torch.testing.assert_close(joint, first + second)
    assert modulator.rates.shape == (4,)


@pytest.mark.parametrize("coverage", ["modules", "all"])
def test_autocast_keeps_the_scorer_in_float32(coverage: str) -> None:
    torch.manual_seed(0)
    model = models.Encoder(batch_first=True)
    modulator = attached(model, coverage=coverage)
    model(windows())
    rates = modulator.rates
    modulator.checks_left = 0  # hooks see the verification too
    dtypes = []
    model.encoder.layers[0].dropout1.register_forward_hook(
        lambda _, args, out: dtypes.append((args[0].dtype, out.dtype))
    )
    with torch.autocast("cpu", torch.bfloat16):
        out = model(windows())
        loss = out.float().square().mean()
    loss.backward()
    assert out.dtype == torch.bfloat16
    assert dtypes == [(torch.bfloat16, torch.bfloat16)]
    assert modulator.rates.dtype == torch.float32
    assert torch.equal(modulator.rates, rates)
    for parameter in modulator.parameters():
        assert parameter.grad.isfinite().all()
        assert parameter.grad.abs().max() > 0


def test_a_model_in_half_precision_trains() -> None:
    torch.manual_seed(0)
    model = models.MLP().bfloat16()
    modulator = attached(model, example_inputs=windows().bfloat16())
    model(windows().bfloat16()).sum().backward()
    assert modulator.rates.dtype == torch.float32
    assert all(p.grad.isfinite().all() for p in model.parameters())


def test_a_window_that_needs_a_gradient_gets_it() -> None:
    """A trained front end before the attached model, or an adversary, differentiates the rates."""
    torch.manual_seed(0)
    model = models.MLP().double()
    modulator = attached(model, example_inputs=windows().double())
    x = windows().double().requires_grad_()
    with torch.no_grad():
        model.head.weight.zero_()
        model.head.bias.zero_()
    torch.manual_seed(1)
    model(x)
    weights = torch.randn(6, dtype=torch.float64)
    (found,) = torch.autograd.grad((modulator.state.rates * weights).sum(), x)
    rates = sacm.RateMapper().double()(sacm.SpectralScorer(CHANNELS).double()(x).scores)
    (expected,) = torch.autograd.grad((rates * weights).sum(), x)
    torch.testing.assert_close(found, expected)
