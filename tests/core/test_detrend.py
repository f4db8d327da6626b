from __future__ import annotations

import numpy as np
import pytest
import torch

from sacm.core.spectrum import detrend


@pytest.mark.parametrize("length", [2, 3, 24, 97])
def test_the_closed_form_is_least_squares(length: int) -> None:
    x = torch.randn(5, 3, length, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    time = np.arange(length)
    trend = (x - detrend(x)).numpy()
    for series, line in zip(x.numpy().reshape(-1, length), trend.reshape(-1, length), strict=True):
        slope, intercept = np.polyfit(time, series, 1)
        np.testing.assert_allclose(line, slope * time + intercept, atol=1e-10)


def test_endpoint_joins_first_and_last_value() -> None:
    x = torch.tensor([[2.0, 9.0, -4.0, 8.0]])
    assert (x - detrend(x, "endpoint")).tolist() == [[2.0, 4.0, 6.0, 8.0]]


@pytest.mark.parametrize("how", ["ols", "endpoint"])
def test_a_single_step_leaves_no_residual(how: str) -> None:
    x = torch.randn(4, 2, 1)
    assert not detrend(x, how).any()


def test_none_takes_nothing_away() -> None:
    x = torch.randn(2, 3, 7)
    assert torch.equal(detrend(x, "none"), x)


@pytest.mark.parametrize("how", ["ols", "endpoint"])
def test_an_offset_leaves_no_rounding_behind(how: str) -> None:
    x = torch.randint(-9, 9, (4, 2, 30), generator=torch.Generator().manual_seed(2)).float()
    torch.testing.assert_close(detrend(x + 1e6, how), detrend(x, how), atol=1e-5, rtol=0)
