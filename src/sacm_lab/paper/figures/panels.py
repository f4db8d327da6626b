"""Sheets of many panels, in the house style."""

from __future__ import annotations

from textwrap import fill
from typing import Literal

import numpy as np
from matplotlib.figure import Figure

from sacm.reports.style import MUTED

WIDTH = 8.5  # inches
DASHES: dict[str, Literal["--", "-"]] = {"raw": "--", "sacm": "-"}
MARKERS = ("o", "s", "^", "D", "v", "P")  # beside colours, never colours alone


def sheet(
    rows: int, columns: int, *, height: float, widths: tuple[float, ...] | None = None
) -> tuple[Figure, np.ndarray]:
    """A wide figure with its panels `[rows, columns]`; `widths` are the columns' shares."""
    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False, width_ratios=widths)


def footnote(figure: Figure, text: str) -> None:
    """Small print below the panels."""
    figure.supxlabel(fill(text, 140), x=0.01, ha="left", fontsize=8, color=MUTED)
