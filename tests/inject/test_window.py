from __future__ import annotations

import pickle
from collections import namedtuple
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from sacm import ArgumentError
from sacm.inject.window import WindowArgument, WindowPath


class Model(nn.Module):
    def forward(self, static: Any, x: Tensor, /, marks: Any = None, *, mask: Any = None) -> Tensor:
        return x


class Open(nn.Module):
    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return args, kwargs


X = torch.randn(4, 16, 3)


@pytest.mark.parametrize(
    ("model", "input_arg", "args", "kwargs"),
    [
        (Model(), 1, (None, X), {}),
        (Model(), 2, (None, None, X), {}),
        (Model(), 2, (None, None), {"marks": X}),
        (Model(), "marks", (None, None, X), {}),
        (Model(), "mask", (None, None), {"mask": X}),
        (Open(), 5, (0, 1, 2, 3, 4, X), {}),
        (Open(), "past_values", (), {"past_values": X}),
        (Open(), lambda args, kwargs: args[0]["y"], ({"y": X},), {}),
    ],
)
def test_the_window_is_found(model: nn.Module, input_arg: Any, args: Any, kwargs: Any) -> None:
    window = WindowArgument(model, input_arg, "BLC", 3)
    assert window.raw(args, kwargs) is X
    assert window(args, kwargs) is X


@pytest.mark.parametrize("input_arg", ["x", "nothing", -1, 3])
def test_what_is_no_argument_is_refused_with_those_that_are(input_arg: Any) -> None:
    with pytest.raises(ArgumentError, match=r"no argument of Model.forward, which takes static, x"):
        WindowArgument(Model(), input_arg, "BLC", 3)


def test_the_shape_of_the_window_is_checked() -> None:
    window = WindowArgument(Model(), 1, "BLC", 3)
    with pytest.raises(ArgumentError, match="argument 'x' should give the window tensor but gave"):
        window.raw((None, [X]), {})
    with pytest.raises(ArgumentError, match="must have three dimensions"):
        window((None, X[0]), {})
    with pytest.raises(ArgumentError, match="has 16 channels, but attach was told channels=3"):
        window((None, X.transpose(1, 2)), {})
    with pytest.raises(ArgumentError, match="window_layout must be 'BLC' or 'BCL'"):
        WindowArgument(Model(), 1, "LBC", 3)


def test_channel_first_and_single_channel_windows_become_batch_length_channel() -> None:
    assert WindowArgument(Model(), 1, "BCL", 3)((None, X.transpose(1, 2)), {}).shape == (4, 16, 3)
    assert WindowArgument(Model(), 1, "BLC", 1)((None, X[..., 0]), {}).shape == (4, 16, 1)


Pair = namedtuple("Pair", ["window", "rest"])


@dataclass
class Batch:
    window: Tensor
    rest: int = 0


WINDOW = torch.arange(12.0).reshape(2, 3, 2)


@pytest.mark.parametrize(
    ("arguments", "steps"),
    [
        (({"x": WINDOW},), (0, "x")),
        (([WINDOW, 1],), (0, 0)),
        ((Pair(WINDOW, 1),), (0, 0)),
        ((3, Batch(WINDOW)), (1, "window")),
        ((WINDOW,), (0,)),
    ],
)
def test_window_is_found_and_replaced_wherever_it_lies(
    arguments: tuple[Any, ...], steps: tuple[int | str, ...]
) -> None:
    path = pickle.loads(pickle.dumps(WindowPath(steps)))
    assert path(arguments, {}) is WINDOW
    changed, _ = path.replace(arguments, {}, WINDOW + 1)
    assert torch.equal(path(changed, {}), WINDOW + 1)
    assert path(arguments, {}) is WINDOW
    assert type(changed[steps[0]]) is type(arguments[int(steps[0])])


def test_some_columns_of_a_tensor_are_the_window() -> None:
    path = WindowPath((0, "x"), columns=(1,))
    assert torch.equal(path(({"x": WINDOW},), {}), WINDOW[..., 1:])
    ((changed,), _) = path.replace(({"x": WINDOW},), {}, torch.zeros(2, 3, 1))
    assert torch.equal(changed["x"][..., 0], WINDOW[..., 0])
    assert not changed["x"][..., 1].any()


def test_arguments_given_by_name_stay_named() -> None:
    path = WindowPath((0, "x"))
    args, kwargs = path.replace((), {"batch": {"x": WINDOW}}, WINDOW + 1)
    assert args == ()
    assert torch.equal(kwargs["batch"]["x"], WINDOW + 1)


def test_a_wrong_way_is_named() -> None:
    with pytest.raises(ArgumentError, match=r"no window at 0 → y .* dict has no 'y'"):
        WindowPath((0, "y"))(({"x": WINDOW},), {})
