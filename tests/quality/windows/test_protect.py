"""Protected models repair their windows; unprotected ones are what they were."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from sacm.errors import ArgumentError
from sacm.quality.protect import protect, unprotect
from tests.quality.windows.rows import LENGTH, broken_windows, guard


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


def test_training_mode_repairs_as_well() -> None:
    x = broken_windows()
    assert torch.equal(protect(network(), guard()).train()(x), network()(guard()(x)))


def test_unprotect_gives_the_model_back() -> None:
    model = network()
    before = dict(model.__dict__), dict(model._forward_pre_hooks)
    assert unprotect(protect(model, guard())) is model
    assert (dict(model.__dict__), dict(model._forward_pre_hooks)) == before
    assert model._forward_pre_hooks_with_kwargs == {}
    x = broken_windows()[1:]
    assert torch.equal(model(x), network()(x))
    assert unprotect(model) is model


def test_state_children_and_parameters_stay() -> None:
    plain, model = network(), protect(network(), guard())
    assert list(plain.state_dict()) == list(model.state_dict())
    assert [name for name, _ in plain.named_modules()] == [n for n, _ in model.named_modules()]
    assert [name for name, _ in plain.named_buffers()] == [n for n, _ in model.named_buffers()]
    model.load_state_dict(plain.state_dict())


def test_a_sequential_model_keeps_its_length() -> None:
    model = protect(nn.Sequential(nn.Flatten(), nn.Linear(LENGTH * 3, 2)), guard())
    assert len(model) == 2
    assert torch.isfinite(model(broken_windows())).all()


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_copies_and_pickles_repair_and_can_be_unprotected(copied: Any) -> None:
    x = broken_windows()
    model = copied(protect(network(), guard()))
    assert torch.equal(model(x), network()(guard()(x)))
    assert torch.isnan(unprotect(model)(x)).any()


def test_channels_may_come_first() -> None:
    class First(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x

    x = broken_windows()
    model = protect(First(), guard(), window_layout="BCL")
    assert torch.equal(model(x.transpose(1, 2)), guard()(x).transpose(1, 2))


def test_one_channel_may_come_without_its_dimension() -> None:
    from sacm.quality.windows.fit import fit_window_guard
    from tests.quality.windows.rows import TRAIN, rows

    single = fit_window_guard(rows()[:TRAIN, :1], LENGTH)
    x = broken_windows()[:, :, 0]
    model = protect(nn.Identity(), single)
    assert torch.equal(model(x), single(x.unsqueeze(-1)).squeeze(-1))


def test_a_cast_model_still_repairs() -> None:
    model = protect(network(), guard()).bfloat16()
    x = broken_windows().bfloat16()
    assert torch.equal(model(x), network().bfloat16()(guard()(x)))


def test_an_object_that_makes_a_guard_will_do() -> None:
    class Maker:
        def module(self) -> nn.Module:
            return guard()

    x = broken_windows()
    assert torch.equal(protect(network(), Maker())(x), network()(guard()(x)))


def test_a_hugging_face_model_is_called_by_name() -> None:
    transformers = pytest.importorskip("transformers")
    config = transformers.PatchTSTConfig(
        num_input_channels=3, context_length=LENGTH, prediction_length=8, patch_length=8,
        patch_stride=8, d_model=16, num_attention_heads=2, ffn_dim=16, num_hidden_layers=1,
    )  # fmt: skip
    model = transformers.PatchTSTForPrediction(config).eval()
    x = broken_windows()
    with torch.no_grad():
        expected = model(past_values=guard()(x)).prediction_outputs
        protect(model, guard(), input_arg="past_values")
        assert torch.equal(model(past_values=x).prediction_outputs, expected)
        assert torch.equal(model(x).prediction_outputs, expected)


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
    with pytest.raises(ArgumentError, match="position or a name"):
        protect(network(), guard(), input_arg=lambda a, k: a[0])  # type: ignore[arg-type]  # wrong
    model = protect(network(), guard())
    with pytest.raises(ArgumentError, match="called without"):
        model(shift=1.0)
    with pytest.raises(ArgumentError, match="must be a tensor"):
        model([1.0])
    with pytest.raises(ArgumentError, match="fitted for windows"):
        model(torch.zeros(2, LENGTH, 5))
