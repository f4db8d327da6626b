"""Each part of the guard against a plain formula or a plain loop."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from sacm.quality.windows.flat_runs import NEVER, SHORTEST, FlatRuns, learn_flat_runs, mark_runs
from sacm.quality.windows.folds import cut_folds, steady_quantile
from sacm.quality.windows.limits import mask_codes
from sacm.quality.windows.neighbours import bridge, find_neighbours, interpolate, last_true
from sacm.quality.windows.noise import learn_noise, roughness
from sacm.quality.windows.offsets import TAU, faulty_sets, make_offsets
from sacm.quality.windows.parts import on_windows
from sacm.quality.windows.segments import block_average
from sacm.quality.windows.spikes import median_of_five

FLAGS = arrays(np.bool_, (2, 13, 2))


@given(flags=FLAGS)
def test_last_true_is_the_running_maximum(flags: np.ndarray) -> None:
    steps = np.where(flags, np.arange(13)[None, :, None], -1)
    expected = np.maximum.accumulate(steps, axis=1)
    assert np.array_equal(last_true(torch.from_numpy(flags)).numpy(), expected)


@given(flags=FLAGS)
def test_interpolation_is_numpys(flags: np.ndarray) -> None:
    values = np.random.default_rng(0).standard_normal((2, 13, 2)).astype(np.float32)
    drawn = interpolate(find_neighbours(torch.from_numpy(values), torch.from_numpy(flags))).numpy()
    for b, c in itertools.product(range(2), range(2)):
        known = np.flatnonzero(flags[b, :, c])
        expected = np.interp(np.arange(13), known, values[b, known, c]) if len(known) else 0.0
        assert np.allclose(drawn[b, :, c], expected, atol=1e-5)


def test_the_bridge_is_the_conditional_mean_of_an_autoregression() -> None:
    phi, length = 0.8, 12
    distance = np.abs(np.subtract.outer(np.arange(length), np.arange(length)))
    covariance = phi**distance
    x = np.random.default_rng(1).standard_normal(length)
    for good in ([0, 1, 2, 9, 10, 11], [0, 1], [10, 11]):
        weights = np.linalg.solve(covariance[np.ix_(good, good)], x[good])
        expected = covariance[:, good] @ weights
        mask = torch.zeros(1, length, 1, dtype=torch.bool)
        mask[0, good] = True
        values = torch.from_numpy(x.astype(np.float32)).view(1, length, 1)
        crossed = bridge(find_neighbours(values, mask), torch.tensor([phi])).flatten().numpy()
        gap = ~mask.flatten().numpy()
        assert np.allclose(crossed[gap], expected[gap], atol=1e-5)


@given(values=arrays(np.float32, (2, 9, 2), elements=st.floats(-5, 5, width=32)))
def test_the_median_of_five_is_numpys(values: np.ndarray) -> None:
    padded = np.pad(values, ((0, 0), (2, 2), (0, 0)), mode="edge")
    stacked = np.stack([padded[:, i : i + 9] for i in range(5)])
    found = median_of_five(torch.from_numpy(values)).numpy()
    assert np.array_equal(found, np.median(stacked, axis=0))


@given(column=arrays(np.int8, 30, elements=st.integers(0, 2)))
def test_runs_are_those_of_a_plain_loop(column: np.ndarray) -> None:
    starts, steps = mark_runs(column.astype(np.float64))
    expected, at = [], 0
    for _, group in itertools.groupby(column):
        size = len(list(group))
        if size > 1:
            expected.append((at, size - 1))
        at += size
    assert list(zip(starts, steps, strict=True)) == expected


@given(column=arrays(np.int8, 30, elements=st.integers(0, 2)))
def test_flat_runs_flag_every_repeated_step_of_a_long_run(column: np.ndarray) -> None:
    none = torch.zeros(0, 1)
    runs = FlatRuns(least=torch.full((3, 1), 4), rest=none, doubtful=none, remote=none.bool())
    z = torch.from_numpy(column.astype(np.float32)).view(1, 30, 1)
    expected = np.zeros(30, dtype=bool)
    for start, steps in zip(*mark_runs(column.astype(np.float64)), strict=True):
        if steps >= 4:
            expected[start + 1 : start + steps + 1] = True
    found = runs(z, torch.zeros_like(z, dtype=torch.bool)).flatten().numpy()
    assert np.array_equal(found, expected)


def test_run_limits_come_from_counting_runs() -> None:
    random = np.random.default_rng(0)
    one = random.standard_normal(2000).astype(np.float32)
    outage, rests, constant = one.copy(), one.copy(), np.ones_like(one)
    outage[300:700] = outage[299]
    for start in range(0, 2000, 100):
        rests[start : start + 60] = 0.25
    rows = np.stack([one, outage, rests, constant], 1)
    runs = learn_flat_runs(rows, np.zeros(4), np.ones(4), longest=48, sensitivity=1.0)
    assert runs.least[0].tolist() == [3, 3, NEVER, NEVER]
    assert runs.rest[0, 2] == pytest.approx(0.25)
    assert runs.rest[:, [0, 1, 3]].isnan().all()


def test_a_slow_coarse_channel_is_left_alone() -> None:
    """Its longest runs are few, but hold far more rows than may be flagged by mistake."""
    random = np.random.default_rng(3)
    column = np.repeat(np.cumsum(random.normal(0, 1, 9000)), random.geometric(0.3, 9000))
    runs = learn_flat_runs(
        column[:, None].astype(np.float32), np.zeros(1), np.ones(1), longest=32, sensitivity=1.0
    )
    windows = torch.from_numpy(column[: len(column) // 96 * 96].reshape(-1, 96, 1)).float()
    assert SHORTEST < int(runs.least[0, 0]) < NEVER
    assert runs(windows, torch.zeros_like(windows, dtype=torch.bool)).float().mean() < 0.01


def test_values_held_before_a_repair_are_doubtful_not_forgotten() -> None:
    random = np.random.default_rng(0)
    repaired = random.standard_normal((2000, 2)).astype(np.float32)
    before = repaired.copy()
    for start in range(0, 2000, 400):
        before[start : start + 40, 0] = 2.0
    runs = learn_flat_runs(
        repaired, np.zeros(2), np.ones(2), longest=48, sensitivity=1.0, before=before
    )
    assert runs.rest.shape == (0, 2)
    assert runs.doubtful[:, 0].tolist() == pytest.approx([2.0])
    assert runs.doubtful[:, 1].isnan().all()
    window = torch.from_numpy(repaired[:96].copy()).repeat(4, 1, 1)
    window[0, 30:60, 0] = 2.0  # one stretch, as in training: a fault
    for start in (5, 30, 60):  # three stretches: a level
        window[1, start : start + 20, 0] = 2.0
    window[2, :, 0] = 2.0  # nothing but this value: nothing to tell a fault by
    window[3, :, 0] = 1.5  # held at a value that was never seen held: a fault
    flags = runs(window, torch.zeros_like(window, dtype=torch.bool))[..., 0].sum(1)
    assert flags.tolist() == [29, 0, 0, 95]


def test_a_channel_may_move_to_where_it_was_only_held_before() -> None:
    repaired = np.random.default_rng(0).standard_normal((2000, 1)).astype(np.float32)
    before = repaired.copy()
    for start in range(0, 2000, 400):
        before[start : start + 40] = -5.0
    runs = learn_flat_runs(
        repaired, np.zeros(1), np.ones(1), longest=48, sensitivity=1.0, before=before
    )
    assert runs.remote.tolist() == [[True]]
    window = torch.from_numpy(repaired[:96].copy()).repeat(2, 1, 1)
    window[1] -= 4.0  # the channel has come down to the value that was a fault in training
    window[:, 30:60] = -5.0
    flags = runs(window, torch.zeros_like(window, dtype=torch.bool)).sum((1, 2))
    assert flags.tolist() == [29, 0]


def test_coarse_numbers_have_longer_runs_by_nature() -> None:
    slow = np.cumsum(np.random.default_rng(0).standard_normal(4000)).astype(np.float32) + 500
    runs = learn_flat_runs(slow[:, None], np.zeros(1), np.ones(1), longest=48, sensitivity=1.0)
    exact, _half, coarse = runs.least[:, 0].tolist()
    assert exact == 3
    assert coarse > exact


def test_roughness_of_white_noise_is_its_variance() -> None:
    x = 0.7 * torch.randn(400, 200, 1, generator=torch.Generator().manual_seed(0))
    assert roughness(x).mean() == pytest.approx(0.49, rel=0.05)


def test_the_quick_test_for_noise_agrees_with_the_estimate() -> None:
    x = torch.randn(500, 31, 2, generator=torch.Generator().manual_seed(0))
    noise = learn_noise(x, [], sensitivity=60.0)
    assert torch.equal(noise.suspect(x), roughness(x) > noise.top)
    assert noise.suspect(x).float().mean() == pytest.approx(0.3, abs=0.02)


def test_offset_evidence_is_that_of_gaussians() -> None:
    """Each faulty set adds TAU² to the variance of its levels: compare the densities themselves."""
    generator = torch.Generator().manual_seed(0)
    mixed = torch.randn(4, 4, generator=generator).double()
    means = (torch.randn(500, 4, generator=generator).double() @ mixed).float()
    offsets = make_offsets(means, 2.0)
    covariance = torch.linalg.inv(offsets.precision.double())
    x = means[7] + torch.tensor([0.0, 1.5, 0.0, 0.0])
    sets = [(), *faulty_sets(4)]
    logs, expected = [], []
    for group in sets:
        extra = torch.zeros(4, dtype=torch.float64)
        extra[list(group)] = TAU**2
        total = covariance + torch.diag(extra)
        r = (x - offsets.level).double()
        solved = torch.linalg.solve(total, r)
        prior = len(group) * math.log(0.02 / 0.98)
        logs.append(-0.5 * r @ solved - 0.5 * torch.logdet(total) + prior)
        expected.append(extra * solved)
    shares = torch.stack(logs).softmax(0)
    found, healthy = offsets.estimate(x.unsqueeze(0))
    assert float(healthy) == pytest.approx(float(shares[0]), rel=1e-2, abs=1e-4)
    averaged = (shares[:, None] * torch.stack(expected)).sum(0)
    torch.testing.assert_close(found[0].double(), averaged, rtol=1e-2, atol=1e-3)


def test_faulty_sets_hold_up_to_half_of_the_channels() -> None:
    assert len(faulty_sets(7)) == 7 + 21 + 35 + 35
    assert len(faulty_sets(21)) == 21 + 210
    assert len(faulty_sets(1)) == 1
    assert len(faulty_sets(3000)) == 3000


@pytest.mark.parametrize("length", [5, 8, 48, 50])
def test_blocks_average_every_step_once(length: int) -> None:
    average = block_average(length)
    assert torch.allclose(average.sum(1), torch.ones(len(average)))
    assert ((average > 0).sum(0) == 1).all()


def test_codes_are_extremes_that_repeat_far_away() -> None:
    column = np.random.default_rng(0).standard_normal(500).astype(np.float32)
    coded, peaked, wild, states = column.copy(), column.copy(), column.copy(), column.round()
    coded[[4, 90]] = -9999
    peaked[7] = 9.0
    wild[7] = 1e6
    rows, codes = mask_codes(np.stack([coded, peaked, wild, states], 1))
    assert codes.shape == (1, 4)
    assert codes[0, 0] == -9999
    assert np.isnan(codes[0, 1:]).all()
    assert np.isnan(rows).sum(0).tolist() == [2, 0, 1, 0]


def test_folds_share_no_row_with_what_they_are_checked_on() -> None:
    starts = torch.arange(0, 1000, 7)
    folds = cut_folds(starts, 48)
    assert sum(len(fold.held) for fold in folds) == len(starts)
    for fold in folds:
        distance = (starts[fold.inside][:, None] - starts[fold.held]).abs()
        assert distance.min() >= 48


def test_a_limit_grows_with_the_change_seen_in_training() -> None:
    values = np.random.default_rng(0).standard_normal((3000, 2))
    values[2000:, 1] *= 3
    folds = cut_folds(torch.arange(3000), 1)
    plain, steady = steady_quantile(values, 0.01, []), steady_quantile(values, 0.01, folds)
    assert steady[0] < 1.3 * plain[0]
    assert steady[1] > 2 * plain[1]


def test_only_windows_that_are_hit_are_computed() -> None:
    seen = []

    def change(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        seen.append(len(x))
        return x + y

    x, y = torch.zeros(4, 2), torch.ones(4, 2)
    hit = torch.tensor([False, True, False, True])
    assert on_windows(hit, change, x, y).tolist() == [[0, 0], [1, 1], [0, 0], [1, 1]]
    assert on_windows(~hit & hit, change, x, y) is x
    assert seen == [2]
