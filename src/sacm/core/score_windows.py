"""Score every window of a long series with the untrained scorer."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from sacm.core.config import SACMConfig
from sacm.core.scorer import SpectralScorer
from sacm.core.validation import check_whole_number
from sacm.errors import ArgumentError

Values = TypeVar("Values", Tensor, npt.NDArray[np.floating])

_CHUNK = 1 << 22  # numbers scored at once, so that memory does not grow with the series


@torch.no_grad()
def score_windows(
    values: Values,
    window: int = 96,
    stride: int = 1,
    *,
    config: SACMConfig | None = None,
    check_finite: bool = True,
) -> Values:
    """Return the unreliability of every window of a series; higher is less reliable.

    Args:
        values: Series `[T]` or `[T, C]`, a NumPy array or a tensor.
        window: Rows per window.
        stride: Rows from the start of one window to the start of the next.
        config: Settings; the paper's for None.
        check_finite: Refuse NaN and infinity.

    Returns:
        Scores `[N]`, an array for an array and a tensor for a tensor; window i covers the rows
        ``i * stride`` to ``i * stride + window - 1``.

    Raises:
        ArgumentError: The series is too short, of another shape, or holds NaN or infinity.

    Example:
        >>> wave = np.sin(np.arange(200) / 3)
        >>> noise = np.random.default_rng(0).normal(size=200)
        >>> scores = score_windows(np.concatenate([wave, noise]), window=100, stride=100)
        >>> bool(scores[:2].max() < scores[2:].min())
        True
    """
    series = _as_tensor(values)
    if series.dim() == 1:
        series = series.unsqueeze(-1)
    window, stride = check_whole_number("window", window), check_whole_number("stride", stride)
    _check(series, window, stride, check_finite=check_finite)
    views = series.unfold(0, window, stride).transpose(1, 2)  # [N, window, C], no copy
    scorer = SpectralScorer(series.shape[1], config).to(series.device)
    rows = max(1, _CHUNK // (window * series.shape[1]))
    scores = torch.cat([scorer(chunk).scores for chunk in views.split(rows)])
    return scores if isinstance(values, Tensor) else scores.numpy()


def _as_tensor(values: Values) -> Tensor:
    """Turn any array of real numbers into a floating-point tensor."""
    if isinstance(values, Tensor):
        series = values
    else:
        array = np.asarray(values)
        if array.dtype.kind not in "fiub":
            raise ArgumentError(f"a series must hold real numbers, got an array of {array.dtype}.")
        native = array.astype(array.dtype.newbyteorder("="), copy=False)
        # Torch takes no negative strides, and warns about arrays that it may not write to.
        needs_copy = min(native.strides, default=0) < 0 or not native.flags.writeable
        series = torch.from_numpy(native.copy() if needs_copy else native)
    return series if series.is_floating_point() or series.is_complex() else series.float()


def _check(series: Tensor, window: int, stride: int, *, check_finite: bool) -> None:
    """Refuse a series that cannot be scored."""
    if series.dim() != 2 or series.shape[1] == 0:
        raise ArgumentError(f"a series must be [T] or [T, C], got shape {list(series.shape)}.")
    if series.shape[0] < window:
        raise ArgumentError(
            f"the series has {series.shape[0]} rows, fewer than one window of {window}: choose a "
            "shorter window."
        )
    if check_finite:
        finite = torch.isfinite(series)
        if not bool(finite.all()):
            row, channel = (~finite).nonzero()[0].tolist()
            raise ArgumentError(
                f"row {row}, channel {channel} is {series[row, channel].item()} (first in window "
                f"{max(0, -(-(row - window + 1) // stride))}): fill or drop missing values first."
            )
