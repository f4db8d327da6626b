"""What needs double precision takes it on the CPU, for not every accelerator has it."""

from __future__ import annotations

import pytest
import torch

from sacm.inject.probe import movement
from tests.pretend_device import PRETENDED, Elsewhere


def test_the_pretended_device_refuses_float64() -> None:
    there = Elsewhere(torch.ones(3))
    assert there.device == PRETENDED
    with pytest.raises(TypeError, match="no float64"):
        there.double()
    assert (there + there).cpu().double().tolist() == [2.0] * 3


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64])
def test_movement_of_activations(dtype: torch.dtype) -> None:
    base, other = torch.zeros(2, 3, dtype=dtype), torch.eye(2, 3).to(dtype)
    found = movement(Elsewhere(base), Elsewhere(other))
    assert found.cpu().tolist() == torch.eye(2, 3).tolist()
