from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from sacm import ArgumentError, RateMapper, SACMConfig, SpectralScorer

TINY = 1.401298464324817e-45  # the smallest number float32 knows
ODD_VALUES = (0.0, 1.0, -1.0, 1e30, -1e30, torch.finfo(torch.float32).max, TINY, 1e-39, 1e-8)


@st.composite
def windows(draw: st.DrawFn) -> Tensor:
    """`[B, L, C]` float32: noise, constants, zeros, ramps, spikes and extremes, mixed by sample."""
    batch, length = draw(st.integers(1, 5)), draw(st.integers(1, 40))
    channels = draw(st.integers(1, 4))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    samples = []
    for _ in range(batch):
        kind = draw(st.sampled_from(["noise", "constant", "ramp", "spike", "extremes", "huge"]))
        sample = torch.randn(length, channels, generator=generator)
        if kind == "constant":
            sample = torch.full_like(sample, draw(st.sampled_from(ODD_VALUES)))
        elif kind == "ramp":
            sample = torch.arange(length)[:, None] * torch.ones(channels)
        elif kind == "spike":
            sample[draw(st.integers(0, length - 1))] = draw(st.sampled_from(ODD_VALUES))
        elif kind == "extremes":
            index = torch.randint(len(ODD_VALUES), (length, channels), generator=generator)
            sample = torch.tensor(ODD_VALUES)[index]
        elif kind == "huge":
            sample = sample.sign() * torch.finfo(torch.float32).max
        samples.append(sample)
    return torch.stack(samples)


configs = st.builds(
    SACMConfig,
    detrend=st.sampled_from(["ols", "endpoint", "none"]),
    log_norm=st.booleans(),
    sfm_anchor=st.booleans(),
)


@settings(max_examples=150)
@given(x=windows(), config=configs)
def test_any_finite_window_gives_finite_scores_rates_and_gradients(
    x: Tensor, config: SACMConfig
) -> None:
    scorer, mapper = SpectralScorer(x.shape[2], config), RateMapper(config)
    x.requires_grad_()
    out = scorer(x)
    for name, value in out._asdict().items():
        assert value.isfinite().all(), name
    assert (out.scores >= 0).all()
    rates = mapper(out.scores)
    low, high = torch.tensor([config.p_min, config.p_max])
    assert ((rates >= low) & (rates <= high)).all()
    rates.sum().backward()
    for parameter in (*scorer.parameters(), *mapper.parameters(), x):
        if parameter.requires_grad and parameter.grad is not None:
            assert parameter.grad.isfinite().all()


@settings(max_examples=60)
@given(x=windows(), data=st.data())
def test_the_order_of_a_batch_is_the_order_of_its_scores(x: Tensor, data: st.DataObject) -> None:
    order = torch.tensor(data.draw(st.permutations(range(len(x)))))
    scorer = SpectralScorer(x.shape[2])
    scores = scorer(x).scores
    torch.testing.assert_close(scorer(x[order]).scores, scores[order], rtol=1e-5, atol=0)


@settings(max_examples=80)
@given(
    length=st.integers(16, 100),
    scale=st.sampled_from([2.0**-12, 1.0, 2.0**14, 2.0**27]),
    offset=st.integers(-(2**16), 2**16),
    how=st.sampled_from(["ols", "endpoint"]),
    seed=st.integers(0, 2**31),
)
def test_no_offset_or_scale_costs_precision(
    length: int, scale: float, offset: int, how: str, seed: int
) -> None:
    generator = torch.Generator().manual_seed(seed)
    # Multiples of 1 / 64 and powers of two: shifting and scaling are exact in float32.
    x = torch.randint(-256, 256, (4, length, 3), generator=generator) / 64
    config = SACMConfig(detrend=how)
    single, double = SpectralScorer(3, config), SpectralScorer(3, config).double()
    with torch.no_grad():
        found, expected = single((x + offset) * scale).scores, double(x.double() * scale).scores
    torch.testing.assert_close(found.double(), expected, rtol=1e-4, atol=0)


@pytest.mark.parametrize("length", [2, 7, 16])
@pytest.mark.parametrize("how", ["ols", "endpoint", "none"])
def test_gradcheck_of_scorer_and_mapper(length: int, how: str) -> None:
    config = SACMConfig(detrend=how)
    scorer, mapper = SpectralScorer(2, config).double(), RateMapper(config).double()
    generator = torch.Generator().manual_seed(length)
    x = torch.randn(4, length, 2, dtype=torch.float64, generator=generator, requires_grad=True)
    parameters = (scorer.weight, scorer.bias, scorer.alpha, mapper.gamma)

    def rates(x: Tensor, *_: Tensor) -> Tensor:
        return mapper(scorer(x).scores)

    assert torch.autograd.gradcheck(rates, (x, *parameters), eps=1e-6, atol=1e-5)


def test_noise_scores_above_a_clean_sine_of_the_same_amplitude() -> None:
    generator = torch.Generator().manual_seed(0)
    sine = torch.sin(torch.arange(96) * 2 * torch.pi / 24)
    levels = torch.tensor([0.0, 0.2, 0.5, 1.0])
    noise = torch.randn(4, 96, generator=generator)
    scores = SpectralScorer(1)((sine + levels[:, None] * noise).unsqueeze(-1)).scores
    assert scores.diff().min() > 0


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.int64])
def test_low_precision_windows_are_scored_in_float32(dtype: torch.dtype) -> None:
    x = (torch.randn(3, 16, 2) * 10).to(dtype)
    scorer = SpectralScorer(2)
    with torch.autocast("cpu", torch.bfloat16):
        scores = scorer(x).scores
    assert scores.dtype == torch.float32
    assert torch.equal(scores, scorer(x.float()).scores)


def test_a_missing_value_counts_as_zero() -> None:
    x = torch.randn(4, 24, 3, generator=torch.Generator().manual_seed(0))
    x[1, 5:9, 2] = torch.nan
    scorer = SpectralScorer(3)
    assert torch.equal(scorer(x).scores, scorer(x.nan_to_num()).scores)


def test_a_complex_window_is_refused() -> None:
    with pytest.raises(ArgumentError, match="real numbers"):
        SpectralScorer(2)(torch.zeros(1, 4, 2, dtype=torch.complex64))


def test_without_the_anchor_its_weight_is_not_trained() -> None:
    scorer = SpectralScorer(3, SACMConfig(sfm_anchor=False))
    trained = {name for name, p in scorer.named_parameters() if p.requires_grad}
    assert trained == {"bias", "alpha"}


@settings(max_examples=40)
@given(x=windows(), config=configs)
def test_scores_alone_and_their_gradients_are_the_same_bits(x: Tensor, config: SACMConfig) -> None:
    scorer = SpectralScorer(x.shape[2], config)
    trained = [p for p in scorer.parameters() if p.requires_grad]
    found = []
    for scores in (scorer(x).scores, scorer.score(x)):
        found.append([scores, *torch.autograd.grad(scores.sum(), trained)])
    for one, other in zip(*found, strict=True):
        assert torch.equal(one, other)
