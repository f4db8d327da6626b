"""The page of `sacm quality --out` and its figures."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import sacm
from sacm.quality.page import KIND_STYLE, draw_event, draw_overview, quality_page
from sacm.quality.result import Quality

LONG = "Bridges and Tunnels: % of Comparable Pre-Pandemic Day"


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    """Two channels with a stuck stretch, a spike and a gap."""
    random = np.random.default_rng(0)
    hours = np.arange(900)
    load = 1e6 * (3 + np.sin(hours / 4)) + random.normal(0, 2e4, 900)
    other = np.cos(hours / 7) + random.normal(0, 0.05, 900)
    load[300:340] = load[300]
    load[600] += 4e7
    other[500:505] = np.nan
    times = pd.date_range("2024-01-01", periods=900, freq="h")
    return pd.DataFrame({"time": times, LONG: load, "other": other})


@pytest.fixture(scope="module")
def quality(table: pd.DataFrame) -> Quality:
    return sacm.inspect(table)


def test_it_says_names_kinds_and_what_was_read_in_full(quality: Quality) -> None:
    text = quality_page(quality)
    assert text.count(LONG) > 3
    for kind in ("stuck", "missing"):
        assert KIND_STYLE[kind][1] in text
    assert "Severity: the largest distance" in text
    assert "2024-01-01" in text.split("What was read")[1]
    assert f"sacm {sacm.__version__}" in text
    assert 'class="sortable"' in text
    assert "Drag over a part to enlarge it" in text
    assert "dblclick" in text
    assert "http" not in text


def test_flagged_values_lie_inside_the_axes(quality: Quality) -> None:
    channel = quality.recording.values[:, 0]
    for event in quality.worst_events(8):
        (axes,) = draw_event(quality, event).axes
        low, high = axes.get_ylim()
        for line in axes.lines:
            drawn = np.asarray(line.get_ydata(), dtype=float)
            drawn = drawn[np.isfinite(drawn)]
            assert ((drawn >= low) & (drawn <= high)).all()
    low, high = draw_overview(quality).axes[0].get_ylim()
    assert low <= channel[300] <= high


def test_gaps_and_repairs_have_different_colours(quality: Quality) -> None:
    gap = next(event for event in quality.events if event.kind == "missing")
    figure = draw_event(quality, gap)
    (legend,) = figure.legends
    names = [text.get_text() for text in legend.get_texts()]
    colours = [line.get_color() for line in legend.get_lines()]
    shown = dict(zip(names, colours, strict=True))
    assert shown["missing"] != shown["repaired"]
