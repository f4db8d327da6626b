"""The guard as a strategy."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
import torch

from sacm.data import forecasting_data
from sacm.errors import ArgumentError
from sacm.strategies import Strategy, canonical, parse
from sacm.strategies.guard import obeying
from sacm.strategies.race import RaceResult
from sacm.strategies.registry import parts_of
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


@pytest.mark.parametrize("text", ["guard(false_events=0)", "guard(repair=some)"])
def test_wrong_options_are_one_sentence(text: str) -> None:
    with pytest.raises(ArgumentError, match=text.partition("(")[0]):
        parse(text)


def test_classification_is_refused() -> None:
    for text in ("guard", "guard+sacm"):
        with pytest.raises(ArgumentError, match="use labels"):
            parse(text).check_task("classification")


def test_defaults_are_left_out_of_the_spelling() -> None:
    assert canonical("guard(false_events=1.0)+sacm") == "guard+sacm"


def test_gaps_are_repaired_and_do_not_count_as_targets() -> None:
    values = make_rows()
    values[200:210, 0] = np.nan
    data = replace(forecasting_data(make_rows(), name="x"), values=values)
    prepared = parse("guard").prepare(data, window=48)
    assert np.isfinite(prepared.data.values).all()
    assert (prepared.data.observed[200:210, 0] == 0).all()
    clean = make_rows()
    assert np.abs(prepared.data.values[200:210, 0] - clean[200:210, 0]).mean() < 0.3


def test_a_run_carries_its_rules(tmp_path: Path) -> None:
    file = tmp_path / "rules.yaml"
    file.write_text("'0':\n  range: [-0.5, 0.5]\n", encoding="utf-8")
    values = make_rows()
    data = forecasting_data(values, name="x")
    strategy = parse(f"guard(rules={file})")
    strategy.prepare(data, window=48).strategy.save(tmp_path)
    file.unlink()
    loaded = strategy.load(tmp_path)
    missing = np.isnan(loaded.obey(data).values)
    np.testing.assert_array_equal(missing[:, 0], np.abs(values[:, 0]) > 0.5)
    assert not missing[:, 1].any()


def test_nothing_is_repaired_on_request() -> None:
    data = forecasting_data(break_rows(make_rows(), 200), name="x")
    prepared = parse("guard(repair=none)").prepare(data, window=48)
    np.testing.assert_array_equal(prepared.data.values, data.values)
    assert (prepared.data.observed[205:235, 0] == 0).all()
    windows = torch.from_numpy(make_rows(48).reshape(1, 48, 2))
    assert torch.equal(prepared.strategy.inputs(windows), windows)


@dataclass
class Loaded:
    """What a predictor has of its strategy."""

    strategy: Strategy


def test_other_rules_are_for_runs_with_a_guard_also_one_that_won_a_race(tmp_path: Path) -> None:
    data = forecasting_data(make_rows(), name="x")
    parse("guard").prepare(data, window=48).strategy.save(tmp_path)
    RaceResult("guard", {"guard": 0.1, "raw": 0.2}, 0.5, 0.0, "guard won.").save(tmp_path)
    file = tmp_path / "rules.yaml"
    file.write_text("'0':\n  range: [-0.5, 0.5]\n", encoding="utf-8")
    changed = obeying(Loaded(parse("race(guard,raw)").load(tmp_path)), file, None)
    (guard,) = parts_of(changed.strategy)
    assert np.isnan(guard.obey(data).values).any()
    with pytest.raises(ArgumentError, match="guard, which this run has not"):
        obeying(Loaded(parse("raw")), file, None)
