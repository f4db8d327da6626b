"""The spectral residual scorer: the part of a window that its dominant frequencies leave over."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from numbers import Integral
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from sacm.core.config import SACMConfig, check_config
from sacm.core.spectrum import (
    compute_threshold,
    detrend,
    log_amplitude,
    normalise_amplitude,
    soft_mask,
    spectral_flatness,
)
from sacm.errors import ArgumentError

Values = TypeVar("Values", Tensor, npt.NDArray[np.floating])

_CHUNK = 1 << 22  # numbers scored at once, so that memory does not grow with the series


class ScorerOutput(NamedTuple):
    """Results of all stages of the scorer for `B` windows of length `L` with `C` channels."""

    scores: Tensor  # [B], unreliability `s`; higher is less reliable
    channel_scores: Tensor  # [B, C], the same by channel, `s_c`
    sfm: Tensor  # [B, C], spectral flatness
    threshold: Tensor  # [B, C], threshold `tau` of the mask
    mask: Tensor  # [B, K, C], soft mask `M` over the K = L // 2 + 1 frequencies
    reconstruction: Tensor  # [B, L, C], the window after masking, `x'`
    trend: Tensor  # [B, L, C], the line taken away before the spectrum


class SpectralScorer(nn.Module):
    """Score windows `[B, L, C]` by their spectral residual; 2C + 1 learnable scalars.

    Always computes in float32 or better, also under autocast. A missing value (NaN) counts as 0:
    without this one of them would make the rates of its whole batch NaN.

    Args:
        channels: Number of channels `C`; None until `set_channels`, with empty parameters.
        config: Settings; the paper's for None.

    Example:
        >>> scorer = SpectralScorer(channels=2)
        >>> result = scorer(torch.randn(4, 96, 2))
        >>> result.scores.shape, result.mask.shape
        (torch.Size([4]), torch.Size([4, 49, 2]))
    """

    def __init__(self, channels: int | None, config: SACMConfig | None = None) -> None:
        super().__init__()
        self.channels: int | None = None
        self.config = check_config(config)
        self.weight = nn.Parameter(torch.empty(0))
        # Unused without the anchor, and data-parallel training insists on a gradient otherwise.
        self.weight.requires_grad_(self.config.sfm_anchor)
        self.bias = nn.Parameter(torch.empty(0))
        self.alpha = nn.Parameter(torch.tensor(float(self.config.alpha)))
        if channels is not None:
            self.set_channels(channels)

    def set_channels(self, channels: int) -> None:
        """Give the parameters of the channels their size; optimizers made before stay valid."""
        self.channels = check_whole_number("channels", channels)
        self.weight.data = self.weight.new_full((self.channels,), float(self.config.sfm_weight))
        self.bias.data = self.bias.new_full((self.channels,), float(self.config.sfm_bias))

    def forward(self, x: Tensor) -> ScorerOutput:
        """Return the scores `[B]` of windows `[B, L, C]`, and the results of all stages."""
        series, residual, flatness, threshold, mask, error, channel_scores = self._run_stages(x)
        return ScorerOutput(
            scores=channel_scores.mean(dim=-1),
            channel_scores=channel_scores,
            sfm=flatness,
            threshold=threshold,
            mask=mask.transpose(1, 2),
            reconstruction=(series + error).transpose(1, 2),
            trend=(series - residual).transpose(1, 2),
        )

    def score(self, x: Tensor) -> Tensor:
        """Return the scores `[B]` of windows alone: the same numbers as `forward`, in less time."""
        *_, channel_scores = self._run_stages(x)
        return channel_scores.mean(dim=-1)

    def _run_stages(self, x: Tensor) -> tuple[Tensor, ...]:
        """Run all stages in float32 or better, on series `[B, C, L]`."""
        self._check(x)
        dtype = torch.promote_types(x.dtype, torch.float32)
        # Beyond this bound sums over a window would overflow; the score stays the highest anyway.
        bound = torch.finfo(dtype).max ** 0.75
        config = self.config
        with without_autocast(x.device.type):
            series = x.to(dtype).transpose(1, 2).contiguous()  # [B, C, L]
            series = series.nan_to_num(nan=0.0).clamp_(-bound, bound)
            residual = detrend(series, config.detrend)
            spectrum = torch.fft.rfft(residual)  # Z [B, C, K]
            if config.detrend == "ols":
                # Least squares leaves no mean; what is there is rounding, which the log enlarges.
                spectrum[..., 0] = 0
            log_amp = log_amplitude(spectrum)
            amplitude = normalise_amplitude(log_amp, config.eps) if config.log_norm else log_amp
            flatness = spectral_flatness(log_amp, config.eps)
            weight, bias, alpha = (p.to(dtype) for p in (self.weight, self.bias, self.alpha))
            anchor = flatness if config.sfm_anchor else None
            threshold = compute_threshold(anchor, weight, bias)
            if anchor is None:
                threshold = threshold.expand_as(flatness)
            mask = soft_mask(amplitude, threshold, alpha)
            # x' - x, in which the trend cancels. In this order, because the first operand's
            # gradient needs no change of sign.
            error = torch.fft.irfft(spectrum * mask, n=series.shape[-1]) - residual
            channel_scores = error.abs().mean(dim=-1)
        return series, residual, flatness, threshold, mask, error, channel_scores

    def _check(self, x: Tensor) -> None:
        """Refuse windows of another shape or type."""
        if not isinstance(x, Tensor):
            raise ArgumentError(f"windows must be a torch tensor, got {type(x).__name__}.")
        shape = list(x.shape)
        if x.dim() != 3 or 0 in shape:
            raise ArgumentError(
                f"windows must be a non-empty [B, L, C] tensor (batch, time, channel), got {shape}."
            )
        if shape[2] != self.channels:
            raise ArgumentError(
                f"windows {shape} have {shape[2]} channels, but this scorer was made for "
                f"channels={self.channels}."
            )
        if x.is_complex():
            raise ArgumentError(f"windows must be real numbers, got {x.dtype}.")


@torch.no_grad()
def score_windows(
    values: Values, window: int = 96, stride: int = 1, *, config: SACMConfig | None = None
) -> Values:
    """Return the unreliability of every window of a series; higher is less reliable.

    Args:
        values: Series `[T]` or `[T, C]`, a NumPy array or a tensor, without NaN and infinity.
        window: Rows per window.
        stride: Rows from the start of one window to the start of the next.
        config: Settings; the paper's for None.

    Returns:
        Scores `[N]`, an array for an array and a tensor for a tensor; window i covers the rows
        ``i * stride`` to ``i * stride + window - 1``.

    Example:
        >>> wave = np.sin(np.arange(200) / 3)
        >>> noise = np.random.default_rng(0).normal(size=200)
        >>> scores = score_windows(np.concatenate([wave, noise]), window=100, stride=100)
        >>> bool(scores[:2].max() < scores[2:].min())
        True
    """
    if isinstance(values, Tensor):
        series = values
    else:
        array = np.asarray(values)
        if array.dtype.kind not in "fiub":
            raise ArgumentError(f"a series must hold real numbers, got an array of {array.dtype}.")
        # A copy: torch takes no negative strides, and warns about arrays that it may not write to.
        series = torch.from_numpy(array.astype(array.dtype.newbyteorder("="), order="C"))
    series = series if series.is_floating_point() or series.is_complex() else series.float()
    series = series.unsqueeze(-1) if series.dim() == 1 else series
    window, stride = check_whole_number("window", window), check_whole_number("stride", stride)
    if series.dim() != 2 or series.shape[1] == 0:
        raise ArgumentError(f"a series must be [T] or [T, C], got shape {list(series.shape)}.")
    if series.shape[0] < window:
        raise ArgumentError(
            f"the series has {series.shape[0]} rows, fewer than one window of {window}: choose a "
            "shorter window."
        )
    unknown = (~torch.isfinite(series)).nonzero()
    if len(unknown):
        row, channel = unknown[0].tolist()
        raise ArgumentError(
            f"row {row}, channel {channel} is {series[row, channel].item()} (first in window "
            f"{max(0, -(-(row - window + 1) // stride))}): fill or drop missing values first."
        )
    views = series.unfold(0, window, stride).transpose(1, 2)  # [N, window, C], no copy
    scorer = SpectralScorer(series.shape[1], config).to(series.device)
    rows = max(1, _CHUNK // (window * series.shape[1]))
    scores = torch.cat([scorer(chunk).scores for chunk in views.split(rows)])
    return scores if isinstance(values, Tensor) else scores.numpy()


def check_whole_number(name: str, value: Any) -> int:
    """Return `value` as an int; any integer type from 1 on is accepted, but no bool."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
        raise ArgumentError(f"{name} must be a whole number from 1 on, got {value!r}.")
    return int(value)


def without_autocast(device_type: str) -> AbstractContextManager[object]:
    """Return a context in which autocast is off, for arithmetic that needs full precision."""
    if torch.is_autocast_enabled(device_type):  # switching costs microseconds
        return torch.autocast(device_type, enabled=False)
    return nullcontext()
