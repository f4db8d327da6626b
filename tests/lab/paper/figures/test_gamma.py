from __future__ import annotations

import numpy as np

from sacm_lab.paper.figures import gamma as figure_of
from tests.experiments.cases import write_run


def write(folder, strategy, level, error, seed=1):
    data = f"Synth-12@{level}"
    return write_run(folder, strategy=strategy, data=data, seed=seed, row={"mse": error})


def test_gamma_is_read_off_the_strategy(tmp_path):
    spellings = ("sacm", "sacm(gamma=5)", "sacm(gamma=5,p_max=0.4)", "raw")
    runs = [write(tmp_path, spelling, 0.1, 1.0) for spelling in spellings]
    assert [figure_of.gamma_of(run) for run in runs] == [1.0, 5.0, None, None]


def test_a_cell_averages_the_seeds_that_all_cells_have(tmp_path):
    runs = [
        write(tmp_path, f"sacm(gamma={gamma})", level, gamma + level + seed, seed)
        for gamma in (10, 1)
        for level in (0.3, 0.1)
        for seed in (1, 2)
    ]
    runs.append(write(tmp_path, "sacm", 0.1, 999.0, seed=3))
    (table,) = figure_of.gamma_tables(runs)
    assert (table.gammas, table.levels) == ((1.0, 10.0), (0.1, 0.3))
    np.testing.assert_allclose(table.mse, [[2.6, 2.8], [11.6, 11.8]])


def test_both_panels_show_the_same_numbers(tmp_path):
    for strategy, error in (("sacm", 1.0), ("sacm(gamma=5)", 2.0), ("sacm(gamma=10)", 4.0)):
        for level in (0.1, 0.9):
            write(tmp_path, strategy, level, error + level)
    by_level, by_gamma = figure_of.draw(tmp_path).axes
    first = np.array([line.get_ydata() for line in by_level.lines])
    second = np.array([line.get_ydata() for line in by_gamma.lines])
    np.testing.assert_allclose(first, [[1.1, 1.9], [2.1, 2.9], [4.1, 4.9]])
    np.testing.assert_array_equal(first, second.T)
    assert [tick.get_text() for tick in by_gamma.get_xticklabels()] == ["1", "5", "10"]
