"""WPMixer's wavelet transform against PyWavelets."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from sacm.backbones.wpmixer import Wavelet

pywt = pytest.importorskip("pywt", reason="compares with PyWavelets")

LENGTHS = [24, 25, 60, 96]


def series(length: int) -> torch.Tensor:
    return torch.randn(2, 3, length, generator=torch.Generator().manual_seed(length))


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("name", ["db2", "haar", "sym4", "bior2.2"])
def test_one_level_and_its_inverse(name: str, length: int) -> None:
    x, wavelet = series(length), Wavelet(name, 1)
    approximation, detail = wavelet.split(x)
    their_approximation, their_detail = pywt.dwt(x.numpy(), name, mode="zero")
    np.testing.assert_allclose(approximation.numpy(), their_approximation, atol=1e-5)
    np.testing.assert_allclose(detail.numpy(), their_detail, atol=1e-5)
    joined = wavelet.join([approximation, detail])
    expected = pywt.idwt(their_approximation, their_detail, name, mode="zero")
    np.testing.assert_allclose(joined.numpy(), expected, atol=1e-5)


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("level", [2, 3])
@pytest.mark.filterwarnings("ignore:Level value of:UserWarning")  # they are short on purpose
def test_several_levels_and_their_inverse(level: int, length: int) -> None:
    x, wavelet = series(length), Wavelet("db2", level)
    found = wavelet.split(x)
    expected = pywt.wavedec(x.numpy(), "db2", mode="zero", level=level)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one.numpy(), other, atol=1e-5)
    joined = wavelet.join(found)
    np.testing.assert_allclose(
        joined.numpy(), pywt.waverec(expected, "db2", mode="zero"), atol=1e-5
    )
