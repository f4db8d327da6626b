from __future__ import annotations

import pickle
from collections import namedtuple
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor

from sacm import ArgumentError
from sacm.inject.window import WindowPath

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
