from __future__ import annotations

import numpy as np
import pytest

from sacm.reports.gallery import detrending

BEST = {"outlier": "ols", "season": "ols", "curve": "none", "failure": "ols"}


def winners(seed, edge=detrending.EDGE):
    found = [detrending.edge_errors(stress, edge) for stress in detrending.stress_tests(seed)]
    return [min(errors, key=lambda way: errors[way][1]) for errors in found]


def test_edge_mae_by_hand():
    one = np.array([1.0, 2.0, 100.0, 100.0, 5.0, 7.0])
    other = np.array([0.0, 4.0, 0.0, 0.0, 5.0, 4.0])
    assert detrending.edge_mae(one, other, edge=2) == (1 + 2 + 0 + 3) / 4


def test_the_ranks_are_the_papers():
    assert winners(detrending.SEED) == list(BEST.values())


@pytest.mark.parametrize("edge", [3, 5, 10])
def test_the_ranks_do_not_hang_on_the_noise_or_on_the_width_of_the_edge(edge):
    shares = np.mean([np.equal(winners(seed, edge), list(BEST.values())) for seed in range(20)], 0)
    assert (shares >= 0.85).all()


def test_both_ways_of_detrending_help_where_the_season_is_cut():
    season = detrending.stress_tests()[1]
    assert abs(season.clean[0] - season.clean[-1]) == pytest.approx(np.sin(0.2 * np.pi))
    errors = {way: error for way, (_, error) in detrending.edge_errors(season).items()}
    assert max(errors["ols"], errors["endpoint"]) < errors["none"]


def test_one_bad_observation_turns_the_endpoint_line_alone():
    outlier, _, _, failure = detrending.stress_tests()
    for stress, slope in ((outlier, 2.0), (failure, 3.0)):
        modes = {way: found for way, (found, _) in detrending.edge_errors(stress).items()}
        rise = {way: found.trend[-1] - found.trend[0] for way, found in modes.items()}
        assert rise["none"] == 0
        assert rise["ols"] == pytest.approx(slope, rel=0.2)
        assert rise["endpoint"] < 0.2


def test_windows_are_what_their_text_says():
    outlier, season, curve, failure = detrending.stress_tests()
    for stress in (outlier, season, curve, failure):
        assert stress.clean.shape == stress.observed.shape == (96,)
        assert np.ptp(stress.clean) == pytest.approx(2, abs=0.01)
        assert np.abs(stress.observed - stress.clean)[1:-1].max() < 0.25
    assert outlier.observed[0] - outlier.clean[0] == pytest.approx(3, abs=0.2)
    ends = (curve.observed - curve.clean)[[0, -1]]
    np.testing.assert_allclose(ends, [1.5, -1.5], atol=0.2)
    assert failure.observed[-1] == 0
    assert failure.clean[-1] == 2


def test_the_panels_name_the_best():
    figure = detrending.draw()
    assert len(figure.axes) == 12
    best = [
        axes.get_title(loc="left").partition(":")[0]
        for axes in figure.axes
        if axes.get_title(loc="left").endswith("(best)")
    ]
    assert best == [detrending.WAYS[way] for way in BEST.values()]
