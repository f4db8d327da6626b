from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from sacm import backbones
from sacm.backbones import minirocket
from sacm.backbones.minirocket import (
    MiniRocketConfig,
    Transform,
    dilation_plan,
    draw_channel_mask,
    kernel_table,
    quantiles,
)

from .cases import noise


def classifier(length: int = 30, channels: int = 3, **settings: object) -> minirocket.MiniRocket:
    return backbones.build(
        "MiniROCKET",
        "classification",
        input_len=length,
        channels=channels,
        classes=4,
        size="small",
        **settings,
    )


def test_kernels_are_all_choices_of_three_heavy_taps() -> None:
    heavy = [tuple(row.nonzero().flatten().tolist()) for row in kernel_table() == 2]
    assert heavy == list(combinations(range(9), 3))
    assert torch.equal(kernel_table().sum(dim=1), torch.zeros(84))


def test_plans_of_dilations() -> None:
    assert dilation_plan(29, 119) == {1: 67, 2: 38, 3: 14}
    assert list(dilation_plan(100, 119)) == list(range(1, 13))
    assert len(dilation_plan(144, 119)) == 16
    assert max(dilation_plan(144, 119)) == 17
    assert dilation_plan(9, 119) == {1: 119}
    for length in (9, 25, 49, 73, 97, 3000):
        plan = dilation_plan(length, 119)
        assert sum(plan.values()) == 119
        assert max(plan) <= (length - 1) // 8  # a valid part is left


def naive_features(transform: Transform, series: np.ndarray) -> list[float]:
    """One window `[C, L]`, by the definition, one output value at a time."""
    kernels, length = kernel_table().numpy(), series.shape[1]
    mask, biases = transform.channel_mask.numpy(), iter(transform.biases.tolist())
    features = []
    for index, (dilation, share) in enumerate(transform.plan.items()):
        for k in range(84):
            output = np.zeros(length)
            for t in range(length):
                for tap in range(9):
                    place = t + (tap - 4) * dilation
                    if 0 <= place < length:
                        output[t] += kernels[k, tap] * (mask[index, k] @ series[:, place])
            seen = output if (index + k) % 2 == 0 else output[4 * dilation : -4 * dilation]
            features += [float(np.mean(seen > next(biases))) for _ in range(share)]
    return features


def test_features_equal_the_definition() -> None:
    x = noise(5, 20, 2)
    transform = Transform(MiniRocketConfig(features=300), input_len=20, channels=2)
    transform.fit(x, torch.Generator().manual_seed(0))
    expected = naive_features(transform, x[0].T.double().numpy())
    difference = (transform(x)[0] - torch.tensor(expected)).abs()
    assert difference.max() <= 2 / 20
    assert (difference > 1e-6).sum() <= 2  # ties with a bias taken from this very window


def test_quantiles_interpolate_row_by_row() -> None:
    values, levels = noise(4, 17), torch.rand(4, 6, generator=torch.Generator().manual_seed(1))
    expected = np.stack(
        [np.quantile(v, q) for v, q in zip(values.numpy(), levels.numpy(), strict=True)]
    )
    np.testing.assert_allclose(quantiles(values, levels.double()), expected, rtol=1e-5, atol=1e-6)


def test_drawn_channels_are_one_to_nine() -> None:
    generator = torch.Generator().manual_seed(0)
    for channels in (1, 2, 5, 40):
        mask = draw_channel_mask(torch.Size((6, 84, channels)), generator)
        counts = mask.sum(dim=-1)
        assert counts.min() == 1
        assert counts.max() <= min(channels, 9)
        assert mask.unique().tolist() in ([1.0], [0.0, 1.0])
    assert counts.max() >= 8  # of forty channels, up to nine are summed


def test_biases_come_from_the_given_windows() -> None:
    low, high = classifier(), classifier()
    low.prepare(noise(8, 30, 3))
    high.prepare(128 * noise(8, 30, 3))
    torch.testing.assert_close(high.transform.biases, 128 * low.transform.biases)


def test_training_features_are_standardised() -> None:
    model, x = classifier().eval(), noise(40, 30, 3)
    model.prepare(x)
    features = (model.transform(x) - model.mean) / model.std
    varying = model.std > 1e-6
    assert features.mean(dim=0).abs().max() < 1e-3
    torch.testing.assert_close(
        features.std(dim=0, correction=0)[varying],
        torch.ones(int(varying.sum())),
        atol=1e-3,
        rtol=0,
    )
    assert (features[:, ~varying] == 0).all()


def test_preparing_in_parts_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    whole, parts, x = classifier(), classifier(), noise(40, 30, 3)
    whole.prepare(x)
    monkeypatch.setattr(minirocket, "CHUNK_VALUES", 1)
    parts.prepare(x)
    torch.testing.assert_close(parts.mean, whole.mean)
    torch.testing.assert_close(parts.std, whole.std)


def test_seed_decides_the_draws() -> None:
    x = noise(40, 30, 3)
    models = [classifier(seed=seed) for seed in (0, 0, 1)]
    for model in models:
        model.prepare(x)
    first, same, other = (model.transform.biases for model in models)
    assert torch.equal(first, same)
    assert not torch.equal(first, other)


def test_starts_undecided_and_learns_through_the_head_alone() -> None:
    model, x = classifier(), noise(8, 30, 3).requires_grad_()
    model.prepare(x.detach())
    logits = model.train()(x)
    assert (logits == 0).all()
    F.cross_entropy(logits, torch.arange(8) % 4).backward()
    assert x.grad is None
    assert model.output.weight.grad.abs().sum() > 0


def test_windows_shorter_than_a_kernel_are_filled_with_zeros() -> None:
    short, full, x = classifier(length=8), classifier(length=9), noise(6, 8, 3)
    padded = F.pad(x, (0, 0, 0, 1))
    short.prepare(x)
    full.prepare(padded)
    assert torch.equal(short.transform(x), full.transform(padded))
