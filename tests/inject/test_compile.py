"""`torch.compile` of attached models; slow, for the compiler takes its time.

The default backend writes and compiles C++; where only the tracing matters, one that does not.
"""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

import sacm

from . import models
from .models import CHANNELS, windows

pytestmark = [
    pytest.mark.compile,
    # The compiler's own: complex numbers fall back to eager, TF32 and the like.
    pytest.mark.filterwarnings("ignore::UserWarning:torch"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]


@pytest.fixture(autouse=True)
def _fresh_compiler() -> None:
    torch._dynamo.reset()


class Wide(nn.Module):
    """One site whose output is the result, so that the mask is to be seen."""

    def __init__(self) -> None:
        super().__init__()
        self.linear, self.drop = nn.Linear(CHANNELS, 256), nn.Dropout(0.1)

    def forward(self, x: Tensor) -> Tensor:
        return self.drop(self.linear(x))


@pytest.mark.parametrize("probed", [True, False])
def test_a_compiled_model_trains(probed: bool) -> None:
    torch.manual_seed(0)
    model = models.Encoder(batch_first=True)
    modulator = sacm.attach(model, channels=CHANNELS, example_inputs=windows() if probed else None)
    compiled = torch.compile(model, backend="aot_eager")
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    before = [p.detach().clone() for p in modulator.parameters()]
    for seed in range(3):
        optimizer.zero_grad()
        loss = compiled(windows(seed=seed)).square().mean()
        loss.backward()
        optimizer.step()
        assert loss.isfinite()
        assert modulator.rates.shape == (6,)
        if seed == 0:
            fresh = sacm.RateMapper()(sacm.SpectralScorer(CHANNELS)(windows()).scores)
            torch.testing.assert_close(modulator.rates, fresh.detach(), rtol=1e-4, atol=1e-5)
    assert all(not torch.equal(p, b) for p, b in zip(modulator.parameters(), before, strict=True))


def test_a_probe_that_comes_while_compiling_is_not_compiled() -> None:
    model = models.MLP()
    modulator = sacm.attach(model, channels=CHANNELS)
    graphs: list[torch.fx.GraphModule] = []

    def count(graph: torch.fx.GraphModule, _: list[Tensor]) -> torch.fx.GraphModule:
        graphs.append(graph)
        return graph

    torch.compile(model, backend=count)(windows()).sum().backward()
    assert modulator.probed
    assert len(graphs) <= 2  # before the probe, and after it


def test_masks_and_gradients_of_a_compiled_model_are_right() -> None:
    torch.manual_seed(0)
    model, x = Wide(), windows(6, length=64)
    modulator = sacm.attach(model, channels=CHANNELS, example_inputs=x)
    compiled = torch.compile(model)
    out = compiled(x)
    second = compiled(x)
    with torch.no_grad():
        h = model.linear(x)
    keep = 1 - modulator.rates
    for result in (out, second):
        kept = result != 0
        expected = torch.where(kept, h / keep[:, None, None], 0.0)
        torch.testing.assert_close(result, expected, rtol=1e-4, atol=1e-5)
        share, total = kept.flatten(1).double().mean(1), 64 * 256
        assert ((share - keep).abs() <= 4 * (keep * (1 - keep) / total).sqrt()).all()
    agree = ((out != 0) == (second != 0)).double().mean(dim=(1, 2))
    chance = keep.square() + (1 - keep).square()
    assert ((agree - chance).abs() <= 5 * math.sqrt(0.25 / total)).all()

    weight = torch.randn(out.shape)
    gradient = torch.autograd.grad((out * weight).sum(), modulator.mapper.gamma)[0]
    rates = modulator.mapper(modulator.scorer(x).scores)
    mask, keep = (out != 0).to(h.dtype), (1 - rates)[:, None, None]
    composed = (h * (mask + keep - keep.detach()) / keep * weight).sum()
    expected = torch.autograd.grad(composed, modulator.mapper.gamma)[0]
    torch.testing.assert_close(gradient, expected, rtol=1e-3, atol=1e-3)


def test_a_compiled_model_evaluates_as_the_compiled_raw_one() -> None:
    torch.manual_seed(0)
    raw = models.MLP().eval()
    twin = models.MLP()
    twin.load_state_dict(raw.state_dict())
    sacm.attach(twin, channels=CHANNELS, example_inputs=windows())
    compiled = torch.compile(twin, backend="aot_eager")
    compiled(windows()).sum().backward()
    twin.eval()
    assert torch.equal(compiled(windows()), torch.compile(raw, backend="aot_eager")(windows()))


def test_a_checkpoint_of_a_compiled_model_loads_into_a_raw_one() -> None:
    model = models.MLP()
    sacm.attach(model, channels=CHANNELS, example_inputs=windows())
    compiled = torch.compile(model)
    state = compiled.state_dict()
    assert all(key.startswith("_orig_mod.") for key in state)
    assert models.MLP().load_state_dict(sacm.strip_state_dict(state)) == ([], [])


@pytest.mark.parametrize("make", [models.Functional, models.Attention])
def test_functional_coverage_of_a_compiled_model(make: type[nn.Module]) -> None:
    torch.manual_seed(0)
    model = make()
    modulator = sacm.attach(model, channels=CHANNELS, coverage="all", example_inputs=windows())
    compiled = torch.compile(model, backend="aot_eager")
    loss = compiled(windows()).square().mean()
    loss.backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())
    assert modulator.mapper.gamma.grad != 0
    with modulator.forced_rates(torch.zeros(6)):
        assert torch.equal(compiled(windows()), compiled(windows()))
