"""What every strategy does: gaps, combinations, preparing once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch

from sacm.data import forecasting_data
from sacm.registry import temporary_entries
from sacm.strategies import Prepared, Strategy, parse, register
from sacm.strategies.combined import prepare_once
from tests.training.cases import make_data, waves

from .cases import Net, batches, context, step

CALLS: list[float] = []


def test_fixed_sets_every_rate_and_raw_none() -> None:
    model = Net()
    parse("raw").begin(model, context())
    assert (model.first.p, model.second.p) == (0.1, 0.3)
    parse("fixed(0.25)").begin(model, context())
    assert model.first.p == model.second.p == 0.25


def test_gaps_are_interpolated_within_a_split_and_do_not_count() -> None:
    data = forecasting_data(waves(400, 2), name="waves")
    values = data.values.copy()
    stop = data.splits.train.stop
    values[100:110, 0] = np.nan
    values[stop - 3 : stop + 2, 1] = np.nan
    found = parse("raw").prepare(replace(data, values=values), window=24)
    assert np.isfinite(found.data.values).all()
    np.testing.assert_allclose(
        found.data.values[99:111, 0], np.linspace(values[99, 0], values[110, 0], 12), atol=1e-6
    )
    assert (found.data.values[stop - 3 : stop, 1] == values[stop - 4, 1]).all()
    assert (found.data.values[stop : stop + 2, 1] == values[stop + 2, 1]).all()
    np.testing.assert_array_equal(found.data.observed, ~np.isnan(values))
    assert found.notes == (
        "15 of 800 values (1.9%) were not measured: inputs are interpolated there, and targets do "
        "not count.",
    )
    assert parse("raw").prepare(data, window=24).data is data


def test_weights_and_measured_targets_decide_what_counts_in_the_loss() -> None:
    batch = batches(1)[0]
    observed = torch.ones_like(batch.y, dtype=torch.bool)
    observed[:, 2:] = False
    found = step(Net().eval(), batch._replace(observed=observed), "fixed(0.0)")
    expected = (found.answer() - batch.y)[:, :2].abs().mean()
    torch.testing.assert_close(found.loss(), expected)


@pytest.fixture
def counted() -> Iterator[None]:
    CALLS.clear()
    with temporary_entries():

        @register("counted")
        @dataclass(frozen=True)
        class Counted(Strategy):
            """Count how often data are prepared."""

            level: float = 1.0

            def prepare(self, data: object, *, window: int) -> Prepared:
                CALLS.append(self.level)
                return Prepared(data, self, ("counted",))

        yield


def test_the_same_data_and_options_are_prepared_once(counted: None) -> None:
    first = prepare_once(parse("counted(2)"), make_data("forecasting"), window=24)
    again = prepare_once(parse("counted(2)+sacm"), make_data("forecasting"), window=24)
    assert CALLS == [2.0]
    assert again.notes == ("counted",)
    assert again.seconds == first.seconds > 0
    for text, window, task in (
        ("counted(4)", 24, "forecasting"),
        ("counted(4)", 12, "forecasting"),
        ("counted(4)", 12, "anomaly"),
    ):
        prepare_once(parse(text), make_data(task), window=window)
    assert CALLS == [2.0, 4.0, 4.0, 4.0]
