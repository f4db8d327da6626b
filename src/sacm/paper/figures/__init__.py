"""The figures of the paper, by name, each drawn anew from the code, the data or finished runs.

figure = figures.draw("detrending")
figures.save("gamma", Path("gamma.png"), runs=Path("runs"))
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from sacm.errors import ArgumentError, did_you_mean

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DOTS_PER_INCH = 150


class FigurePlace(NamedTuple):
    """Where the function of a figure is; those that need runs take the folder of the runs."""

    module: str
    function: str
    description: str
    needs_runs: bool = False


FIGURES = {
    "signals": FigurePlace("signals", "draw", "four families of clean signals, three corruptions"),
    "sparsity_composite": FigurePlace(
        "sparsity", "composite", "a composite signal rebuilt from 1 % of its spectrum"
    ),
    "sparsity_periodic": FigurePlace("sparsity", "periodic", "periodic signals in the spectrum"),
    "sparsity_trend": FigurePlace(
        "sparsity", "trend", "trend and season in the spectrum, detrended"
    ),
    "sparsity_chirp": FigurePlace("sparsity", "chirp", "a linear chirp in the spectrum"),
    "sparsity_am": FigurePlace("sparsity", "am", "amplitude modulation in the spectrum"),
    "proxy_snr": FigurePlace(
        "proxy_snr", "draw", "spectral flatness against a proxy of the signal-to-noise ratio"
    ),
    "top10": FigurePlace("top10", "draw", "real series rebuilt from 10 % of their spectra"),
    "detrending": FigurePlace("detrending", "draw", "three ways to detrend in four stress tests"),
    "surrogate_risk": FigurePlace(
        "surrogate_risk", "draw", "the surrogate risk, its oracle, and what a fixed rate costs"
    ),
    "error_against_noise": FigurePlace(
        "error_against_noise", "draw", "error on Synth-12 against its noise level", needs_runs=True
    ),
    "gamma": FigurePlace(
        "gamma", "draw", "error against the mapper's initial gamma", needs_runs=True
    ),
    "qualitative": FigurePlace("qualitative", "draw", "forecasts of raw and sacm", needs_runs=True),
    "rates": FigurePlace("rates", "draw", "dropout rates of the training windows", needs_runs=True),
}


def names() -> list[str]:
    """Names of all figures, in the order of the paper."""
    return list(FIGURES)


def describe(name: str) -> str:
    """One line on what a figure shows."""
    return _place(name).description


def draw(name: str, *, runs: Path | None = None) -> Figure:
    """A figure; `runs` holds run folders, at any depth, for those that need them."""
    place = _place(name)
    function = getattr(import_module(f"{__name__}.{place.module}"), place.function)
    arguments = []
    if place.needs_runs:
        from sacm.training.run import DEFAULT_FOLDER

        arguments = [DEFAULT_FOLDER if runs is None else runs]
    figure: Figure = function(*arguments)
    return figure


def save(name: str, path: Path, *, runs: Path | None = None) -> None:
    """A figure as PNG; the file is whole or not there."""
    from sacm.files import write_atomically

    figure = draw(name, runs=runs)
    write_atomically(path, lambda file: figure.savefig(file, format="png", dpi=DOTS_PER_INCH))


def _place(name: str) -> FigurePlace:
    if name not in FIGURES:
        hint, known = did_you_mean(name, FIGURES), ", ".join(FIGURES)
        raise ArgumentError(f"there is no figure {name!r}.{hint} Figures: {known}.")
    return FIGURES[name]
