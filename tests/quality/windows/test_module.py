"""The guard as a whole: what it leaves alone, what it repairs, in which form it can be kept."""

from __future__ import annotations

import copy
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from sacm.errors import ArgumentError
from sacm.quality.kinds import BURST, MISSING, SHIFT, SPIKE, STUCK
from sacm.quality.windows.module import WindowGuard
from tests.quality.windows.rows import LENGTH, SCALE, broken_windows, guard, windows


def test_each_fault_is_named_by_its_kind() -> None:
    kinds = guard().inspect(broken_windows()).flags
    assert (kinds[0, 10:20] == MISSING).all()
    assert (kinds[1, 8:40, 0] == STUCK).all()
    assert kinds[2, 20, 1] == SPIKE
    assert (kinds[3, :, 2] == BURST).sum() >= LENGTH - 2  # one or two may stand out as spikes
    assert (kinds[4, :, 0] == SHIFT).all()


def test_a_repair_is_nearer_to_the_truth_than_the_fault() -> None:
    broken, truth = broken_windows(), windows()[:12]
    repaired, kinds = guard().inspect(broken)
    error = ((repaired - truth) / torch.from_numpy(SCALE)).square()
    before = ((broken - truth) / torch.from_numpy(SCALE)).square()
    for window, kind, share in ((1, STUCK, 0.2), (2, SPIKE, 0.1), (3, BURST, 0.4), (4, SHIFT, 0.4)):
        at = kinds[window] == kind
        assert error[window][at].mean() < share * before[window][at].mean(), kind
    assert error[0][kinds[0] == MISSING].mean() < 0.05


def test_a_channel_left_alone_keeps_all_but_what_is_missing() -> None:
    broken = broken_windows()
    hands_off = guard().leave_alone(torch.tensor([True, False, False]))
    loaded = WindowGuard.load(hands_off.config(), hands_off.state_dict())
    for one in (hands_off, loaded):
        repaired, kinds = one.inspect(broken)
        assert (kinds[1:, :, 0] == 0).all()
        torch.testing.assert_close(repaired[1:, :, 0], broken[1:, :, 0], rtol=0, atol=0)
        assert (kinds[0, 10:20] == MISSING).all()
        assert repaired[0].isfinite().all()
        assert kinds[2, 20, 1] == SPIKE
        torch.testing.assert_close(one(broken), repaired, rtol=0, atol=0)
    assert (guard().flags(broken)[1, 8:40, 0]).all()  # the guard itself is as it was


def test_few_healthy_values_are_flagged() -> None:
    assert guard().flags(windows(every=7)).float().mean() < 0.01


def test_windows_without_evidence_are_returned_as_they_are() -> None:
    x = windows()
    healthy = x[~guard().flags(x).flatten(1).any(1)]
    assert len(healthy) > 20
    assert guard()(healthy) is healthy


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_healthy_entries_keep_every_bit_in_every_precision(dtype: torch.dtype) -> None:
    x = broken_windows().to(dtype)
    repaired, kinds = guard().inspect(x)
    assert repaired.dtype == dtype
    assert torch.equal(repaired[kinds == 0], x[kinds == 0])
    assert torch.isfinite(repaired).all()
    assert torch.equal(guard()(x), repaired)
    assert torch.equal(guard().flags(x), kinds != 0)
    assert (kinds[0, 10:20] == MISSING).all()


@given(
    first=st.integers(0, LENGTH - 1),
    steps=st.integers(1, LENGTH),
    channel=st.integers(0, 2),
    value=st.sampled_from([float("nan"), float("inf"), -9999.0, 1e30]),
)
def test_whatever_comes_in_finite_numbers_come_out(
    first: int, steps: int, channel: int, value: float
) -> None:
    x = windows()[:3].clone()
    x[1, first : first + steps, channel] = value
    repaired, kinds = guard().inspect(x)
    assert torch.isfinite(repaired).all()
    assert (kinds[1, first : first + steps, channel] != 0).all()
    assert torch.equal(repaired[kinds == 0], x[kinds == 0])


def test_a_window_does_not_depend_on_its_batch() -> None:
    x = broken_windows()
    alone = torch.cat([guard()(window.unsqueeze(0)) for window in x])
    torch.testing.assert_close(guard()(x), alone, rtol=1e-4, atol=1e-4)


def test_many_windows_are_worked_on_in_pieces_with_the_same_result() -> None:
    x = torch.cat([broken_windows()] * 30)
    torch.testing.assert_close(guard()(x)[-12:], guard()(x[:12]), rtol=1e-4, atol=1e-4)


def test_an_empty_batch_stays_empty() -> None:
    assert guard()(torch.zeros(0, LENGTH, 3)).shape == (0, LENGTH, 3)


def test_gradients_pass_healthy_entries_and_stop_at_repaired_ones() -> None:
    x = broken_windows()
    x[0] = x[5]  # no missing values: their gradient would be NaN without a guard
    x.requires_grad_(True)
    guard()(x).sum().backward()
    assert x.grad is not None
    assert torch.equal(x.grad, (~guard().flags(x)).float())


def test_autocast_does_not_change_a_repair() -> None:
    x = broken_windows()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        inside = guard()(x)
    assert torch.equal(inside, guard()(x))


def test_a_cast_model_leaves_the_numbers_of_its_guard_alone() -> None:
    x = broken_windows()
    cast = torch.nn.Sequential(copy.deepcopy(guard())).half()
    assert torch.equal(cast(x), guard()(x))


def test_all_numbers_of_a_guard_move_with_the_model_that_holds_it() -> None:
    moved = torch.nn.Sequential(copy.deepcopy(guard())).to("meta")
    assert {buffer.device.type for buffer in moved.buffers()} == {"meta"}
    dtypes = [buffer.dtype for buffer in moved.buffers()]
    assert dtypes == [buffer.dtype for buffer in guard().buffers()]


def test_a_guard_survives_its_files(tmp_path: Path) -> None:
    save_file(guard().state_dict(), tmp_path / "guard.safetensors")
    again = WindowGuard.load(guard().config(), load_file(tmp_path / "guard.safetensors"))
    assert torch.equal(again(broken_windows()), guard()(broken_windows()))


def test_an_incomplete_file_is_refused_with_the_name_of_what_is_absent() -> None:
    state = guard().state_dict()
    del state["model.basis"]
    with pytest.raises(ArgumentError, match=r"model\.basis"):
        WindowGuard.load(guard().config(), state)


@pytest.mark.parametrize(
    "x",
    [torch.zeros(2, LENGTH + 1, 3), torch.zeros(2, LENGTH, 4), torch.zeros(LENGTH, 3)],
    ids=["length", "channels", "dimensions"],
)
def test_windows_of_another_shape_are_refused(x: torch.Tensor) -> None:
    with pytest.raises(ArgumentError, match=r"fitted for windows \[B, 48, 3\]"):
        guard()(x)


def test_whole_numbers_are_refused() -> None:
    with pytest.raises(ArgumentError, match="floating-point"):
        guard()(torch.zeros(2, LENGTH, 3, dtype=torch.int64))


def test_windows_and_rows_share_their_units() -> None:
    """The same guard learnt in other units repairs the same."""
    from sacm.quality.windows.fit import fit_window_guard
    from tests.quality.windows.rows import TRAIN, rows

    other = fit_window_guard(rows()[:TRAIN] * np.float32(8), LENGTH)
    x = broken_windows()
    torch.testing.assert_close(other(x * 8) / 8, guard()(x), rtol=1e-3, atol=1e-3)
