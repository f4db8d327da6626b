from __future__ import annotations

from sacm_lab.paper.figures.gains import gain_figure


def test_gains_by_cell_show_a_dot_a_seed_and_a_bar_a_strategy():
    gains = {"ILI 24": {"sacm": [1.0, 3.0], "fixed": [-1.0]}, "ILI 36": {"sacm": [2.0]}}
    figure = gain_figure(gains, title="MSE")
    axes = figure.axes[0]
    assert [bar.get_width() for bar in axes.patches] == [2.0, -1.0, 2.0]
    assert [line.get_xdata().tolist() for line in axes.lines[:3]] == [[1.0, 3.0], [-1.0], [2.0]]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["ILI 24", "ILI 36"]
