from __future__ import annotations

import numpy as np
import pytest
import torch

from sacm.data import forecasting_data
from sacm.data.tables.tensors import as_numpy


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64, torch.int64])
def test_every_kind_of_number_keeps_its_value(dtype: torch.dtype) -> None:
    tensor = torch.arange(60).to(dtype).requires_grad_(dtype.is_floating_point)
    np.testing.assert_array_equal(as_numpy(tensor), np.arange(60))
    np.testing.assert_array_equal(forecasting_data(tensor).values[:, 0], np.arange(60))
