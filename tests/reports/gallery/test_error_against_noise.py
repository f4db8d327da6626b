from __future__ import annotations

import numpy as np
import pytest

from sacm.errors import SACMError
from sacm.reports.gallery import error_against_noise as figure_of
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
    assert (found.backbone, found.levels, found.horizons) == ("PatchTST", (0.1, 0.9), (96, 192))
    np.testing.assert_allclose(found.errors["mse"]["raw"], [10.5, 18.5])
    np.testing.assert_allclose(found.errors["mse"]["sacm"], [2.5, 10.5])
    np.testing.assert_allclose(found.errors["mse_raw"]["sacm"], [25, 105])


def test_a_column_for_each_backbone(tmp_path):
    for backbone in ("PatchTST", "Informer", "WPMixer", "TimeMixer"):
        for strategy in ("raw", "sacm"):
            for level in (0.1, 0.3):
                write(tmp_path, strategy, level, level, backbone=backbone)
    figure = figure_of.draw(tmp_path)
    shown = [axes for axes in figure.axes if axes.lines]
    assert len(shown) == 8
    assert [line.get_linestyle() for line in shown[0].lines] == ["--", "-"]
    titles = {axes.get_title(loc="left") for axes in shown} - {""}
    assert titles == {"PatchTST", "Informer", "WPMixer", "TimeMixer"}


def test_runs_without_a_partner_are_no_pair(tmp_path):
    write(tmp_path, "raw", 0.1, 1.0)
    write(tmp_path, "sacm", 0.1, 1.0, seed=2)
    with pytest.raises(SACMError, match=r"no finished pairs .* `sacm paper run synth12`"):
        figure_of.draw(tmp_path)
