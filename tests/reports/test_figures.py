from __future__ import annotations

import io

import matplotlib
import numpy as np
import pandas as pd
import pytest

from sacm.reports import figures
from sacm.reports.figures import alarm_figure, forecast_figure
from sacm.reports.style import thin_out_range


def drawn(figure) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png")
    return buffer.getvalue()


def test_paired_dots_show_every_seed():
    values = {"raw": [2.0, 4.0, 3.0], "sacm": [1.0, np.nan, 3.5]}
    figure = figures.paired_dots(values, "MSE", levels={"naive": 0.8})
    lines = [list(line.get_ydata()) for line in figure.axes[0].lines]
    assert lines[0] == [2.0, 1.0]
    assert lines[2] == [3.0, 3.5]
    assert figure.axes[0].get_title(loc="left") == "MSE"
    assert [text.get_text() for text in figure.axes[0].texts] == ["naive"]
    assert drawn(figure).startswith(b"\x89PNG")


def test_the_ring_is_at_the_best_epoch():
    rows = [{"epoch": str(e), "val_mae": str(v)} for e, v in ((1, 3.0), (2, 1.0), (3, 2.0))]
    ring = figures.training_curves({"raw": [rows]}, "val_mae").axes[0].collections[0]
    assert ring.get_offsets().tolist() == [[2.0, 1.0]]
    scores = [{"epoch": r["epoch"], "val_accuracy": r["val_mae"]} for r in rows]
    ring = figures.training_curves({"raw": [scores]}, "val_accuracy").axes[0].collections[0]
    assert ring.get_offsets().tolist() == [[1.0, 3.0]]


def test_a_single_epoch_can_be_seen():
    histories = {"raw": [[{"train_loss": "2.0"}]], "sacm": [[{"train_loss": "1.0"}]]}
    curves = figures.training_curves(histories, "train_loss").axes[0]
    assert curves.get_xlim() == (0.5, 1.5)
    assert all(line.get_marker() == "o" for line in curves.lines)


@pytest.mark.parametrize("classes", [2, 30])
def test_confusion_matrices_of_few_and_many_classes(classes):
    names = [f"a rather long name {number}" for number in range(classes)]
    figure = figures.confusion_matrix(np.eye(classes, dtype=int), names, "raw")
    (cells,) = figure.axes[0].collections
    np.testing.assert_array_equal(cells.get_array(), np.eye(classes))
    assert len(figure.axes[0].texts) == (classes if classes <= 12 else 0)
    drawn(figure)


def test_nothing_of_the_style_stays_behind():
    before = dict(matplotlib.rcParams)
    figures.paired_dots({"raw": [2.0], "sacm": [1.0]}, "MSE")
    assert dict(matplotlib.rcParams) == before


def _forecast() -> tuple[pd.DataFrame, pd.DataFrame]:
    times = pd.date_range("2024-01-01", periods=14, freq="D")
    history = pd.DataFrame({"time": times[:10], "visits": np.arange(10.0)})
    ahead = {"time": times[10:], "visits": 9.0, "visits_lower_80": -3.0, "visits_upper_80": 20.0}
    return history, pd.DataFrame(ahead)


def test_a_forecast_begins_at_the_last_value_and_its_bands_are_named() -> None:
    history, forecast = _forecast()
    repaired = np.zeros((4, 1), bool)
    repaired[1] = True
    figure = forecast_figure(history, forecast, ["visits"], "time", repaired=repaired)
    (axes,), (legend,) = figure.axes, figure.legends
    names = [text.get_text() for text in legend.get_texts()]
    assert names == ["measured", "forecast", "80 % interval", "repaired for the forecast"]
    assert axes.lines[1].get_ydata()[0] == history["visits"].iloc[-1]
    assert axes.lines[1].get_xdata()[0] == axes.lines[0].get_xdata()[-1]
    assert axes.lines[2].get_ydata().tolist() == [7.0]
    assert axes.get_ylim()[0] == 0  # visits never were below


def test_alarms_are_drawn_on_the_data() -> None:
    frame = pd.DataFrame({"score": [0.0, 5.0, 0.0], "threshold": 1.0, "alarm": [0, 1, 0]})
    figure = alarm_figure(frame, None, pd.DataFrame({"flow": [1.0, 9.0, 1.0]}))
    data, scores = figure.axes
    assert data.lines[1].get_ydata().tolist() == [9.0]
    assert scores.lines[1].get_ydata().tolist() == [5.0]


def test_thinning_keeps_both_ends_of_the_range() -> None:
    values = np.zeros(10_000)
    values[[123, 7777]] = 5.0, -5.0
    rows = thin_out_range(values, 100)
    assert {123, 7777} <= set(rows.tolist())
    assert len(rows) <= 200
