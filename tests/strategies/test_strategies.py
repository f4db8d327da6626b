"""Strategies: what each does to a model, its inputs and its loss."""

from __future__ import annotations

from typing import NamedTuple

import pytest
import torch
from torch import Tensor, nn

import sacm
from sacm.errors import ArgumentError
from sacm.strategies import TrainingContext, canonical, parse
from sacm.strategies.linear_estimator import LinearEstimator
from sacm.strategies.selective import ResidualSpread, SelectiveRun


class Batch(NamedTuple):
    x: Tensor
    y: Tensor
    positions: Tensor


class Net(nn.Module):
    """Two dropouts of different rates."""

    def __init__(self, length: int = 16, horizon: int = 10, channels: int = 2) -> None:
        super().__init__()
        self.first = nn.Dropout(0.1)
        self.hidden = nn.Linear(length, 32)
        self.second = nn.Dropout(0.3)
        self.head = nn.Linear(32, horizon)

    def forward(self, x: Tensor) -> Tensor:
        z = self.hidden(self.first(x.transpose(1, 2)))
        return self.head(self.second(z)).transpose(1, 2)


def _batches(count: int = 6) -> list[Batch]:
    generator = torch.Generator().manual_seed(0)
    return [
        Batch(
            torch.randn(8, 16, 2, generator=generator),
            torch.randn(8, 10, 2, generator=generator),
            torch.arange(8) + 8 * number,
        )
        for number in range(count)
    ]


def _context(task: str = "forecasting") -> TrainingContext:
    return TrainingContext(task, channels=2, rows=100, train=_batches(), val=_batches(1), seed=0)


@pytest.mark.parametrize(
    ("text", "spelling"),
    [
        ("raw", "raw"),
        ("fixed(0.2)", "fixed(p=0.2)"),
        ("fixed(p=0.2)", "fixed(p=0.2)"),
        ("sacm(p_max=0.5)", "sacm"),
        ("sacm(detrend=none, log_norm=false)", "sacm(detrend=none,log_norm=false)"),
        ("selective + sacm", "selective+sacm"),
        ("hard_denoise(keep=0.1)", "hard_denoise"),
    ],
)
def test_one_spelling_for_one_meaning(text: str, spelling: str) -> None:
    assert canonical(text) == spelling
    assert canonical(spelling) == spelling


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sacmm", "Did you mean 'sacm'"),
        ("fixed", "needs p"),
        ("fixed(x)", "expected a number"),
        ("fixed(1.5)", r"\[0, 1\)"),
        ("sacm(foo=1)", "no option 'foo'"),
        ("sacm(log_norm=maybe)", "expected true or false"),
        ("sacm(p_min=0.6)", "p_min"),
        ("sacm(detrend=cubic)", "detrend must be one of"),
        ("raw+raw", "twice"),
        ("selective(masks=all)", "masks"),
        ("hard_denoise(keep=0)", "keep"),
        ("", "unknown strategy"),
    ],
)
def test_a_wrong_strategy_is_one_sentence(text: str, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        parse(text)


def test_raw_changes_nothing() -> None:
    model = Net()
    run = parse("raw").begin(model, _context())
    assert (model.first.p, model.second.p) == (0.1, 0.3)
    assert run.scalars() == []
    assert run.rates() is None


def test_fixed_sets_every_rate() -> None:
    model = Net()
    parse("fixed(0.25)").begin(model, _context())
    assert model.first.p == model.second.p == 0.25


def test_sacm_is_the_method_with_its_settings() -> None:
    model = Net()
    run = parse("sacm(p_max=0.3,detrend=endpoint,skip=second)").begin(model, _context())
    model(torch.randn(8, 16, 2))
    assert len([p for p in run.scalars() if p.numel()]) == 4
    rates = run.rates()
    assert rates is not None
    assert float(rates.max()) <= 0.3
    assert type(model.second) is nn.Dropout


def test_learned_global_is_one_rate_for_all_that_learns() -> None:
    model = Net()
    run = parse("learned_global").begin(model, _context())
    model(torch.randn(8, 16, 2)).square().mean().backward()
    assert torch.allclose(run.rates(), torch.full((8,), 0.1))
    (logit,) = run.scalars()
    assert logit.grad is not None
    assert float(logit.grad.abs()) > 0
    with torch.no_grad():
        logit.fill_(100.0)
    model(torch.randn(8, 16, 2))
    assert torch.allclose(run.rates(), torch.full((8,), 0.5))


@pytest.mark.parametrize("length", [24, 25, 96])
def test_hard_denoise_keeps_the_largest_coefficients(length: int) -> None:
    time = torch.arange(length, dtype=torch.float64)
    tone = torch.sin(2 * torch.pi * 3 * time / length)
    noisy = tone + 0.01 * torch.randn(length, generator=torch.Generator().manual_seed(0))
    filtered = parse("hard_denoise(keep=0.01)").inputs(noisy.view(1, -1, 1))
    assert torch.allclose(filtered[0, :, 0], tone, atol=0.01)
    spectrum = torch.fft.rfft(filtered[0, :, 0])
    assert int((spectrum.abs() > 1e-9).sum()) == 1


def test_lowpass_keeps_the_slow_part() -> None:
    x = torch.randn(2, 40, 3)
    slow = parse("hard_denoise(keep=0.2,kind=lowpass)").inputs(x)
    spectrum = torch.fft.rfft(slow, dim=1).abs()
    assert torch.allclose(spectrum[:, 4:], torch.zeros(()), atol=1e-4)
    assert torch.allclose(spectrum[:, :4], torch.fft.rfft(x, dim=1).abs()[:, :4], atol=1e-4)


def test_the_linear_estimator_has_the_published_size() -> None:
    assert sum(p.numel() for p in LinearEstimator(24, 60).parameters()) == 3000


def test_the_uncertainty_mask_leaves_out_the_most_variable_steps() -> None:
    spread = ResidualSpread(rows=20, channels=1, share=0.1, device=torch.device("cpu"))
    assert spread.keep(torch.arange(20).view(1, -1)) is None
    steady = torch.ones(1, 20, 1)
    unsteady = steady.clone()
    unsteady[0, [4, 11], 0] = 9.0
    for residual in (steady, unsteady):
        spread.add(torch.arange(20).view(1, -1), residual)
    spread.begin_epoch()
    kept = spread.keep(torch.arange(20).view(1, -1))
    assert kept is not None
    assert (~kept).flatten().nonzero().flatten().tolist() == [4, 11]


def test_the_anomaly_mask_leaves_out_where_the_model_wins_by_most() -> None:
    estimator = LinearEstimator(16, 10).requires_grad_(False)
    run = SelectiveRun(0.1, spread=None, estimator=estimator)
    batch = _batches(1)[0]
    prediction = torch.randn(8, 10, 2)
    kept = run.keep(batch, prediction)
    advantage = (batch.y - prediction).abs() - (batch.y - estimator(batch.x)).abs()
    assert kept is not None
    assert torch.equal((~kept).sum(dim=1), torch.ones(8, 2, dtype=torch.int64))
    assert torch.equal((~kept).int().argmax(dim=1), advantage.argmin(dim=1))


def test_selective_and_sacm_are_both_in_force_together() -> None:
    model = Net()
    run = parse("selective+sacm").begin(model, _context())
    for epoch in (1, 2):
        run.begin_epoch(epoch)
        for batch in _batches():
            prediction = model(batch.x)
            kept = run.keep(batch, prediction.detach())
    assert run.rates() is not None
    assert kept is not None
    assert 0 < float((~kept).float().mean()) < 0.5
    state = run.state_dict()
    fresh = parse("selective+sacm").begin(sacm.detach(model), _context())
    fresh.load_state_dict(state)
    again = fresh.keep(_batches()[-1], prediction.detach())
    assert torch.equal(kept, again)


def test_selective_refuses_other_tasks() -> None:
    with pytest.raises(ArgumentError, match="selective works on forecasts"):
        parse("selective").begin(Net(), _context("anomaly"))
