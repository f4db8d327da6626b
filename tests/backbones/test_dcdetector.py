from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from sacm import backbones
from sacm.backbones.blocks.normalisation import symmetric_distance
from sacm.backbones.dcdetector import DCdetector, patch_sizes

from .cases import noise


def detector(**settings: object) -> DCdetector:
    torch.manual_seed(0)
    return backbones.build(
        "DCdetector", "anomaly", input_len=12, channels=3, size="small", **settings
    )


@pytest.mark.parametrize(
    ("length", "sizes"),
    [
        (100, [4, 5, 10]),
        (105, [3, 5, 7]),
        (96, [3, 6, 8]),
        (24, [3, 6, 8]),
        (4, [2]),
        (15, [3, 5]),
        (49, [7]),
    ],
)
def test_patch_sizes(length: int, sizes: list[int]) -> None:
    assert patch_sizes(length) == sizes


def test_maps_of_one_patch_size_by_the_definition() -> None:
    model, x = detector().eval(), noise(4, 12, 3)
    size, relation = model.patch_sizes[0], model.relations[1]
    count = 12 // size
    normal = (x - x.mean(dim=1, keepdim=True)) / (
        x.var(dim=1, correction=0, keepdim=True) + 1e-5
    ).sqrt()
    between, inside = torch.zeros(4, 2, 12, 12), torch.zeros(4, 2, 12, 12)

    def weights(z: Tensor) -> Tensor:
        q, k = (each(z).unflatten(-1, (2, 16)) for each in (relation.query, relation.key))
        return (torch.einsum("bihe,bjhe->bhij", q, k) / math.sqrt(16)).softmax(dim=-1)

    with torch.no_grad():
        for channel in range(3):
            patches = normal[:, :, channel].reshape(4, count, size)
            outer = weights(model.between[0](patches))
            inner = weights(model.inside[0](patches.transpose(1, 2)))
            for i in range(12):
                for j in range(12):
                    between[:, :, i, j] += outer[:, :, i // size, j // size] / size / 3
                    inside[:, :, i, j] += inner[:, :, i % size, j % size] / count / 3
        found = model(x)[1]
    torch.testing.assert_close(found[0], between, atol=1e-6, rtol=1e-4)
    torch.testing.assert_close(found[1], inside, atol=1e-6, rtol=1e-4)


def test_loss_and_score_are_the_disagreement() -> None:
    model, x = detector().eval(), noise(4, 12, 3)
    distances = torch.stack([symmetric_distance(*pair) for pair in model(x)])  # [pairs, B, L]
    torch.testing.assert_close(model.anomaly_scores(x), distances.mean(dim=0))
    torch.testing.assert_close(model.training_loss(x), distances.mean())
    assert model.validation_loss(x) == model.training_loss(x)


def test_each_view_is_moved_with_the_other_held_still() -> None:
    model, x = detector().eval(), noise(4, 12, 3)
    expected = torch.stack(
        [
            (symmetric_distance(a, b.detach()) + symmetric_distance(b, a.detach())) / 2
            for a, b in model(x)
        ]
    ).mean()
    parameters = list(model.parameters())
    for one, other in zip(
        torch.autograd.grad(model.training_loss(x), parameters),
        torch.autograd.grad(expected, parameters),
        strict=True,
    ):
        torch.testing.assert_close(one, other)


def test_level_and_scale_of_a_window_do_not_matter() -> None:
    model, x = detector().eval(), noise(4, 12, 3)
    torch.testing.assert_close(
        model.anomaly_scores(10 * x + 4), model.anomaly_scores(x), atol=1e-4, rtol=1e-3
    )
