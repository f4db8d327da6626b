from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from sacm import ArgumentError
from sacm.inject.window import WindowArgument


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
