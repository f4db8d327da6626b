from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sacm.backbones.blocks.normalisation import MovingAverage
from sacm.errors import ArgumentError


@given(st.integers(1, 60), st.integers(0, 14).map(lambda n: 2 * n + 1))
def test_against_numpy_also_when_the_padding_exceeds_the_length(length: int, kernel: int) -> None:
    x = torch.randn(2, 3, length, generator=torch.Generator().manual_seed(length))
    padded = np.pad(x.numpy(), ((0, 0), (0, 0), (kernel // 2, kernel // 2)), mode="edge")
    expected = np.lib.stride_tricks.sliding_window_view(padded, kernel, axis=-1).mean(axis=-1)
    np.testing.assert_allclose(MovingAverage(kernel)(x), expected, atol=1e-5)


def test_any_leading_shape() -> None:
    x = torch.randn(2, 3, 4, 30)
    average = MovingAverage(25)
    torch.testing.assert_close(average(x)[1, 2, 3], average(x[1, 2, 3]))


def test_even_kernel_is_refused() -> None:
    with pytest.raises(ArgumentError, match="odd kernel"):
        MovingAverage(24)
