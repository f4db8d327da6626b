"""The season of a set of channels: which period, and how strong it is in each of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sacm.quality.series.arrays import Bools, Floats, Ints, fill_linear

_CYCLES = 10
_LONGEST = 11_000
_ROWS = 65_536
_WEAKEST = 0.03
_SURE = 3.0
_SHORTEST = 4


@dataclass(frozen=True)
class Season:
    """A common season.

    Attributes:
        period: Rows of one cycle; 0 if there is none.
        strength: Share of each channel's variance that repeats itself, by channel.
    """

    period: int
    strength: tuple[float, ...]

    def period_of(self, channel: int) -> int:
        """Period that one channel follows; 0 if it has no season."""
        return self.period if self.strength[channel] > _WEAKEST else 0


def find_season(values: Floats, good: Bools) -> Season:
    """Find the season that most of the channels share.

    Candidates are peaks of the autocorrelation. Each is judged by how well the cycles predict
    one another (every cycle against the mean of all the others), which noise does not fake.

    Args:
        values: One piece `[T, C]` of the series; of long ones the last 65,536 rows count.
        good: Values that may be used `[T, C]`.

    Returns:
        The smallest period that explains nearly as much as the best one.
    """
    values, good = values[-_ROWS:], good[-_ROWS:]
    rows, channels = values.shape
    longest = min(rows // _CYCLES, _LONGEST)
    none = Season(0, (0.0,) * channels)
    if longest <= _SHORTEST:
        return none
    ready = [_standardise(values[:, c], good[:, c], longest) for c in range(channels)]
    used = [one for one in ready if one is not None]
    if not used:
        return none
    correlations = [_autocorrelation(series, mask, longest) for series, mask in used]
    curves = [np.mean(correlations, axis=0), *correlations]
    candidates = sorted({peak for curve in curves for peak in _find_peaks(curve)})
    if not candidates:
        return none
    powers = np.array([[_power(one, period) for one in ready] for period in candidates])
    total = powers.mean(axis=1)
    best = total.max()
    if best < _WEAKEST:
        return none
    index = int(np.argmax((total >= 0.75 * best) | (total > best - 0.02)))
    return Season(int(candidates[index]), tuple(float(power) for power in powers[index]))


def _standardise(values: Floats, good: Bools, longest: int) -> tuple[Floats, Bools] | None:
    """A channel clipped, without its slow level and in deviations; None if nothing is left."""
    from scipy.ndimage import uniform_filter1d

    if good.sum() < 50:
        return None
    low, quarter, three, high = np.quantile(values[good], [0.03, 0.25, 0.75, 0.97])
    reach = 1.5 * (three - quarter)
    if reach > 0:
        low, high = max(low, quarter - reach), min(high, three + reach)
    filled = np.clip(fill_linear(values, good), low, high)
    width = min(len(values) // 2, max(2 * longest, 64)) | 1
    filled = filled - uniform_filter1d(filled, width, mode="reflect")
    deviation = filled[good].std()
    if not deviation > 1e-12 * max(abs(high), abs(low)):
        return None
    return np.where(good, filled / deviation, 0.0), good


def _autocorrelation(values: Floats, good: Bools, longest: int) -> Floats:
    """Autocorrelation over good pairs at lags 0 to `longest`."""
    from scipy.fft import irfft, next_fast_len, rfft

    size = next_fast_len(len(values) + longest + 1, real=True)

    def lagged(series: Floats) -> Floats:
        return irfft(np.abs(rfft(series, size)) ** 2, size)[: longest + 1]

    pairs = len(values) - np.arange(longest + 1.0) if good.all() else lagged(good.astype(float))
    return lagged(values) / np.maximum(pairs, 1)


def _find_peaks(curve: Floats) -> list[int]:
    """Lags that rule 15 % around them: the four highest, and the first ones nearly as high.

    Multiples of a season are as high as the season itself, so the highest alone would not do.
    """
    lags = np.arange(_SHORTEST, len(curve) - 1)
    middle = curve[lags]
    peaks = lags[(middle > curve[lags - 1]) & (middle >= curve[lags + 1]) & (middle > 0.1)]
    highest = peaks[np.argsort(-curve[peaks])][:64]
    if not len(highest):
        return []
    first = peaks[curve[peaks] > 0.6 * curve[highest[0]]][:32]
    return _keep_rulers(curve, highest) + _keep_rulers(curve, first)


def _keep_rulers(curve: Floats, lags: Ints) -> list[int]:
    """The first four lags that are the highest within 15 % around them."""
    ruling = [
        int(lag)
        for lag in lags
        if curve[lag] >= curve[max(2, int(lag * 0.85)) : int(lag * 1.15) + 2].max() - 1e-12
    ]
    return ruling[:4]


def _power(ready: tuple[Floats, Bools] | None, period: int) -> float:
    """How well each cycle is predicted by the mean of the others, in shares of the variance."""
    if ready is None:
        return 0.0
    cycles = len(ready[0]) // period
    values = ready[0][: cycles * period].reshape(cycles, period)
    good = ready[1][: cycles * period].reshape(cycles, period).astype(float)
    total, count = values.sum(axis=0), good.sum(axis=0)
    # Sum over good rows of (value - its cycle's mean) * (mean of the other cycles), multiplied
    # out: values are 0 where they are not good, so only products with the whole table are left.
    share = 1 / np.maximum(count - 1, 1)
    seen = np.maximum(good.sum(axis=1), 1)
    means = values.sum(axis=1) / seen
    weights = np.stack([total * share, share], axis=1)
    by_total, by_share = (values @ weights).T
    products = by_total - means * (good @ weights[:, 0]) - values**2 @ share + means * by_share
    products /= seen
    error = products.std() / np.sqrt(cycles)
    return float(products.mean()) if products.mean() > _SURE * error else 0.0
