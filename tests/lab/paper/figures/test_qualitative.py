from __future__ import annotations

import numpy as np

import sacm.data
from sacm_lab.paper.figures import qualitative
from tests.experiments.cases import write_run


def test_the_pair_nearest_to_the_papers_is_chosen(tmp_path):
    def write(strategy, **settings):
        return write_run(tmp_path, strategy=strategy, row={}, **{"seed": 1, **settings})

    choices = [
        {"data": "Synth-12@0.3", "backbone": "WPMixer", "horizon": 720},
        {"data": "Synth-12@0.1", "backbone": "PatchTST", "horizon": 720},
        {"data": "Synth-12@0.1", "backbone": "WPMixer", "horizon": 96},
        {"data": "Synth-12@0.1", "backbone": "WPMixer", "horizon": 336},
    ]
    runs = [write(s, **choice) for choice in choices for s in ("sacm", "raw")]
    runs.append(write("raw", data="Synth-12@0.1", backbone="WPMixer", horizon=720))
    found = qualitative.pair(runs)
    assert list(found) == ["raw", "sacm"]
    assert found["sacm"].folder == runs[6].folder
    assert qualitative.pair(runs[-1:]) is None


def test_panels_show_the_clean_truth_and_both_forecasts(real_runs):
    figure = qualitative.draw(real_runs)
    assert len(figure.axes) == 3
    targets = sacm.data.synth12(0.1).clean[:, 0]
    stretches = np.lib.stride_tricks.sliding_window_view(targets[-6720:], 12)
    for axes in figure.axes:
        history, truth, raw, modulated = axes.lines[:4]
        assert len(history.get_ydata()) == 24
        assert np.isclose(stretches, truth.get_ydata(), atol=1e-4).all(axis=1).any()
        assert raw.get_linestyle() == "--"
        assert not np.array_equal(raw.get_ydata(), modulated.get_ydata())
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles[0].endswith("lower)")
    assert titles[2].endswith("higher)")
