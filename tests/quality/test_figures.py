from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

import sacm
from sacm.quality.figures import COLOURS, draw_event, draw_overview
from sacm.quality.kinds import KINDS
from tests.quality import tables


def draw(figure: Figure) -> None:
    """Lay everything out, so that text that cannot be set fails here."""
    figure.canvas.draw()


def data_of(line: Any) -> np.ndarray:
    return np.asarray(line.get_ydata(), float)


def test_every_kind_has_a_colour_of_its_own() -> None:
    assert set(COLOURS) == set(KINDS[1:])
    assert len(set(COLOURS.values())) == len(COLOURS)


def test_broken_stretches_have_the_colour_of_their_kind() -> None:
    quality = sacm.inspect(tables.wide())
    figure = draw_overview(quality)
    draw(figure)
    assert len(figure.axes) == 2
    load, heat = (
        {to_hex(line.get_color()): line for line in axes.get_lines()} for axes in figure.axes
    )
    assert len(data_of(heat[to_hex(COLOURS["stuck"])])) == 30
    assert len(data_of(load[to_hex(COLOURS["missing"])])) == 6
    assert to_hex(COLOURS["stuck"]) not in load
    assert isinstance(quality.plot(), Figure)


def test_an_event_is_drawn_with_its_repair() -> None:
    quality = sacm.inspect(tables.wide())
    stuck = next(event for event in quality.events if event.kind == "stuck")
    figure = draw_event(quality, stuck)
    draw(figure)
    (axes,) = figure.axes
    assert axes.get_title(loc="left") == "heat: stuck"
    repaired = data_of(axes.get_lines()[0])
    shown = repaired[np.isfinite(repaired)]
    np.testing.assert_array_equal(shown, quality.values[tables.STUCK, 1])
    low, high = axes.get_ylim()
    assert low < shown.min() < shown.max() < high


def test_a_code_does_not_squeeze_the_rest_together() -> None:
    values = tables.healthy(600)
    values[100:140:2, 0] = -9999.0
    quality = sacm.inspect(values)
    event = quality.events[0]
    assert event.kind == "code"
    assert draw_event(quality, event).axes[0].get_ylim()[0] > -10


def test_only_the_most_broken_of_many_channels_are_drawn() -> None:
    values = tables.healthy(300, 40)
    values[50:60, 33] = np.nan
    figure = draw_overview(sacm.inspect(values))
    names = [axes.get_ylabel() for axes in figure.axes]
    assert len(names) == 24
    assert "33" in names


@pytest.mark.parametrize("name", ["$x_1$", r"a$\frac{", "[red]", "Wärme", "x" * 300, "a_b^c"])
def test_any_name_can_be_drawn(name: str) -> None:
    quality = sacm.inspect(tables.wide().rename(columns={"load": name}))
    draw(draw_overview(quality))
    event = next(event for event in quality.events if event.channel == name)
    draw(draw_event(quality, event))


def test_healthy_and_empty_channels_can_be_drawn() -> None:
    for values in (np.zeros((50, 1)), np.full((50, 2), np.nan)):
        quality = sacm.inspect(values)
        draw(draw_overview(quality))
        for event in quality.events:
            draw(draw_event(quality, event))


def test_drawing_leaves_no_open_figure_and_no_settings() -> None:
    before = dict(plt.rcParams)
    draw_overview(sacm.inspect(tables.long()))
    assert plt.get_fignums() == []
    assert dict(plt.rcParams) == before
