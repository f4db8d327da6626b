from __future__ import annotations

import pytest

from sacm_lab.paper.figures import rates
from sacm_lab.paper.figures.run_folders import finished_runs
from tests.experiments.cases import write_run


def test_one_run_stands_for_its_horizons_and_seeds(tmp_path):
    def write(strategy, **settings):
        return write_run(tmp_path, strategy=strategy, row={}, **settings)

    runs = [
        write("sacm", data="ILI", seed=2, horizon=24),
        write("sacm", data="ILI", seed=1, horizon=36),
        write("sacm", data="ILI", seed=1, horizon=24),
        write("raw", data="ILI", seed=1, horizon=24),
        write("sacm", data="ETTm2", seed=1, horizon=96),
    ]
    assert rates.representatives(runs) == [runs[4], runs[2]]


def test_the_histogram_counts_every_window(real_runs):
    figure = rates.draw(real_runs)
    (axes,) = figure.axes
    (run,) = rates.representatives(finished_runs(real_runs, "forecasting"))
    _, found = rates.window_rates(run, run.load_data())
    bars = axes.patches[1:]  # behind them, the band
    assert sum(bar.get_height() for bar in bars) == len(found)
    assert axes.lines[0].get_xdata()[0] == pytest.approx(found.mean(), abs=1e-6)
    band = axes.patches[0]
    assert band.get_width() == pytest.approx(2 * found.std(), rel=1e-4)
    assert f"mean {found.mean():.3f}" in axes.get_title(loc="left")
