from __future__ import annotations

import numpy as np

from sacm_lab.paper.figures import error_against_noise as figure_of
from tests.experiments.cases import write_run


def write(folder, strategy, level, error, **settings):
    settings = {"horizon": 96, "seed": 1, **settings}
    row = {"mse": error, "mse_raw": 10 * error}
    return write_run(folder, strategy=strategy, data=f"Synth-12@{level}", row=row, **settings)


def test_a_point_averages_what_every_level_has(tmp_path):
    runs = [
        write(tmp_path, s, level, 8 * (s == "raw") + 10 * level + h / 96, horizon=h, batch_size=b)
        for s in ("raw", "sacm")
        for level in (0.9, 0.1)
        for h, b in ((96, 32), (192, 16))
    ]
    # A horizon that only one level has, a level that only one strategy has, another strategy.
    runs += [write(tmp_path, s, 0.1, 999.0, horizon=336) for s in ("raw", "sacm")]
    runs += [write(tmp_path, "raw", 0.5, 999.0), write(tmp_path, "fixed(p=0.2)", 0.1, 999.0)]
    (found,) = figure_of.noise_curves(runs)
    assert (found.title, found.levels, found.horizons) == ("PatchTST", (0.1, 0.9), (96, 192))
    np.testing.assert_allclose(found.errors["mse"]["raw"], [10.5, 18.5])
    np.testing.assert_allclose(found.errors["mse"]["sacm"], [2.5, 10.5])
    np.testing.assert_allclose(found.errors["mse_raw"]["sacm"], [25, 105])


def test_panels_tell_what_else_differs(tmp_path):
    for stride in (4, 16):
        for strategy in ("raw", "sacm"):
            write(tmp_path, strategy, 0.1, 1.0, stride=stride)
    write(tmp_path, "raw", 0.1, 1.0, backbone="Informer", stride=16)
    write(tmp_path, "sacm", 0.1, 1.0, backbone="Informer", stride=16)
    figure = figure_of.draw(tmp_path)
    titles = [axes.get_title(loc="left") for axes in figure.axes[:3]]
    assert titles == ["PatchTST\nstride 4", "PatchTST\nstride 16", "Informer\nstride 16"]
    assert figure.get_supxlabel() == "Every point averages horizon 96; 1 seed."
