"""Tensors as NumPy arrays."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor


def as_numpy(tensor: Tensor) -> np.ndarray:
    """The values of a tensor; bfloat16, which NumPy lacks, becomes float32 without loss."""
    values = tensor.detach().cpu()
    array: np.ndarray = (values.float() if values.dtype == torch.bfloat16 else values).numpy()
    return array
