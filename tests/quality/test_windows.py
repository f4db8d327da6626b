"""The guard of windows as a torch module: what it repairs, and where it can run."""

from __future__ import annotations

import copy
from functools import cache

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from sacm.errors import ArgumentError
from sacm.quality import windows
from sacm.quality.config import FAIL, Fixed
from sacm.quality.guard import Guard
from sacm.quality.windows import WindowGuard
from tests.quality import tables

LENGTH, CHANNELS, TRAIN = 48, 3, 2000


def rows(count: int = TRAIN, seed: int = 0) -> np.ndarray:
    return tables.healthy(count, CHANNELS, seed)


@cache
def guard() -> WindowGuard:
    return Guard(window=LENGTH).fit(rows()).module()


def clean_windows(count: int = 12, seed: int = 3) -> Tensor:
    values = torch.from_numpy(rows(count * LENGTH, seed)).float()
    return values.view(count, LENGTH, CHANNELS)


def broken_windows() -> Tensor:
    """A spike, a stuck run, a gap and a burst, a window each; the others are normal."""
    x = clean_windows()
    x[0, 20, 0] = 6.0
    x[1, 10:40, 1] = x[1, 10, 1]
    x[2, 30:36, 2] = torch.nan
    x[3, :, 0] += torch.randn(LENGTH, generator=torch.Generator().manual_seed(0))
    x[4, 5, 1] = 1e6
    return x


def test_faults_are_repaired_and_other_values_pass_bit_by_bit() -> None:
    x, clean = broken_windows(), clean_windows()
    found = guard().inspect(x)
    repaired = guard()(x)
    flags = guard().flags(x)
    assert torch.equal(flags, found.grades == FAIL)
    assert torch.equal(torch.nan_to_num(repaired[~flags]), torch.nan_to_num(x[~flags]))
    for window, steps, channel in ((0, 20, 0), (1, slice(16, 40), 1), (2, slice(30, 36), 2)):
        assert flags[window, steps, channel].all()
    assert flags[3, :, 0].float().mean() > 0.5
    assert flags[4, 5, 1]
    assert torch.isfinite(repaired).all()
    error, before = (repaired - clean).abs(), (x - clean).nan_to_num().abs()
    assert error[flags].mean() < 0.5 * before[flags].mean()


def test_an_outage_of_most_channels_keeps_its_level() -> None:
    x = clean_windows(1)
    x[:, LENGTH // 4 :] = x[:, LENGTH // 4, None]  # nothing is left to repair from
    answer = guard().inspect(x)
    assert (answer.grades[:, LENGTH // 4 + 1 :] == FAIL).float().mean() > 0.5
    assert torch.allclose(answer.repaired, x, atol=1e-5)
    alone = clean_windows(1)
    alone[..., 0] = x[..., 0]
    assert not torch.allclose(guard()(alone), alone, atol=1e-2)  # one channel has the others


def test_clean_windows_hardly_change() -> None:
    assert guard().flags(clean_windows(200, 7)).float().mean() < 0.005


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_every_precision_comes_back_as_it_came(dtype: torch.dtype) -> None:
    x = broken_windows().to(dtype)
    repaired = guard()(x)
    assert repaired.dtype == dtype
    flags = guard().flags(x)
    assert torch.equal(repaired[~flags], x[~flags])


def test_a_cast_leaves_the_numbers_of_the_guard_alone() -> None:
    cast = copy.deepcopy(guard()).to(torch.bfloat16)
    assert cast.mean.dtype == torch.float32
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(cast(clean_windows()), guard()(clean_windows()))


def test_gradients_pass_through_what_is_not_repaired() -> None:
    x = broken_windows().nan_to_num(0.3).requires_grad_()
    guard()(x).sum().backward()
    assert x.grad is not None
    assert torch.equal(x.grad, (~guard().flags(x)).float())


def test_batches_of_any_size_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    x = broken_windows()
    expected = guard()(x)
    monkeypatch.setattr(Fixed, "batch", 5)
    torch.testing.assert_close(guard()(x), expected, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(guard()(x[:1]), expected[:1], rtol=1e-4, atol=1e-4)
    assert guard()(x[:0]).shape == (0, LENGTH, CHANNELS)


def test_a_scaled_copy_repairs_scaled_windows() -> None:
    mean, scale = np.array([5.0, -2.0, 0.0]), np.array([10.0, 0.5, 3.0])
    x = broken_windows()
    scaled = (x - torch.from_numpy(mean).float()) / torch.from_numpy(scale).float()
    other = guard().rescaled(mean, scale)
    back = other(scaled) * torch.from_numpy(scale).float() + torch.from_numpy(mean).float()
    assert torch.equal(other.flags(scaled), guard().flags(x))
    torch.testing.assert_close(back, guard()(x), rtol=1e-3, atol=1e-3)


def test_channels_left_alone_are_only_filled() -> None:
    x = broken_windows()
    alone = guard().leave_alone(torch.tensor([True, True, True]))
    assert torch.equal(alone.flags(x), torch.isnan(x))


def test_rules_are_part_of_the_module() -> None:
    rules = {
        "0": {"range": [-0.5, 0.5]},
        "1": {"max_change": "0.6/row"},
        "2": {"codes": [7], "needs": ["1"]},
    }
    ruled = Guard(rules, window=LENGTH).fit(rows()).module()
    x = clean_windows()
    x[0, 20, 1] += 2.0
    x[1, 3, 2] = 7.0
    flags = ruled.flags(x)
    assert torch.equal(flags[..., 0] | (x[..., 0].abs() <= 0.5), torch.ones_like(flags[..., 0]))
    assert flags[0, 20, 1:].all()
    assert flags[1, 3, 2]


def test_few_rows_teach_limits_and_runs_alone() -> None:
    few = Guard(window=LENGTH).fit(rows(60)).module()
    assert few.basis.shape[1] == 0
    x = broken_windows()
    flags = few.flags(x)
    assert flags[2, 30:36, 2].all()
    assert flags[4, 5, 1]
    assert torch.isfinite(few(x)).all()


def test_it_is_rebuilt_from_its_state() -> None:
    rebuilt = WindowGuard(guard().state_dict())
    x = broken_windows()
    assert torch.equal(rebuilt(x), guard()(x))
    with pytest.raises(ArgumentError, match="lacks the tensor 'mean'"):
        WindowGuard({})


def test_a_larger_budget_flags_more() -> None:
    lenient, strict = (
        Guard(false_events=budget, window=LENGTH).fit(rows()).module() for budget in (30.0, 0.1)
    )
    x = clean_windows(100, 4)
    assert lenient.inspect(x).grades.sum() > strict.inspect(x).grades.sum()


@pytest.mark.parametrize(
    ("x", "sentence"),
    [
        (torch.zeros(2, LENGTH), "fitted for windows"),
        (torch.zeros(2, LENGTH + 1, CHANNELS), "fitted for windows"),
        (torch.zeros(2, LENGTH, 1), "fitted for windows"),
        (torch.zeros(2, LENGTH, CHANNELS, dtype=torch.int64), "floating-point"),
    ],
)
def test_other_windows_are_refused(x: Tensor, sentence: str) -> None:
    for call in (guard(), guard().flags, guard().inspect):
        with pytest.raises(ArgumentError, match=sentence):
            call(x)


class Protected(nn.Module):
    """A guard before a network, as `protect` puts it."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.guard, self.line = guard(), nn.Linear(LENGTH, 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.line(self.guard(x).transpose(1, 2))


def test_the_path_of_graphs_gives_what_eager_mode_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    x = broken_windows()
    expected = guard().inspect(x)
    monkeypatch.setattr(windows, "tracing", lambda: True)
    found = guard().inspect(x)
    assert torch.equal(found.flags, expected.flags)
    torch.testing.assert_close(found.repaired, expected.repaired, rtol=1e-3, atol=1e-3)


@pytest.mark.slow
def test_a_compiled_model_repairs_in_one_graph() -> None:
    model, x = Protected().eval(), broken_windows()
    expected = model(x)
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    with torch.no_grad():
        torch.testing.assert_close(compiled(x), expected, rtol=1e-3, atol=1e-3)


@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_exported_and_onnx_models_repair_batches_of_any_size() -> None:
    reference = pytest.importorskip("onnx.reference")
    pytest.importorskip("onnxscript")
    model, x = Protected().eval(), broken_windows()
    program = torch.export.export(model, (x,), dynamic_shapes=({0: torch.export.Dim("batch")},))
    for some in (x, x[:5], torch.cat([x, x])):
        torch.testing.assert_close(program.module()(some), model(some), rtol=1e-3, atol=1e-3)
    onnx = torch.onnx.export(program, dynamo=True, optimize=False, verbose=False)
    assert onnx is not None
    proto = onnx.model_proto
    evaluator = reference.ReferenceEvaluator(proto)
    for some in (x, x[:5]):
        (found,) = evaluator.run(None, {proto.graph.input[0].name: some.numpy()})
        assert np.allclose(found, model(some).detach().numpy(), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("length", [5, 7])
def test_windows_shorter_than_a_block_are_repaired(length: int) -> None:
    rows = np.sin(np.arange(144) / 2)[:, None]
    guard = Guard(window=length).fit(rows).module()
    window = torch.from_numpy(rows[:length]).float()[None]
    broken = window.clone()
    broken[0, 2] = 50.0
    assert (guard(broken) - window).abs().max() < 0.5
    assert torch.equal(guard(window), window)


def test_a_channel_that_grows_has_no_impossible_values() -> None:
    noise = np.random.default_rng(0).normal(1, 0.01, (400, 2))
    rows = np.stack([1.01 ** np.arange(400), np.full(400, 50.0)], 1) * noise
    guard = Guard(window=24).fit(rows[:200])
    limits = guard.module().limits.isfinite().all(0)
    assert limits.tolist() == [False, True]
    later = rows[200:].copy()
    later[100, 1] = 500.0
    fails = guard.check(later).grades == 2
    assert fails[100, 1]
    assert fails[:, 0].mean() < 0.1


def test_without_a_model_the_last_good_value_stays() -> None:
    rows = np.arange(300.0)[:, None] + 1000
    module = Guard(window=96).fit(rows).module()
    assert module.basis.shape[1] == 0  # there are fewer than eight windows end to end
    window = torch.arange(1300.0, 1396.0)[None, :, None].clone()
    window[0, 0] = window[0, 50] = torch.nan
    repaired = module(window)
    assert repaired[0, 50] == pytest.approx(1349.0, abs=1e-2)
    assert repaired[0, 0] == pytest.approx(rows.mean(), rel=1e-3)  # nothing is known before it
    assert torch.equal(repaired[0, 51:], window[0, 51:])
