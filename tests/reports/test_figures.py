from __future__ import annotations

import io

import matplotlib
import numpy as np
import pandas as pd
import pytest
import torch

from sacm import score_windows
from sacm.core.scorer import SpectralScorer
from sacm.reports import figures
from sacm.reports.figures import alarm_figure, forecast_figure, split_window
from sacm.reports.style import thin_out, thin_out_range


def drawn(figure) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png")
    return buffer.getvalue()


def series(rows=400):
    time = np.arange(rows)
    noise = np.random.default_rng(0).normal(size=rows) * (time >= rows // 2)
    return np.stack([np.sin(time / 5), np.cos(time / 7) + noise], axis=1)


def test_paired_dots_show_every_seed():
    values = {"raw": [2.0, 4.0, 3.0], "sacm": [1.0, np.nan, 3.5]}
    figure = figures.paired_dots(values, "MSE", random={"raw": 0.8, "sacm": 0.7})
    lines = [line.get_ydata().tolist() for line in figure.axes[0].lines]
    assert lines[0] == [2.0, 1.0]
    assert lines[2] == [3.0, 3.5]
    assert figure.axes[0].get_title(loc="left") == "MSE"
    assert [text.get_text() for text in figure.axes[0].texts] == ["random", "random"]
    assert drawn(figure).startswith(b"\x89PNG")


def test_gains_by_cell_show_a_dot_a_seed_and_a_bar_a_strategy():
    gains = {"ILI 24": {"sacm": [1.0, 3.0], "fixed": [-1.0]}, "ILI 36": {"sacm": [2.0]}}
    figure = figures.gain_figure(gains, title="MSE")
    axes = figure.axes[0]
    assert [bar.get_width() for bar in axes.patches] == [2.0, -1.0, 2.0]
    assert [line.get_xdata().tolist() for line in axes.lines[:3]] == [[1.0, 3.0], [-1.0], [2.0]]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["ILI 24", "ILI 36"]
    drawn(figure)


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
    assert len(figure.axes[0].collections[0].get_paths()) == classes
    assert len(figure.axes[0].texts) == (classes if classes <= 12 else 0)
    drawn(figure)


def test_score_figure_draws_windows_that_do_not_overlap():
    values = series()
    scores = score_windows(values, 40, 3)
    figure = figures.score_figure(values, scores, window=40, stride=3, columns=["a", "b"], count=3)
    titles = [axes.get_title(loc="left") for axes in figure.axes[1:]]
    assert len(titles) == 6
    assert sum(title.startswith("least reliable") for title in titles) == 3
    firsts = [int(t.split("rows ")[1].split(" ")[0].replace(",", "")) for t in titles]
    least, most = sorted(firsts[:3]), sorted(firsts[3:])
    assert min(np.diff(least)) >= 40
    assert min(np.diff(most)) >= 40
    assert int(np.argmax(scores)) * 3 + 1 in least
    assert int(np.argmin(scores)) * 3 + 1 in most
    drawn(figure)


def test_score_figure_of_one_window_and_one_channel():
    values = series(40)[:, :1].astype(np.float32)
    scores = score_windows(values, 40)
    figure = figures.score_figure(values, scores, window=40, stride=1, columns=["a"], count=2)
    assert len(figure.axes) == 3
    drawn(figure)


def test_a_view_is_what_the_scorer_says():
    window = series()[250:300]
    channel, values, kept = split_window(window)
    out = SpectralScorer(2)(torch.from_numpy(window)[None])
    assert channel == 1
    left = np.abs(values - kept).mean()
    assert left == pytest.approx(out.channel_scores[0, 1].item(), rel=1e-5)


def test_thinning_keeps_every_peak():
    values = np.zeros(10_000)
    values[[3, 5_000, 9_999]] = [1.0, 2.0, 3.0]
    rows, peaks = thin_out(values, bins=100)
    assert len(rows) == len(peaks) == 100
    assert sorted(peaks)[-3:] == [1.0, 2.0, 3.0]
    short_rows, short = thin_out(np.array([1.0, np.nan, 2.0]))
    assert short_rows.tolist() == [0, 1, 2]
    assert np.isnan(short[1])


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
