"""The figures of the paper, by name, each drawn anew from the code, the data or finished runs.

figure = figures.draw("detrending")
figures.save("gamma", Path("gamma.png"), runs=Path("runs"))
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from sacm.registry import Registry

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DOTS_PER_INCH = 150
DrawFunction = TypeVar("DrawFunction", bound="Callable[..., Figure]")


class FigureEntry(NamedTuple):
    """How a figure is drawn; a function that needs runs takes the folder of the runs."""

    draw: Callable[..., Figure]
    description: str
    needs_runs: bool = False


FIGURES: Registry[FigureEntry] = Registry("figure")


def register(
    name: str, *, description: str, needs_runs: bool = False
) -> Callable[[DrawFunction], DrawFunction]:
    """Give a decorator that makes a figure available as `sacm paper figure NAME`.

    The function takes no argument, or the folder of finished runs if it needs runs.
    """

    def add(draw: DrawFunction) -> DrawFunction:
        FIGURES.register(name, origin=draw)(FigureEntry(draw, description, needs_runs))
        return draw

    return add


# Name, file and function (imported when the figure is drawn), what it shows, whether from runs.
_FIGURES = (
    ("signals", "signals:draw", "four families of clean signals, three corruptions", False),
    (
        "sparsity_composite",
        "sparsity:composite",
        "a signal rebuilt from 1 % of its spectrum",
        False,
    ),
    ("sparsity_periodic", "sparsity:periodic", "periodic signals in the spectrum", False),
    ("sparsity_trend", "sparsity:trend", "trend and season in the spectrum, detrended", False),
    ("sparsity_chirp", "sparsity:chirp", "a linear chirp in the spectrum", False),
    ("sparsity_am", "sparsity:am", "amplitude modulation in the spectrum", False),
    ("proxy_snr", "proxy_snr:draw", "flatness against a proxy of the signal-to-noise ratio", False),
    ("top10", "top10:draw", "real series rebuilt from 10 % of their spectra", False),
    ("detrending", "detrending:draw", "three ways to detrend in four stress tests", False),
    ("surrogate_risk", "surrogate_risk:draw", "the surrogate risk, its oracle, fixed rates", False),
    ("error_against_noise", "error_against_noise:draw", "error on Synth-12 against noise", True),
    ("gamma", "gamma:draw", "error against the mapper's initial gamma", True),
    ("qualitative", "qualitative:draw", "forecasts of raw and sacm", True),
    ("rates", "rates:draw", "dropout rates of the training windows", True),
)


def _draw_file(place: str, *arguments: Any) -> Figure:
    file, _, function = place.partition(":")
    figure: Figure = getattr(import_module(f"{__name__}.{file}"), function)(*arguments)
    return figure


for _name, _place, _description, _needs_runs in _FIGURES:
    FIGURES.register(_name)(FigureEntry(partial(_draw_file, _place), _description, _needs_runs))


def names() -> list[str]:
    """List the names of all figures, in the order of the paper."""
    return FIGURES.names()


def describe(name: str) -> str:
    """One line on what a figure shows."""
    return FIGURES.get(name).description


def draw(name: str, *, runs: Path | None = None) -> Figure:
    """A figure; `runs` holds run folders, at any depth, for those that need them."""
    entry = FIGURES.get(name)
    if not entry.needs_runs:
        return entry.draw()
    from sacm.training.run import DEFAULT_FOLDER

    return entry.draw(DEFAULT_FOLDER if runs is None else runs)


def save(name: str, path: Path, *, runs: Path | None = None) -> None:
    """Draw a figure to a file."""
    write(draw(name, runs=runs), path)


def write(figure: Figure, path: Path) -> None:
    """A drawing as PNG or SVG, by the name of the file; the file is whole or not there."""
    from sacm.files import write_atomically

    kind = path.suffix.lower().removeprefix(".") or "png"
    write_atomically(path, lambda file: figure.savefig(file, format=kind, dpi=DOTS_PER_INCH))
