from __future__ import annotations

import math

import torch
from torch import Tensor

from sacm import backbones
from sacm.backbones.anomtrans import AnomTrans, mean_distance
from sacm.backbones.blocks.normalisation import symmetric_distance

from .cases import noise


def detector(**settings: object) -> AnomTrans:
    torch.manual_seed(0)
    return backbones.build(
        "AnomTrans", "anomaly", input_len=20, channels=3, size="small", **settings
    )


def gradients(model: AnomTrans, loss: Tensor) -> dict[str, Tensor]:
    names, parameters = zip(*model.named_parameters(), strict=True)
    found = torch.autograd.grad(loss, parameters, retain_graph=True, allow_unused=True)
    return {
        name: torch.zeros_like(p) if g is None else g
        for name, p, g in zip(names, parameters, found, strict=True)
    }


def test_prior_is_a_gaussian_of_one_width_per_step_and_head() -> None:
    attention = detector().layers[0].attention
    raw = noise(2, 20, 2)
    found = attention.prior(raw)
    for b, h, i in ((0, 0, 3), (1, 1, 0), (1, 0, 19)):
        sigma = 3 ** (1 / (1 + math.exp(-5 * raw[b, i, h].item())) + 1e-5) - 1
        row = [math.exp(-((i - j) ** 2) / (2 * sigma**2)) for j in range(20)]
        expected = torch.tensor([value / sum(row) for value in row])
        torch.testing.assert_close(found[b, h, i], expected, atol=1e-5, rtol=1e-4)


def test_prior_of_vanishing_width_has_finite_gradients() -> None:
    attention = detector().layers[0].attention
    raw = torch.full((1, 20, 2), -100.0, requires_grad=True)
    prior = attention.prior(raw)
    torch.testing.assert_close(prior[0, 0], torch.eye(20))
    prior.log1p().sum().backward()
    assert raw.grad.isfinite().all()


def test_both_views_are_distributions_also_in_training() -> None:
    _, series, priors = detector(dropout=0.5).train()(noise(4, 20, 3))
    for relation in (*series, *priors):
        torch.testing.assert_close(relation.sum(dim=-1), torch.ones(4, 2, 20))


def test_loss_is_twice_the_error_as_a_number() -> None:
    model, x = detector().eval(), noise(4, 20, 3)
    error = (model(x)[0] - x).square().mean()
    assert model.training_loss(x).item() == 2 * error.item()
    assert model.validation_loss(x).item() == error.item()


def test_series_term_never_moves_a_prior() -> None:
    model, x = detector(), noise(4, 20, 3)
    _, series, priors = model(x)
    found = gradients(model, mean_distance(series, priors))
    assert all((g == 0).all() for name, g in found.items() if ".sigma." in name)
    assert found["layers.1.attention.query.weight"].abs().sum() > 0


def test_prior_term_never_moves_the_last_series() -> None:
    model, x = detector(), noise(4, 20, 3)
    _, series, priors = model(x)
    found = gradients(model, mean_distance(priors, series))
    for name in ("query", "key"):
        assert (found[f"layers.1.attention.{name}.weight"] == 0).all()
    assert found["layers.1.attention.sigma.weight"].abs().sum() > 0


def test_one_backward_equals_both_phases_of_the_minimax() -> None:
    model, x = detector().eval(), noise(4, 20, 3)
    reconstruction, series, priors = model(x)
    error = (reconstruction - x).square().mean()
    minimise = gradients(model, error + 3 * mean_distance(priors, series))
    maximise = gradients(model, error - 3 * mean_distance(series, priors))
    both = gradients(model, model.training_loss(x))
    for name, gradient in both.items():
        torch.testing.assert_close(gradient, minimise[name] + maximise[name], atol=1e-5, rtol=1e-4)


def test_training_drives_the_views_apart() -> None:
    model = detector()
    time = torch.arange(20)[None, :, None]
    phase = 6.28 * torch.rand(64, 1, 3, generator=torch.Generator().manual_seed(0))
    x = torch.sin(0.6 * time + phase)

    def distance() -> float:
        _, series, priors = model.eval()(x)
        pairs = zip(series, priors, strict=True)
        return sum(symmetric_distance(s, p).mean().item() for s, p in pairs)

    before, optimizer = distance(), torch.optim.Adam(model.parameters(), 1e-3)
    model.train()
    for _ in range(40):
        optimizer.zero_grad()
        model.training_loss(x).backward()
        optimizer.step()
    assert distance() > 1.2 * before


def test_score_weighs_the_error_by_closeness_within_the_window() -> None:
    model, x = detector(temperature=2.0).eval(), noise(4, 20, 3)
    with torch.no_grad():
        reconstruction, series, priors = model(x)
        pairs = zip(series, priors, strict=True)
        distance = sum(symmetric_distance(s, p) for s, p in pairs)
        error = (reconstruction - x).square().mean(dim=2)
        expected = torch.exp(-2 * distance) / torch.exp(-2 * distance).sum(dim=1, keepdim=True)
        torch.testing.assert_close(model.anomaly_scores(x), expected * error)
        plain = (reconstruction - x).abs().mean(dim=2)
        torch.testing.assert_close(model.anomaly_scores(x, score="reconstruction"), plain)
