"""guard, weight and expose: what they change, and what they leave alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from sacm.data import forecasting_data
from sacm.errors import ArgumentError
from sacm.strategies import canonical, parse
from sacm.strategies.base import Strategy
from tests.quality.test_prepare import break_rows, make_rows


def test_a_guard_is_saved_with_what_it_learnt(tmp_path: Path) -> None:
    data = forecasting_data(break_rows(make_rows(), 200), name="x")
    fitted = parse("guard").prepare(data, window=48).strategy
    fitted.save(tmp_path)
    loaded = parse("guard").load(tmp_path)
    windows = torch.from_numpy(make_rows(48 * 8, 2).reshape(8, 48, 2).copy())
    windows[0, 10:40, 0] = windows[0, 10, 0]
    repaired = loaded.inputs(windows)
    torch.testing.assert_close(repaired, fitted.inputs(windows), rtol=0, atol=0)
    assert (repaired[0, 15:35, 0] != windows[0, 15:35, 0]).all()
    torch.testing.assert_close(loaded.training_inputs(windows), windows, rtol=0, atol=0)


def test_channels_in_which_repairs_do_harm_are_left_alone(tmp_path: Path) -> None:
    data = forecasting_data(break_rows(make_rows(), 200), name="x")
    fitted = parse("guard").prepare(data, window=48).strategy
    windows = torch.from_numpy(make_rows(48 * 8, 2).reshape(8, 48, 2).copy())
    windows[0, 10:40] = windows[0, 10]

    def errors(strategy: Strategy) -> torch.Tensor:
        repairs = not torch.equal(strategy.inputs(windows), windows)
        return torch.tensor([1.006 if repairs else 1.0, 1.004 if repairs else 1.0])

    concluded, notes = fitted.conclude(errors)
    repaired = concluded.inputs(windows)
    assert torch.equal(repaired[..., 0], windows[..., 0])
    assert not torch.equal(repaired[..., 1], windows[..., 1])
    assert len(notes) == 1
    assert "(+0.6%)" in notes[0]
    assert "guard(check=false)" in notes[0]
    concluded.save(tmp_path)
    assert torch.equal(parse("guard").load(tmp_path).inputs(windows), repaired)
    for name, leaves in (("guard(check=false)", False), ("guard+sacm", True)):
        strategy, said = parse(name).prepare(data, window=48).strategy.conclude(errors)
        assert bool(said) == leaves
        assert torch.equal(strategy.inputs(windows)[..., 0], windows[..., 0]) == leaves


def test_weight_leaves_values_alone() -> None:
    data = forecasting_data(break_rows(make_rows(), 200), name="x")
    prepared = parse("weight").prepare(data, window=48)
    np.testing.assert_array_equal(prepared.data.values, data.values)
    assert (prepared.data.observed[205:235, 0] == 0).all()
    assert "do not count" in prepared.notes[0]


def test_combinations_prepare_in_turn() -> None:
    data = forecasting_data(break_rows(make_rows(), 200), name="x")
    prepared = parse("guard+expose+sacm").prepare(data, window=48)
    assert (prepared.data.values[205:235, 0] != data.values[205:235, 0]).all()
    assert [part.name for part in prepared.strategy.parts] == ["guard", "expose", "sacm"]


def test_expose_breaks_a_share_of_the_training_windows_only() -> None:
    torch.manual_seed(0)
    x = torch.randn(400, 24, 3)
    strategy = parse("expose(0.4)")
    changed = (strategy.training_inputs(x) != x).flatten(1).any(1).float().mean()
    assert 0.25 < changed < 0.45  # some faults are too weak to change anything
    torch.testing.assert_close(strategy.inputs(x), x, rtol=0, atol=0)
    torch.manual_seed(1)
    first = strategy.training_inputs(x)
    torch.manual_seed(1)
    torch.testing.assert_close(strategy.training_inputs(x), first, rtol=0, atol=0)


@pytest.mark.parametrize(
    "text", ["guard(sensitivity=0)", "guard(targets=luck)", "expose(0)", "expose(severity=2)"]
)
def test_wrong_options_are_one_sentence(text: str) -> None:
    with pytest.raises(ArgumentError, match=text.partition("(")[0]):
        parse(text)


def test_defaults_are_left_out_of_the_spelling() -> None:
    assert canonical("guard(sensitivity=1.0)+expose(0.5)+sacm") == "guard+expose+sacm"
