"""Figure: the spectral flatness of real data against a proxy of their signal-to-noise ratio.

Definitions, for a data set [T, C]. Every channel is z-scored over the whole series, so that each
weighs the same; constant ones are left out. P[k, c] is the power of its real FFT, zero frequency
excluded.

proxy SNR  energy of the 10 % strongest coefficients of each channel, summed over channels, over
           the energy of the rest, summed likewise; in decibels
SFM        geometric over arithmetic mean of P along frequency, averaged over channels
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.stats import pearsonr

from sacm.errors import DataError
from sacm.reports.style import INK, KEPT, MUTED, SERIES, house_style
from sacm_lab.paper.figures.panels import MARKERS, footnote, sheet
from sacm_lab.paper.figures.real_series import real_series

SHARE = 0.1
_TINY = 1e-10


@dataclass(frozen=True)
class Concentration:
    """How concentrated the spectra of several data sets are."""

    names: tuple[str, ...]
    snr: np.ndarray  # [N], decibels
    flatness: np.ndarray  # [N]
    r: float
    p_value: float


def power(values: np.ndarray) -> np.ndarray:
    """Power [K, C'] of z-scored channels, zero frequency excluded, of values [T, C]."""
    spread = values.std(axis=0)
    moving = spread > 0
    if not moving.any():
        raise DataError(f"all {values.shape[1]} channels are constant: there is no spectrum.")
    scored = (values[:, moving] - values[:, moving].mean(axis=0)) / spread[moving]
    return np.abs(np.fft.rfft(scored, axis=0)[1:]) ** 2


def proxy_snr(values: np.ndarray, share: float = SHARE) -> float:
    """Energy of the strongest coefficients over that of the rest, in decibels; values [T, C]."""
    ordered = -np.sort(-power(values), axis=0)
    count = max(1, round(share * len(ordered)))
    return float(10 * np.log10(ordered[:count].sum() / ordered[count:].sum()))


def mean_flatness(values: np.ndarray) -> float:
    """Spectral flatness of values [T, C], averaged over channels; in (0, 1]."""
    spectrum = power(values) + _TINY
    means = np.exp(np.log(spectrum).mean(axis=0)) / spectrum.mean(axis=0)
    return float(means.mean())


def concentration(series: dict[str, np.ndarray]) -> Concentration:
    """Both numbers of every data set, and how they correlate; at least three sets [T, C]."""
    snr = np.array([proxy_snr(values) for values in series.values()])
    flat = np.array([mean_flatness(values) for values in series.values()])
    found = pearsonr(flat, snr)
    return Concentration(tuple(series), snr, flat, float(found.statistic), float(found.pvalue))


def draw() -> Figure:
    """Proxy SNR of each set, its relation to flatness, and the ranks by both."""
    series = real_series(least=3)
    found = concentration(series.values)
    with house_style():
        figure, panels = sheet(1, 3, height=3.5, widths=(1, 1.25, 1.1))
        bars, scatter, ranks = panels[0]
        _bars(bars, found)
        _scatter(scatter, found)
        _ranks(ranks, found)
        footnote(
            figure,
            "Proxy SNR: energy of the 10 % strongest Fourier coefficients over that of the rest, "
            "z-scored channels together. SFM: geometric over arithmetic mean of the power, mean "
            f"over channels. {series.note}",
        )
    return figure


def _bars(axes: Axes, found: Concentration) -> None:
    places = range(len(found.names))
    axes.barh(places, found.snr, color=KEPT, height=0.7)
    for place, value in zip(places, found.snr, strict=True):
        axes.text(value + 0.3, place, f"{value:.1f}", va="center")
    axes.set_yticks(places, found.names)
    axes.set_xlim(min(0, found.snr.min()), found.snr.max() * 1.22)
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    axes.set_title("(a) proxy SNR (dB)")


def _scatter(axes: Axes, found: Concentration) -> None:
    for place, (name, x, y) in enumerate(zip(found.names, found.flatness, found.snr, strict=True)):
        marker, colour = MARKERS[place % len(MARKERS)], SERIES[place % len(SERIES)]
        filled = colour if place < len(MARKERS) else "none"
        axes.scatter(x, y, marker=marker, s=34, facecolor=filled, edgecolor=colour, label=name)
    slope, level = np.polyfit(found.flatness, found.snr, 1)
    ends = np.array([0, found.flatness.max()])
    axes.plot(ends, slope * ends + level, color=MUTED, linewidth=0.9, linestyle="--")
    axes.legend(loc="upper right", ncols=2, handlelength=0.8, columnspacing=0.6)
    axes.set_title(f"(b) r = {found.r:.3f}, p = {found.p_value:.2g}, n = {len(found.names)}")
    axes.set_xlabel("SFM")
    axes.set_ylabel("proxy SNR (dB)")


def _ranks(axes: Axes, found: Concentration) -> None:
    by_snr = np.argsort(np.argsort(-found.snr)) + 1
    by_flatness = np.argsort(np.argsort(found.flatness)) + 1
    for name, left, right in zip(found.names, by_snr, by_flatness, strict=True):
        axes.plot([0, 1], [left, right], color=KEPT, marker="o", markersize=4)
        axes.text(-0.08, left, name, ha="right", va="center", color=INK)
        axes.text(1.08, right, f"{right}", va="center", color=INK)
    axes.set_xlim(-1.15, 1.3)
    axes.set_xticks([0, 1], ["proxy SNR", "SFM"])
    axes.set_yticks([])
    axes.invert_yaxis()
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)
    axes.set_title("(c) ranks, most concentrated first")
