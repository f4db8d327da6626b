"""Stages 2 to 5: from a detrended series to the soft mask over its frequencies.

All functions work along the last axis: time `[..., L]` or frequency `[..., K]`, K = L // 2 + 1.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor


def log_amplitude(spectrum: Tensor) -> Tensor:
    """Return `L = log(1 + |Z|)` `[..., K]` of a complex spectrum `[..., K]`."""
    if spectrum.requires_grad:
        # The gradient of |Z| divides by it, which overflows for denormal numbers.
        silent = spectrum.detach().abs() < torch.finfo(spectrum.dtype).tiny
        spectrum = torch.where(silent, 0, spectrum)
    return torch.log1p(spectrum.abs())


def normalise_amplitude(log_amp: Tensor, eps: float) -> Tensor:
    """Return `Â = (L - min_k L) / max(max_k L - min_k L, eps)` `[..., K]`, in [0, 1]."""
    low, high = log_amp.aminmax(dim=-1, keepdim=True)
    return (log_amp - low) / (high - low).clamp_min(eps)


def spectral_flatness(log_amp: Tensor, eps: float) -> Tensor:
    """Return the geometric over the arithmetic mean of `P = L² + eps`: `[...]`, in (0, 1]."""
    power = log_amp.square().add_(eps)
    return power.log().mean(dim=-1).exp() / (power.mean(dim=-1) + eps)


def compute_threshold(flatness: Tensor | None, weight: Tensor, bias: Tensor) -> Tensor:
    """Return `tau_c = sigmoid(w_c SFM_c + b_c)` `[..., C]`, or `sigmoid(b_c)` without flatness."""
    return torch.sigmoid(bias if flatness is None else torch.addcmul(bias, weight, flatness))


def soft_mask(amplitude: Tensor, threshold: Tensor, alpha: Tensor) -> Tensor:
    """Return `M = sigmoid(softplus(alpha) (Â - tau))` `[..., K]`; one threshold per series."""
    return torch.sigmoid(F.softplus(alpha) * (amplitude - threshold.unsqueeze(-1)))
