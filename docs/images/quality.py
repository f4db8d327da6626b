"""Make the pictures of docs/quality.md and docs/labels.md: `python docs/images/quality.py`.

The data are synthetic: hourly load and temperature of a plant, with faults put in by hand.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

import sacm
from sacm.quality.labels import LabelQuality, find_wrong_labels
from sacm.quality.page import draw_event


def make_plant() -> pd.DataFrame:
    """Twelve weeks of two sensors, broken in five places."""
    generator = np.random.default_rng(7)
    hours = np.arange(24 * 84)
    day = 2 * np.pi * hours / 24
    load = 50 + 10 * np.sin(day) + 4 * np.sin(day / 7) + generator.normal(0, 1, len(hours))
    heat = 20 + 3 * np.cos(day) + 0.3 * generator.normal(0, 1, len(hours)).cumsum() / 4
    load[300:330] = load[300]  # the sensor hangs
    load[700:712] = np.nan  # nothing arrives
    load[1100] += 60  # one wild value
    heat[500:560] += 9  # the sensor is moved, and moved back
    heat[1300:1340:2] = -9999  # a code for "no value"
    table = {"load": load.round(2), "temperature": heat.round(2)}
    return pd.DataFrame(table, index=pd.date_range("2024-03-04", periods=len(hours), freq="h"))


def find_labels() -> LabelQuality:
    """Slow and fast waves, six of the slow ones called fast."""
    waves = np.sin(np.outer(np.repeat([1, 3], 60), np.linspace(0, 6, 50)))[:, None]
    waves = waves + np.random.default_rng(0).normal(0, 0.3, waves.shape)
    y = np.repeat(["slow", "fast"], 60)
    y[:6] = "fast"
    return find_wrong_labels(waves, y)


def main() -> None:
    """Print what is found and draw it."""
    quality = sacm.inspect(make_plant())
    print(quality)
    folder = Path(__file__).parent
    quality.plot().savefig(folder / "quality-overview.png", dpi=110)
    stuck = next(event for event in quality.events if event.kind == "stuck")
    draw_event(quality, stuck, width=7.0).savefig(folder / "quality-event.png", dpi=110)
    labels = find_labels()
    labels.draw(int(labels.suspicious[0])).savefig(folder / "labels-case.png", dpi=110)


if __name__ == "__main__":
    main()
