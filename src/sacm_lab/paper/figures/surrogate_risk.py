"""Figure: the surrogate risk of the theory, its oracle, and what one strength for all costs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sacm.core.config import SACMConfig
from sacm.reports.style import INK, KEPT, LEFT, MUTED, SERIES, house_style
from sacm.theory import excess_risk, oracle_strength, regularization_strength, surrogate_risk
from sacm_lab.paper.figures.panels import MARKERS, footnote, sheet

BIAS, VARIANCE = 1.0, 1.0  # c1, c2
P_MIN, P_MAX = SACMConfig.p_min, SACMConfig.p_max
SIGMAS = (0.25, 0.5, 1.0, 2.0)
MEDIAN, SPREAD, WINDOWS, SEED = 0.7, 0.7, 500, 0  # of log-normal residual magnitudes


@dataclass(frozen=True)
class FixedStrengths:
    """Mean excess risk of every fixed strength [N] over the oracle, and its lower bound."""

    strengths: np.ndarray
    excess: np.ndarray
    bound: float

    @property
    def best(self) -> int:
        """The place of the least excess."""
        return int(self.excess.argmin())


def magnitudes(seed: int = SEED) -> np.ndarray:
    """Residual magnitudes [N] of windows of very different reliability."""
    random = np.random.default_rng(seed)
    return MEDIAN * np.exp(SPREAD * random.standard_normal(WINDOWS))


def allowed_strengths(count: int = 101) -> np.ndarray:
    """Strengths [count] between those of the smallest and the largest rate."""
    low, high = regularization_strength(P_MIN), regularization_strength(P_MAX)
    return np.linspace(low, high, count)


def fixed_strengths(sigmas: np.ndarray) -> FixedStrengths:
    """What each fixed strength costs a population of windows [N]."""
    strengths = allowed_strengths()
    pairs = [excess_risk(s, sigmas, BIAS, VARIANCE, P_MIN, P_MAX) for s in strengths.tolist()]
    return FixedStrengths(strengths, np.array([excess for excess, _ in pairs]), pairs[0][1])


def draw() -> Figure:
    """Risk against strength; the oracle's allocation; the excess risk of fixed strengths."""
    sigmas = magnitudes()
    found = fixed_strengths(sigmas)
    best = float(found.strengths[found.best])
    with house_style():
        figure, panels = sheet(1, 3, height=3.2)
        risk, allocation, excess = panels[0]
        _risk(risk)
        _allocation(allocation, sigmas, best)
        excess.plot(found.strengths, found.excess, color=LEFT)
        excess.axhline(found.bound, color=INK, linewidth=0.9, linestyle="--")
        excess.plot(best, found.excess[found.best], "D", color=LEFT)
        label = f"best fixed: {found.excess[found.best]:.4f}\nlower bound: {found.bound:.4f}"
        excess.text(0.45, 0.95, label, transform=excess.transAxes, ha="center", va="top")
        excess.set_ylim(bottom=0)
        excess.set_title("(c) mean excess over the oracle")
        excess.set_xlabel("one strength for all")
        footnote(
            figure,
            f"Weights of bias and variance 1; rates {P_MIN:g} to {P_MAX:g}, strength = rate / "
            f"(1 - rate). {len(sigmas):,} windows with log-normal magnitudes (median {MEDIAN:g}). "
            "The lower bound is the weight of bias times the variance of the oracle's strengths.",
        )
    return figure


def _risk(axes: Axes) -> None:
    strengths = allowed_strengths()
    for place, sigma in enumerate(SIGMAS):
        colour, marker = SERIES[place], MARKERS[place]
        axes.plot(strengths, surrogate_risk(strengths, sigma, BIAS, VARIANCE), color=colour)
        oracle = float(oracle_strength(sigma, BIAS, VARIANCE, P_MIN, P_MAX))
        height = float(surrogate_risk(oracle, sigma, BIAS, VARIANCE))
        axes.plot(oracle, height, marker, color=colour, label=f"σ = {sigma:g}")
    axes.set_yscale("log")
    axes.legend(loc="upper center", ncols=2, handlelength=0.8, columnspacing=0.8)
    axes.set_ylim(top=30)
    axes.set_title("(a) risk, the oracle marked")
    axes.set_xlabel("strength")


def _allocation(axes: Axes, sigmas: np.ndarray, best: float) -> None:
    grid = np.linspace(0, 3, 301)
    axes.plot(grid, oracle_strength(grid, BIAS, VARIANCE, P_MIN, P_MAX), color=KEPT)
    axes.axhline(best, color=LEFT, linestyle="--")
    axes.text(2.95, best + 0.02, f"best fixed: {best:.2f}", color=LEFT, ha="right")
    counts, edges = np.histogram(sigmas, bins=40, range=(0, 3))
    heights = 0.25 * counts / counts.max()
    axes.bar(edges[:-1], heights, np.diff(edges), align="edge", color=MUTED, alpha=0.35)
    axes.text(1.9, 0.08, "windows", color=MUTED)
    axes.text(1.75, 0.86, "oracle", color=KEPT, ha="right")
    axes.set_xlim(0, 3)
    axes.set_ylim(0, 1.1)
    axes.set_title("(b) strength by magnitude")
    axes.set_xlabel("residual magnitude σ")
