"""Faults of windows against independent formulas, window by window."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from sacm.errors import ArgumentError
from sacm_lab.robust.faults import TESTED, TRANSFER
from sacm_lab.robust.faults.windows import corrupt_windows, draw_start

WINDOW_FAULTS = (*TESTED, *TRANSFER)

LENGTH, CHANNELS, COUNT = 24, 5, 300


def windows() -> Tensor:
    return torch.randn(COUNT, LENGTH, CHANNELS, generator=torch.Generator().manual_seed(0))


def severities() -> Tensor:
    s = torch.rand(COUNT, generator=torch.Generator().manual_seed(1))
    s[0], s[1] = 0.0, 1.0
    return s


def case(kind: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Clean windows, broken ones and severities."""
    x, s = windows(), severities()
    return x.numpy(), corrupt_windows(x, kind, s, seed=3).numpy(), s.numpy()


@pytest.mark.parametrize("kind", WINDOW_FAULTS)
def test_the_number_of_broken_channels_follows_the_severity(kind: str) -> None:
    x, broken, s = case(kind)
    hit = (x != broken).any(1).sum(1)
    most = math.ceil(CHANNELS / 2)
    allowed = np.where(s == 1, most, 1 + np.floor(s * (most - 1)))
    if kind == "missing_data":
        allowed = np.full(COUNT, CHANNELS)
    assert (hit <= allowed).all()
    if kind in ("drift", "noise", "attenuation", "scaling", "linear_drift"):
        assert (hit == np.where(s > 0, allowed, 0)).all()


@pytest.mark.parametrize("kind", WINDOW_FAULTS)
def test_the_seed_decides_and_the_input_stays(kind: str) -> None:
    x = windows()
    kept = x.clone()
    once, again = (corrupt_windows(x, kind, 0.7, seed=5) for _ in range(2))
    assert torch.equal(once, again)
    assert torch.equal(x, kept)
    assert not torch.equal(once, corrupt_windows(x, kind, 0.7, seed=6))


@pytest.mark.parametrize("kind", [k for k in WINDOW_FAULTS if k not in ("packet_loss",)])
def test_a_severity_of_zero_breaks_next_to_nothing(kind: str) -> None:
    x = windows()
    assert (corrupt_windows(x, kind, 0.0) - x).abs().max() < (2.0 if "trimming" in kind else 1e-6)


@pytest.mark.parametrize(
    ("kind", "formula"),
    [
        ("drift", lambda x, s, u: x + 0.75 * s),
        ("attenuation", lambda x, s, u: x * (1 - 0.75 * s)),
        ("linear_drift", lambda x, s, u: x + s * u),
        ("nonlinear_drift", lambda x, s, u: x + s * (u + u**2) / 2),
        ("scaling", lambda x, s, u: x * (1 + s)),
        ("time_varying_scaling", lambda x, s, u: x * (1 + s * u)),
        ("trimming_constant", lambda x, s, u: np.clip(x, -(3 - 2 * s), 3 - 2 * s)),
        (
            "trimming_varying",
            lambda x, s, u: np.where(
                np.abs(x) > 3 - 2 * s,
                np.sign(x) * ((3 - 2 * s) + (np.abs(x) - (3 - 2 * s)) * (1 - 0.4 * s)),
                x,
            ),
        ),
    ],
)
def test_whole_channels_follow_their_formula(kind: str, formula) -> None:  # type: ignore[no-untyped-def]  # parametrised
    x, broken, s = case(kind)
    expected = formula(x, s[:, None, None], np.linspace(0, 1, LENGTH)[None, :, None])
    hit = (x != broken).any(1, keepdims=True)
    assert np.allclose(broken, np.where(hit, expected, x), atol=1e-5)


def test_noise_has_the_deviation_of_its_severity() -> None:
    x = torch.zeros(2000, LENGTH, 1)
    broken = corrupt_windows(x, "noise", 0.6)
    assert broken.std() == pytest.approx(0.6, rel=0.02)


def test_a_spike_is_one_step_after_the_first() -> None:
    x, broken, s = case("spike")
    risen = broken - x
    for b in range(1, COUNT):
        for c in np.flatnonzero((risen[b] != 0).any(0)):
            (at,) = np.flatnonzero(risen[b, :, c])
            assert at >= 1
            assert risen[b, at, c] == pytest.approx(7.5 * s[b], rel=1e-4)


def test_a_stuck_sensor_holds_the_value_before_its_start() -> None:
    x, broken, s = case("stuck_sensor")
    starts = set()
    for b in range(COUNT):
        steps = math.ceil(np.float64(s[b]) * (LENGTH - 1))
        for c in np.flatnonzero((x[b] != broken[b]).any(0)):
            (changed,) = np.nonzero(x[b, :, c] != broken[b, :, c])
            first = changed[0]
            assert len(changed) == steps
            assert (broken[b, first : first + steps, c] == x[b, first - 1, c]).all()
            starts.add((b, first))
    assert len(starts) > COUNT  # channels start by themselves


def test_missing_data_is_one_gap_in_all_channels() -> None:
    x, broken, s = case("missing_data")
    for b in range(1, COUNT):
        changed = (x[b] != broken[b]).all(1)
        first = int(np.argmax(changed))
        steps = math.ceil(0.5 * np.float64(s[b]) * (LENGTH - 1))
        assert changed.sum() == steps
        assert (broken[b, first : first + steps] == x[b, first - 1]).all()


@pytest.mark.parametrize(
    ("kind", "speed"),
    [("time_stretch", lambda s: 1 / (1 + 4 * s)), ("time_compress", lambda s: 1 / (1 - 0.9 * s))],
)
def test_time_is_read_at_another_speed(kind: str, speed) -> None:  # type: ignore[no-untyped-def]  # parametrised
    x, broken, s = case(kind)
    half = math.ceil(LENGTH / 2)
    for b in range(2, 60):
        changed = (np.abs(x[b] - broken[b]) > 1e-6).any(1)
        candidates = []
        for start in range(1, LENGTH - half + 1):
            t = start - 1 + np.arange(1, half + 1) * speed(s[b])
            guess = x[b].copy()
            for c in np.flatnonzero((np.abs(x[b] - broken[b]) > 1e-6).any(0)):
                guess[start : start + half, c] = np.interp(t, np.arange(LENGTH), x[b, :, c])
            candidates.append(np.abs(guess - broken[b]).max())
        assert changed.sum() <= half
        assert min(candidates) < 1e-4


def test_packets_are_lost_in_bursts_and_at_least_once() -> None:
    x = torch.randn(3000, LENGTH, 1, generator=torch.Generator().manual_seed(0))
    broken = corrupt_windows(x, "packet_loss", 0.5)
    lost = (broken != x).squeeze(-1)
    assert lost.any(1).all()
    assert not lost[:, 0].any()
    before, now = lost[:, :-1], lost[:, 1:]
    assert now[before].float().mean() == pytest.approx(0.45 + 0.55 / (LENGTH - 1), abs=0.03)
    held = torch.where(lost[:, 1:], broken[:, :-1, 0], x[:, 1:, 0])
    assert torch.equal(held, broken[:, 1:, 0])


def test_starts_are_uniform_where_the_stretch_fits() -> None:
    starts = draw_start(torch.full((4000,), 20), LENGTH, torch.Generator().manual_seed(0))
    counts = torch.bincount(starts, minlength=LENGTH)
    assert counts[0] == 0
    assert counts[5:].sum() == 0
    assert (counts[1:5] > 850).all()


def test_tested_and_transfer_families_are_apart() -> None:
    assert not set(TESTED) & set(TRANSFER)
    assert len(TESTED) == 8
    assert len(TRANSFER) == 7


@pytest.mark.parametrize(
    ("x", "kind", "severity", "message"),
    [
        (torch.zeros(2, 8, 3), "rust", 0.5, "no fault 'rust'"),
        (torch.zeros(8, 3), "drift", 0.5, r"\[B, L, C\]"),
        (torch.zeros(2, 1, 3), "drift", 0.5, r"\[B, L, C\]"),
        (torch.zeros(2, 8, 3), "drift", 1.5, "between 0 and 1"),
        (torch.zeros(2, 8, 3), "drift", float("nan"), "between 0 and 1"),
    ],
)
def test_wrong_arguments_get_one_sentence(
    x: Tensor, kind: str, severity: float, message: str
) -> None:
    with pytest.raises(ArgumentError, match=message):
        corrupt_windows(x, kind, severity)


def test_a_fault_of_series_breaks_a_share_of_each_window() -> None:
    x = torch.randn(6, 200, 2, generator=torch.Generator().manual_seed(0))
    broken = corrupt_windows(x, "tsf_const", 0.3, seed=1)
    moved = broken - x
    assert moved[moved != 0] == pytest.approx(0.5, abs=1e-6)
    assert (moved != 0).float().mean() == pytest.approx(0.3, abs=0.05)
    assert torch.equal(broken, corrupt_windows(x, "tsf_const", 0.3, seed=1))
