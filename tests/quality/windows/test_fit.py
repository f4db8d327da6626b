"""What can be learnt from, and what is refused or said."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch

from sacm.data.corrupt import corrupt_series
from sacm.errors import ArgumentError, DataError, SACMWarning
from sacm.quality.guard import Guard
from sacm.quality.kinds import CODE, MISSING
from sacm.quality.windows.fit import fit_window_guard
from tests.quality.windows.rows import LENGTH, TRAIN, broken_windows, guard, rows, windows


def test_the_same_rows_give_the_same_guard() -> None:
    again = fit_window_guard(rows()[:TRAIN], LENGTH)
    for name, tensor in guard().state_dict().items():
        assert torch.equal(tensor.nan_to_num(7.0), again.state_dict()[name].nan_to_num(7.0)), name


def test_rows_may_be_a_tensor() -> None:
    again = fit_window_guard(torch.from_numpy(rows()[:TRAIN]), LENGTH)
    assert torch.equal(again(broken_windows()), guard()(broken_windows()))


def test_gap_codes_and_missing_rows_do_not_shape_what_is_normal() -> None:
    holed = rows()[:TRAIN].copy()
    holed[100:110, 0] = np.nan
    holed[500:504, 1] = -9999
    own = fit_window_guard(holed, LENGTH)
    torch.testing.assert_close(own.scale, guard().scale, rtol=0.02, atol=0.0)
    x = windows()[:2].clone()
    x[0, 5, 1] = -9999
    x[1, 5, 1] = torch.nan
    repaired, kinds = own.inspect(x)
    assert kinds[0, 5, 1] == CODE
    assert kinds[1, 5, 1] == MISSING
    assert (repaired[:, 5, 1] - windows()[:2, 5, 1]).abs().max() < 15


def test_a_higher_sensitivity_flags_more() -> None:
    x = windows(every=3)
    shares = []
    for sensitivity in (0.1, 1.0, 20.0):
        own = fit_window_guard(rows()[:TRAIN], LENGTH, sensitivity=sensitivity)
        shares.append(float(own.flags(x).float().mean()))
    assert shares == sorted(shares)
    assert shares[2] > 3 * shares[1]


def test_pieces_are_not_joined() -> None:
    cut = rows()[:TRAIN].copy()
    cut[1000:1005] = 1e9
    pieces = [range(1000), range(1005, TRAIN)]
    own = fit_window_guard(cut, LENGTH, pieces=pieces)
    torch.testing.assert_close(own.scale, guard().scale, rtol=0.02, atol=0.0)
    assert own.limits.high.max() < 20


def test_given_mean_and_scale_are_taken() -> None:
    own = fit_window_guard(rows()[:TRAIN], LENGTH, mean=[1.0, 2.0, 3.0], scale=2.0)
    assert own.mean.tolist() == [1.0, 2.0, 3.0]
    assert own.scale.tolist() == [2.0, 2.0, 2.0]


def test_short_rows_are_said_and_only_plain_faults_are_repaired() -> None:
    with pytest.warns(SACMWarning, match="too few"):
        own = fit_window_guard(rows()[:100], LENGTH)
    assert own.config()["parts"] == ["limits", "runs", "gaps", "model", "filling"]
    x = windows()[:3].clone()
    x[0, 10:12] = torch.nan
    repaired, kinds = own.inspect(x)
    assert torch.isfinite(repaired).all()
    line = x[0, 9] + (x[0, 12] - x[0, 9]) / 3
    torch.testing.assert_close(repaired[0, 10], line, rtol=1e-3, atol=1e-3)
    assert (kinds[1:] == 0).all()


def test_a_constant_channel_is_healthy() -> None:
    flat = rows()[:TRAIN].copy()
    flat[:, 1] = 3.5
    own = fit_window_guard(flat, LENGTH)
    x = torch.from_numpy(flat[:96].reshape(2, 48, 3).copy())
    assert not own.flags(x)[:, :, 1].any()


def test_one_channel_is_enough() -> None:
    own = fit_window_guard(rows()[:TRAIN, :1], LENGTH)
    x = broken_windows()[:, :, :1]
    assert torch.isfinite(own(x)).all()


def test_rows_after_training_change_nothing() -> None:
    changed = rows().copy()
    changed[TRAIN:] = 0
    own = fit_window_guard(changed[:TRAIN], LENGTH)
    assert torch.equal(own(broken_windows()), guard()(broken_windows()))


@pytest.mark.parametrize(
    ("values", "length", "settings", "message"),
    [
        (np.zeros(10), 5, {}, r"numbers \[T, C\]"),
        (np.zeros((10, 0)), 5, {}, r"numbers \[T, C\]"),
        (np.array([["a"]]), 5, {}, r"numbers \[T, C\]"),
        (np.zeros((4, 2)), 5, {}, "fewer than the 5 steps"),
        (np.zeros((10, 2)), 2, {}, "at least 5 steps"),
        (np.zeros((10, 2)), 5.0, {}, "at least 5 steps"),
        (np.zeros((90, 2)), 5, {"sensitivity": 0.0}, "sensitivity"),
        (np.zeros((90, 2)), 5, {"mean": [1.0]}, "mean must hold 2"),
        (np.zeros((90, 2)), 5, {"scale": [1.0, np.nan]}, "scale must hold 2"),
        (np.zeros((90, 2)), 5, {"pieces": []}, "at least one range"),
        (np.zeros((90, 2)), 5, {"pieces": [range(95)]}, "within the 90 rows"),
    ],
)
def test_wrong_arguments_get_one_sentence(
    values: object, length: int, settings: dict[str, object], message: str
) -> None:
    with pytest.raises(ArgumentError, match=message):
        fit_window_guard(values, length, **settings)  # type: ignore[arg-type]  # wrong on purpose


def test_a_channel_without_values_is_named() -> None:
    empty = rows()[:TRAIN].copy()
    empty[:, 2] = np.nan
    with pytest.raises(DataError, match="Channel 2"):
        fit_window_guard(empty, LENGTH)


@pytest.mark.parametrize("seed", range(3))
def test_odd_rows_make_a_guard_that_gives_finite_windows(seed: int) -> None:
    random = np.random.default_rng(seed)
    odd = np.stack(
        [
            random.integers(0, 2, 600),  # a state
            np.where(random.random(600) < 0.5, np.nan, random.standard_normal(600)),  # half missing
            np.exp(4 * random.standard_normal(600)),  # wild peaks
            np.cumsum(random.standard_normal(600)),  # a random walk
        ],
        axis=1,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        own = fit_window_guard(odd, 24)
    x = torch.from_numpy(odd.astype(np.float32)).unfold(0, 24, 10).transpose(1, 2)
    repaired, kinds = own.inspect(x)
    assert torch.isfinite(repaired).all()
    assert (kinds[x.isnan()] == MISSING).all()
    assert (kinds[:, :, 0] != 0).float().mean() < 0.05


def test_a_guard_learns_windows_from_repaired_rows_where_many_are_broken() -> None:
    broken = corrupt_series(rows()[:TRAIN].astype(float), "mix", 0.3, seed=1).values
    x = broken_windows()
    found = Guard(window=LENGTH).fit(broken).module().flags(x)
    as_they_came = fit_window_guard(broken, LENGTH).flags(x)
    assert found[1, 8:40, 0].float().mean() > 0.9  # a sensor that hangs
    assert as_they_came[1, 8:40, 0].float().mean() < 0.1
    whole = Guard(window=LENGTH).fit(rows()[:TRAIN]).module()
    torch.testing.assert_close(whole(x), guard()(x))
