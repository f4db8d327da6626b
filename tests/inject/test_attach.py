from __future__ import annotations

import copy
import io
import pickle
import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import sacm

from . import models
from .models import CHANNELS, attached, windows

COPIES: dict[str, Callable[[Any], Any]] = {
    "deepcopy": copy.deepcopy,
    "pickle": lambda model: pickle.loads(pickle.dumps(model)),
    "torch.save": lambda model: _through_a_file(model),
}
every_copy = pytest.mark.parametrize("how", COPIES)


def _through_a_file(model: nn.Module) -> nn.Module:
    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


def anatomy(model: nn.Module) -> list[tuple[Any, ...]]:
    """Names, identities, classes, flags, own attributes and hooks of all modules."""
    hooks = [name for name in vars(model) if "hooks" in name and name.startswith("_forward")]
    return [
        (
            name,
            id(module),
            type(module),
            module.training,
            sorted(vars(module)),
            [dict(getattr(module, table)) for table in hooks],
        )
        for name, module in model.named_modules()
    ]


class Everything(nn.Module):
    """Module, tied, functional and attention dropout in one model."""

    def __init__(self) -> None:
        super().__init__()
        self.body = models.Encoder(batch_first=True)
        self.drop = nn.Dropout(0.3)
        self.again = self.drop
        self.tail = nn.Linear(2, 2)

    def forward(self, x: Tensor) -> Tensor:
        h = self.again(self.tail(self.drop(self.body(x))))
        return F.dropout(h, 0.1, self.training)


@pytest.mark.parametrize("trained", [False, True])
@pytest.mark.parametrize("coverage", ["modules", "all"])
def test_detach_restores_everything(coverage: str, trained: bool) -> None:
    torch.manual_seed(0)
    model = Everything()
    model.drop.register_forward_hook(_own_hook)
    model.register_forward_pre_hook(_own_hook)
    before, keys = anatomy(model), list(model.state_dict())
    modulator = attached(model, coverage=coverage, insert_after=["tail"])
    assert len(modulator.sites) == 8 + (3 if coverage == "all" else 0)
    if trained:
        model.train()(windows()).sum().backward()
    assert sacm.detach(model) is model
    assert anatomy(model) == before
    assert list(model.state_dict()) == keys
    assert model(windows()).isfinite().all()
    assert model.drop.p == 0.3
    attached(model, coverage=coverage)  # and it can be attached again


def _own_hook(*_: object) -> None:
    return None


def test_the_model_gains_exactly_the_scalars_of_the_method() -> None:
    model = models.MLP()
    before = [name for name, _ in model.named_parameters()]
    modulator = attached(model)
    added = {n: p.shape for n, p in model.named_parameters() if n not in before}
    prefix = "sacm_modulator."
    assert added == {
        f"{prefix}scorer.weight": (CHANNELS,),
        f"{prefix}scorer.bias": (CHANNELS,),
        f"{prefix}scorer.alpha": (),
        f"{prefix}mapper.gamma": (),
    }
    assert sum(p.numel() for p in modulator.parameters()) == 2 * CHANNELS + 2


def test_checkpoints_go_both_ways() -> None:
    torch.manual_seed(0)
    raw, other = models.ConvNet(), models.ConvNet()
    modulator = attached(other)
    with torch.no_grad():
        modulator.mapper.gamma.fill_(4.0)
    assert other.load_state_dict(raw.state_dict()) == ([], [])  # strict
    assert modulator.mapper.gamma.item() == 4.0
    assert torch.equal(other.first.weight, raw.first.weight)

    other.train()(windows()).sum().backward()
    checkpoint = other.state_dict()
    with pytest.raises(RuntimeError, match="Unexpected key"):
        raw.load_state_dict(checkpoint)
    stripped = sacm.strip_state_dict(checkpoint)
    assert list(stripped) == list(raw.state_dict())
    assert raw.load_state_dict(stripped) == ([], [])
    assert torch.equal(raw.norm.running_mean, other.norm.running_mean)

    third = models.ConvNet()
    attached(third).mapper.gamma.data.fill_(-1.0)
    third.load_state_dict(checkpoint)
    assert third.sacm_modulator.mapper.gamma.item() == 4.0


def test_half_of_a_checkpoint_is_not_filled_up_silently() -> None:
    model = models.MLP()
    attached(model)
    state = model.state_dict()
    del state["sacm_modulator.mapper.gamma"]
    with pytest.raises(RuntimeError, match=re.escape("sacm_modulator.mapper.gamma")):
        model.load_state_dict(state)


@every_copy
@pytest.mark.parametrize("coverage", ["modules", "all"])
def test_copies_are_attached_models_of_their_own(how: str, coverage: str) -> None:
    torch.manual_seed(0)
    model = Everything()
    modulator = attached(model, coverage=coverage, insert_after=["tail"])
    model.train()(windows()).sum().backward()
    twin = COPIES[how](model)
    own = twin.sacm_modulator
    assert own.rates is None, "a copy starts between two forwards"
    assert [(s.name, s.layout) for s in own.sites] == [(s.name, s.layout) for s in modulator.sites]

    original = modulator.rates
    twin(windows(4, seed=3)).sum().backward()
    assert own.rates.shape == (4,)
    assert modulator.rates is not None
    assert torch.equal(modulator.rates, original)
    assert twin.drop is twin.again, "tied stays tied"
    for state in (model, twin):  # the same random numbers in both
        torch.manual_seed(5)
        state.out = state(windows())
    assert torch.equal(model.out, twin.out)

    with own.forced_rates(torch.zeros(6)):
        twin(windows())
        assert own.rates.tolist() == [0.0] * 6
        model(windows())
        assert modulator.rates.max() > 0, "forced in the copy alone"
    sacm.detach(twin)
    assert type(twin.drop) is nn.Dropout
    assert not hasattr(twin, "sacm_modulator")
    assert not twin._forward_pre_hooks
    assert model.train()(windows()).isfinite().all()


def test_a_part_is_copied_without_the_rest() -> None:
    model = models.MLP()
    attached(model)
    assert len(pickle.dumps(model.second)) < len(pickle.dumps(model)) / 2
    assert copy.deepcopy(model.second).eval()(torch.ones(2, 32)).isfinite().all()


def test_train_and_eval_reach_the_sites_and_to_moves_the_scalars() -> None:
    model = models.MLP()
    modulator = attached(model)
    assert modulator.training
    model.eval()
    assert not modulator.training
    assert not any(module.training for module in model.modules())
    model.train().double()
    assert modulator.mapper.gamma.dtype == torch.float64
    model(windows().double()).sum().backward()
    assert modulator.rates.dtype == torch.float64
    model.to("meta")
    assert modulator.scorer.weight.device.type == "meta"


def test_insert_after_adds_sites_to_a_model_without_dropout() -> None:
    class Plain(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.blocks = nn.ModuleList(nn.Linear(CHANNELS, CHANNELS) for _ in range(3))
            self.recurrent = nn.GRU(CHANNELS, 4, batch_first=True)

        def forward(self, x: Tensor) -> Tensor:
            for block in self.blocks:
                x = block(x)
            return self.recurrent(x)[0]

    torch.manual_seed(0)
    model = Plain()
    raw = copy.deepcopy(model).eval()
    modulator = attached(model, insert_after=["blocks.[01]", "recurrent"])
    assert [site.name for site in modulator.sites] == ["blocks.0", "blocks.1", "recurrent"]
    assert "inserted after GRU" in str(modulator.summary())
    zeros = []
    for name in ("blocks.0", "blocks.2", "recurrent"):
        model.get_submodule(name).register_forward_hook(
            lambda _, __, out: zeros.append(float((_first(out) == 0).double().mean()))
        )
    with modulator.forced_rates(torch.full((6,), 0.5)):
        model(windows())
    inserted, plain, tuple_output = zeros
    assert plain == 0
    assert 0.3 < inserted < 0.7
    assert 0.3 < tuple_output < 0.7
    assert torch.equal(model.eval()(windows()), raw(windows()))


def _first(output: Any) -> Tensor:
    return output[0] if isinstance(output, tuple) else output


def test_a_scorer_of_ones_own() -> None:
    class Amplitude(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.power = nn.Parameter(torch.tensor(1.0))

        def forward(self, x: Tensor) -> Tensor:
            return x.abs().amax(dim=(1, 2)) ** self.power

    model = models.MLP()
    modulator = attached(model, scorer=Amplitude())
    model(windows()).sum().backward()
    torch.testing.assert_close(modulator.scores, windows().abs().amax(dim=(1, 2)))
    assert modulator.rates.argmax() == modulator.scores.argmax()
    assert modulator.scorer.power.grad is not None
    assert modulator.scorer.power.grad != 0


@pytest.mark.parametrize(
    ("result", "found"),
    [(torch.zeros(6, 1), r"\[6, 1\]"), (torch.zeros(5), r"\[5\]"), ((1, 2), "tuple")],
)
def test_a_scorer_of_the_wrong_shape_is_refused(result: object, found: str) -> None:
    class Wrong(nn.Module):
        def forward(self, x: Tensor) -> object:
            return result

    model = models.MLP()
    attached(model, scorer=Wrong())
    with pytest.raises(ValueError, match=f"one score per window, \\[6\\], but gave {found}"):
        model(windows())


@pytest.mark.parametrize(
    ("input_arg", "call"),
    [
        (1, lambda model, x: model(None, x)),
        ("x", lambda model, x: model(None, x=x)),
        ("x", lambda model, x: model(None, x)),
        (1, lambda model, x: model(static=None, x=x)),
        (lambda args, kwargs: kwargs["x"], lambda model, x: model(None, x=x)),
        ("extra", lambda model, x: model(None, x, extra=x)),
    ],
)
def test_the_window_is_found_by_position_name_or_function(
    input_arg: Any, call: Callable[[nn.Module, Tensor], Tensor]
) -> None:
    class Second(models.MLP):
        def forward(self, static: None, x: Tensor, **more: Tensor) -> Tensor:
            return super().forward(more.get("extra", x))

    model = Second()
    modulator = sacm.attach(model, channels=CHANNELS, input_arg=input_arg)
    call(model, windows()).sum().backward()
    expected = sacm.SpectralScorer(CHANNELS)(windows()).scores.detach()
    torch.testing.assert_close(modulator.scores, expected)


def test_a_function_that_finds_no_window_is_told_what_it_was_given() -> None:
    told = "MLP.forward: input_arg raised IndexError: .* 0 positional arguments .*'x'"
    with pytest.raises(sacm.ArgumentError, match=told):
        attached(models.MLP(), example_inputs={"x": windows()}, input_arg=lambda args, _: args[0])


def test_an_argument_that_reaches_no_dropout_is_named_as_the_cause() -> None:
    class Two(models.MLP):
        def forward(self, static: Tensor, x: Tensor) -> Tensor:
            return super().forward(x)

    example = (torch.randn(6, 4), windows())
    with pytest.warns(sacm.SACMWarning, match="depends on no window that input_arg gives"):
        sacm.attach(Two(), example_inputs=example)
    assert sacm.attach(Two(), example_inputs=example, input_arg="x").window.channels == CHANNELS


def test_a_model_that_fills_gaps_itself_trains_on_windows_with_gaps() -> None:
    class Filling(models.MLP):
        def forward(self, x: Tensor) -> Tensor:
            return super().forward(x.nan_to_num())

    model, x = Filling(), windows()
    x[2, 5, 1] = torch.nan
    modulator = attached(model, x)
    model(x).sum().backward()
    assert modulator.rates.isfinite().all()
    assert all(p.grad.isfinite().all() for p in model.parameters())


def test_a_two_dimensional_window_is_one_channel() -> None:
    model = nn.Sequential(nn.Linear(16, 8), nn.Dropout(0.1))
    modulator = sacm.attach(model, channels=1, example_inputs=torch.randn(4, 16))
    model(torch.randn(5, 16)).sum().backward()
    assert modulator.rates.shape == (5,)


def test_skipped_sites_are_ordinary_dropout() -> None:
    torch.manual_seed(0)
    model = models.MLP()
    modulator = attached(model, skip=["hidden.*"])
    assert {s.name: s.adaptive for s in modulator.sites} == {"second.1": True, "hidden.2": False}
    assert type(model.hidden[2]) is nn.Dropout
    model.hidden[2].p = 1.0
    with modulator.forced_rates(torch.zeros(6)):
        assert torch.equal(model.hidden(windows().flatten(1)), torch.zeros(6, 32))
        model(windows())


def test_stated_layouts_are_not_questioned() -> None:
    model = models.BatchMinor()
    stated = sacm.SiteLayout(0, CHANNELS, batch_major=False)
    modulator = attached(model, site_layouts={"dr*p": stated}, example_inputs=None)
    assert modulator.sites[0].layout == stated
    model(windows()).sum().backward()
    functional = models.Functional()
    modulator = attached(
        functional, coverage="all", site_layouts={"Functional:dropout[1]": sacm.SiteLayout(0, 16)}
    )
    assert "Functional:dropout[1]" in str(modulator.summary())
    functional(windows()).sum().backward()


def test_a_model_without_dropout_is_returned_unchanged_and_says_so() -> None:
    model = nn.Sequential(nn.Flatten(), nn.Linear(48, 2))
    before, keys = anatomy(model), list(model.state_dict())
    for coverage, message in (("modules", "left unchanged"), ("all", "neither modules nor")):
        with pytest.warns(sacm.SACMWarning, match=message):
            modulator = attached(model, coverage=coverage)
        assert anatomy(model) == before
        assert list(model.state_dict()) == keys
        assert "No dropout found" in str(modulator.summary())


def test_only_what_is_on_a_trainable_path_is_adaptive() -> None:
    model = models.MLP()
    for parameter in model.hidden.parameters():
        parameter.requires_grad_(False)
    modulator = attached(model)
    assert {s.name: s.adaptive for s in modulator.sites} == {"second.1": True, "hidden.2": False}


def test_several_calls_of_one_module_draw_independent_masks() -> None:
    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear, self.drop = nn.Linear(CHANNELS, 64), nn.Dropout(0.5)

        def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
            h = self.linear(x)
            return self.drop(h), self.drop(h)

    torch.manual_seed(0)
    model = Twice()
    modulator = attached(model)
    with modulator.forced_rates(torch.full((6,), 0.5)):
        first, second = model(windows())
    agree = ((first == 0) == (second == 0)).double().mean()
    assert 0.45 < agree < 0.55


@pytest.mark.parametrize("how", ["example", "first batch", "checkpoint"])
def test_channels_are_read_from_the_windows(how: str) -> None:
    torch.manual_seed(0)
    model = models.MLP()
    modulator = sacm.attach(model, example_inputs=windows() if how == "example" else None)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)  # holds the scalars in any case
    if how == "checkpoint":
        trained = models.MLP()
        sacm.attach(trained, channels=CHANNELS)
        model.load_state_dict(trained.state_dict())
    elif how == "first batch":
        assert "2C + 2 scalars added" in str(modulator.summary())
    model(windows()).square().sum().backward()
    optimizer.step()
    assert sum(p.numel() for p in modulator.parameters()) == 2 * CHANNELS + 2
    assert (modulator.scorer.bias != 0).all()
    with pytest.raises(sacm.ArgumentError, match="has 4 channels, but attach was told channels=3"):
        model(torch.randn(6, 12, 4))
