"""Protected models repair their windows; unprotected ones are what they were."""

from __future__ import annotations

import copy
import functools
import pickle
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import sacm
from sacm import ArgumentError, protect, unprotect
from sacm.inject.window import WindowPath

LENGTH, TRAIN = 48, 2400
MEAN, SCALE = np.array([0.0, 50.0, -3.0]), np.array([1.0, 20.0, 0.1])


@functools.cache
def rows() -> np.ndarray:
    """Rows [3600, 3] in units that differ by channel: two daily waves and their sum."""
    random = np.random.default_rng(0)
    t = np.arange(3600)
    a, b = np.sin(2 * np.pi * t / 24), np.cos(2 * np.pi * t / 24)
    noise = 0.1 * random.standard_normal((3600, 3))
    return ((np.stack([a, b, a + b], 1) + noise) * SCALE + MEAN).astype(np.float32)


@functools.cache
def guard(channels: int = 3) -> nn.Module:
    """A guard fitted on the first rows; tests must not change it."""
    return sacm.Guard(window=LENGTH).fit(rows()[:TRAIN, :channels]).module()


def windows() -> Tensor:
    """Windows [B, 48, 3] of the rows after training, without faults."""
    return (
        torch.from_numpy(rows()[TRAIN:].copy()).unfold(0, LENGTH, 24).transpose(1, 2).contiguous()
    )


def broken_windows() -> Tensor:
    """The same with gaps and a spike."""
    x = windows()
    x[1, 10:16, 0] = torch.nan
    x[2, 30, 1] += 600.0
    return x


class Network(nn.Module):
    """A window and something else to a forecast."""

    def __init__(self) -> None:
        super().__init__()
        self.line = nn.Linear(LENGTH, 4)

    def forward(self, x: Tensor, shift: float = 0.0, *, scale: Tensor | None = None) -> Tensor:
        y = self.line(x.transpose(1, 2)).transpose(1, 2) + shift
        return y if scale is None else y * scale


def network() -> Network:
    torch.manual_seed(0)
    return Network().eval()


def test_a_protected_model_sees_repaired_windows() -> None:
    x = broken_windows()
    expected = network()(guard()(x))
    model = protect(network(), guard())
    assert torch.equal(model(x), expected)
    assert torch.equal(model(x=x), expected)
    assert torch.equal(model(x, 1.0, scale=torch.tensor(2.0)), (expected + 1) * 2)
    assert torch.equal(model.train()(x), expected)


def test_unprotect_gives_the_model_back() -> None:
    model = network()
    before = dict(model.__dict__), dict(model._forward_pre_hooks)
    assert unprotect(protect(model, guard())) is model
    assert (dict(model.__dict__), dict(model._forward_pre_hooks)) == before
    assert model._forward_pre_hooks_with_kwargs == {}
    assert unprotect(model) is model


def test_state_children_and_parameters_stay() -> None:
    plain, model = network(), protect(network(), guard())
    assert list(plain.state_dict()) == list(model.state_dict())
    assert [name for name, _ in plain.named_modules()] == [n for n, _ in model.named_modules()]
    model.load_state_dict(plain.state_dict())


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_copies_and_pickles_repair_and_can_be_unprotected(copied: Any) -> None:
    x = broken_windows()
    model = copied(protect(network(), guard()))
    assert torch.equal(model(x), network()(guard()(x)))
    assert model.sacm_guard.last_report.share[0] > 0
    assert torch.isnan(unprotect(model)(x)).any()


def test_layouts_dtypes_and_places_of_the_window() -> None:
    x = broken_windows()
    model = protect(nn.Identity(), guard(), window_layout="BCL")
    assert torch.equal(model(x.transpose(1, 2)), guard()(x).transpose(1, 2))
    single = x[:, :, 0]
    assert torch.equal(
        protect(nn.Identity(), guard(1))(single), guard(1)(single.unsqueeze(-1)).squeeze(-1)
    )
    cast = protect(network(), guard()).bfloat16()
    assert torch.equal(cast(x.bfloat16()), network().bfloat16()(guard()(x.bfloat16())))

    class TakesDict(nn.Module):
        def forward(self, batch: dict[str, Tensor]) -> Tensor:
            return batch["x"]

    deep = protect(TakesDict(), guard(), input_arg=WindowPath((0, "x")))
    assert torch.equal(deep({"x": x, "y": x}), guard()(x))


@pytest.mark.parametrize("kind", ["mean and std", "inverse_transform"])
def test_scaled_windows_are_repaired_in_the_units_of_the_guard(kind: str) -> None:
    if kind == "mean and std":
        scaler: Any = SimpleNamespace(mean=MEAN, std=SCALE)
    else:
        scaler = SimpleNamespace(inverse_transform=lambda z: z * SCALE + MEAN)
    x = broken_windows()
    z = (x - torch.tensor(MEAN).float()) / torch.tensor(SCALE).float()
    model = protect(nn.Identity(), guard(), scaler=scaler)
    repaired = model(z)
    changed = model.sacm_guard.last_report.repaired
    assert changed[1, 10:16, 0].all()
    assert changed[2, 30, 1]
    assert torch.equal(repaired[~changed], z[~changed]), "the others are the same bits"
    expected = (guard()(x) - torch.tensor(MEAN).float()) / torch.tensor(SCALE).float()
    torch.testing.assert_close(repaired[changed], expected[changed], atol=1e-3, rtol=1e-3)


def test_windows_in_other_units_are_warned_about_once() -> None:
    z = (windows() - torch.tensor(MEAN).float()) / torch.tensor(SCALE).float()
    model = protect(nn.Identity(), guard())
    model(windows())  # the right units come first
    with pytest.warns(sacm.SACMWarning, match="fitted on other units") as caught:
        model(z)
    assert len(caught) == 1
    model(z)
    protect(nn.Identity(), guard())(broken_windows())  # the right units: no warning


def test_repairs_are_reported() -> None:
    reports: list[Any] = []
    model = protect(nn.Identity(), guard(), on_flag=reports.append)
    assert model.sacm_guard.last_report is None
    model(broken_windows())
    (report,) = reports
    assert report is model.sacm_guard.last_report
    assert report.share.shape == (3,)
    assert report.share[0] >= 6 / broken_windows()[..., 0].numel()
    assert str(report).startswith("repaired by channel: ")
    clean = windows()[:1]
    if not guard().flags(clean).any():
        model(clean)
        assert len(reports) == 1
        assert not model.sacm_guard.last_report.share.any()


def test_wrong_calls_get_one_sentence() -> None:
    with pytest.raises(ArgumentError, match="already protected"):
        protect(protect(network(), guard()), guard())
    with pytest.raises(ArgumentError, match="no argument of Network"):
        protect(network(), guard(), input_arg="windows")
    with pytest.raises(ArgumentError, match="window_layout"):
        protect(network(), guard(), window_layout="LBC")  # type: ignore[arg-type]  # wrong on purpose
    with pytest.raises(ArgumentError, match="guard must be"):
        protect(network(), object())
    with pytest.raises(ArgumentError, match=r"nn\.Module"):
        protect("network", guard())  # type: ignore[type-var]  # wrong on purpose
    with pytest.raises(ArgumentError, match="on_flag must be a function"):
        protect(network(), guard(), on_flag=3)  # type: ignore[arg-type]  # wrong on purpose
    with pytest.raises(ArgumentError, match="cannot put a repaired window back"):
        protect(network(), guard(), input_arg=lambda a, k: a[0])
    model = protect(network(), guard())
    with pytest.raises(ArgumentError, match="there is no window at 'x'"):
        model(shift=1.0)


@pytest.mark.parametrize(
    ("scaler", "sentence"),
    [
        (object(), "must have mean and std"),
        (SimpleNamespace(mean=[0.0, 1.0], std=[1.0, 1.0]), "rows of the guard's 3 channels"),
        (SimpleNamespace(mean=MEAN, std=0 * SCALE), "deviation of 0"),
        (SimpleNamespace(mean=MEAN, std=np.nan * SCALE), "or no number"),
        (SimpleNamespace(inverse_transform=np.exp), "must be linear"),
        (SimpleNamespace(inverse_transform=lambda rows: rows[:, ::-1]), "channel by channel"),
        (SimpleNamespace(inverse_transform=lambda rows: rows.scale_), "has no attribute 'scale_'"),
    ],
)
def test_scalers_that_cannot_work_are_refused(scaler: Any, sentence: str) -> None:
    with pytest.raises(ArgumentError, match=sentence):
        protect(network(), guard(), scaler=scaler)
