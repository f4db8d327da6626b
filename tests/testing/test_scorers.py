"""`check_scorer` finds what is wrong with a scorer, and says it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from sacm.testing import check_scorer


class Scorer(nn.Module):
    """A scorer made of a function."""

    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        return self.function(x)


def roughness(x: Tensor) -> Tensor:
    return x.diff(dim=1).abs().mean(dim=(1, 2))


def test_a_good_scorer_passes() -> None:
    check_scorer(lambda channels, config: Scorer(roughness))


@pytest.mark.parametrize(
    ("function", "sentence"),
    [
        (lambda x: x.std(dim=1), r"scores must be \[6\] for windows \[6, 96, 3\]"),
        (lambda x: roughness(x) / roughness(x).sum(), "must not depend on the others"),
        (lambda x: roughness(x) / x.std(dim=(1, 2)), "scores of constant windows must be finite"),
        (lambda x: roughness(x) + torch.rand(()), "two calls give different scores"),
        (lambda x: roughness(x).round().long(), "scores must be floats"),
        (lambda x: roughness(x.mul_(2)), "the windows must be left alone"),
    ],
)
def test_what_is_wrong_is_said(function: Callable[[Tensor], Tensor], sentence: str) -> None:
    with pytest.raises(AssertionError, match=sentence):
        check_scorer(lambda channels, config: Scorer(function))
