"""Tensors as NumPy arrays."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from sacm.errors import DataError


def as_numpy(tensor: Tensor) -> np.ndarray:
    """The values of a tensor; bfloat16, which NumPy lacks, becomes float32 without loss.

    Raises:
        DataError: The tensor has no plain values: it is sparse, or on the meta device.
    """
    if tensor.layout is not torch.strided or tensor.is_meta:
        raise DataError("the data are a tensor without plain values: pass a dense one.")
    values = tensor.detach().cpu()
    array: np.ndarray = (values.float() if values.dtype == torch.bfloat16 else values).numpy()
    return array
