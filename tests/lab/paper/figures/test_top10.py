from __future__ import annotations

import numpy as np
import pytest

import sacm.data
from sacm.errors import DataError
from sacm_lab.paper.figures import top10


def test_the_correlation_is_the_root_of_the_kept_energy():
    values = 5 + np.cumsum(np.random.default_rng(0).standard_normal(401))
    modes, r = top10.top_share(values)
    kept = np.square(modes.rebuilt - modes.rebuilt.mean()).sum()
    assert r == pytest.approx(np.sqrt(kept / np.square(values - values.mean()).sum()))
    assert modes.kept[1:].sum() == 20


def test_structure_is_rebuilt_and_noise_is_not(three_sets):
    figure = top10.draw()
    assert len(figure.axes) == 6
    titles = [axes.get_title(loc="left") for axes in figure.axes[::2]]
    found = [float(title.rpartition(" = ")[2]) for title in titles]
    assert found[0] > 0.95
    assert found == sorted(found, reverse=True)
    assert titles[0].startswith("ETTh1, channel 0")
    channel = sacm.data.load("ETTh1").values[:500, 0]
    np.testing.assert_allclose(figure.axes[0].lines[0].get_ydata(), channel)
    threshold = figure.axes[1].lines[1].get_ydata()[0]
    amplitude = np.abs(np.fft.rfft(sacm.data.load("ETTh1").values[:, 0].astype(float)))[1:]
    assert (amplitude >= threshold * (1 - 1e-9)).sum() == round(0.1 * len(amplitude))


def test_no_data_is_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setenv("SACM_DATA", str(tmp_path))
    monkeypatch.setenv("SACM_CACHE", str(tmp_path / "cache"))
    with pytest.raises(DataError, match=r"0 of the 9 real forecasting sets"):
        top10.draw()
