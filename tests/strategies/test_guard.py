"""The guard as a strategy."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from sacm.data import forecasting_data
from sacm.errors import ArgumentError
from sacm.strategies import canonical, parse
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
    assert torch.equal(loaded.inputs(windows, training=True), windows)
    flags = loaded.flags(windows)
    assert flags is not None
    assert flags[0, 15:35, 0].all()


@pytest.mark.parametrize("text", ["guard(sensitivity=0)", "guard(targets=luck)"])
def test_wrong_options_are_one_sentence(text: str) -> None:
    with pytest.raises(ArgumentError, match=text.partition("(")[0]):
        parse(text)


def test_defaults_are_left_out_of_the_spelling() -> None:
    assert canonical("guard(sensitivity=1.0)+sacm") == "guard+sacm"
