from __future__ import annotations

import io

import matplotlib
import numpy as np
import pandas as pd

from sacm.reports.figures import alarm_figure, forecast_figure
from sacm.reports.style import thin_out_range


def drawn(figure) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png")
    return buffer.getvalue()


def _forecast() -> tuple[pd.DataFrame, pd.DataFrame]:
    times = pd.date_range("2024-01-01", periods=14, freq="D")
    history = pd.DataFrame({"visits": np.arange(10.0)}, index=times[:10])
    ahead = {"visits": 9.0, "visits_lower_80": -3.0, "visits_upper_80": 20.0}
    return history, pd.DataFrame(ahead, index=times[10:])


def test_nothing_of_the_style_stays_behind() -> None:
    before = dict(matplotlib.rcParams)
    drawn(forecast_figure(*_forecast(), np.zeros((4, 1), bool)))
    assert dict(matplotlib.rcParams) == before


def test_a_forecast_begins_at_the_last_value_and_its_bands_are_named() -> None:
    history, forecast = _forecast()
    repaired = np.zeros((4, 1), bool)
    repaired[1] = True
    figure = forecast_figure(history, forecast, repaired)
    (axes,), (legend,) = figure.axes, figure.legends
    names = [text.get_text() for text in legend.get_texts()]
    assert names == ["measured", "forecast", "80 % interval", "repaired for the forecast"]
    assert axes.lines[1].get_ydata()[0] == history["visits"].iloc[-1]
    assert axes.lines[1].get_xdata()[0] == axes.lines[0].get_xdata()[-1]
    assert axes.lines[2].get_ydata().tolist() == [7.0]


def test_alarms_are_drawn_on_the_data() -> None:
    frame = pd.DataFrame({"score": [0.0, 5.0, 0.0], "threshold": 1.0, "alarm": [0, 1, 0]})
    figure = alarm_figure(frame, pd.DataFrame({"flow": [1.0, 9.0, 1.0]}))
    data, scores = figure.axes
    assert data.lines[1].get_ydata().tolist() == [9.0]
    assert scores.lines[1].get_ydata().tolist() == [5.0]


def test_thinning_keeps_both_ends_of_the_range() -> None:
    values = np.zeros(10_000)
    values[[123, 7777]] = 5.0, -5.0
    rows = thin_out_range(values, 100)
    assert {123, 7777} <= set(rows.tolist())
    assert len(rows) <= 200
