"""Masks over the targets of a forecast."""

from __future__ import annotations

import pytest
import torch

from sacm.errors import ArgumentError
from sacm.strategies import parse
from sacm_lab.rivals.selective import LinearEstimator, ResidualSpread, SelectiveRun, quantile
from tests.pretend_device import PRETENDED, Elsewhere
from tests.strategies.cases import batches


def test_the_uncertainty_mask_leaves_out_the_most_variable_steps() -> None:
    spread = ResidualSpread(rows=20, channels=1, share=0.1, device=torch.device("cpu"))
    assert spread.keep(torch.arange(20).view(1, -1)) is None
    steady = torch.ones(1, 20, 1)
    unsteady = steady.clone()
    unsteady[0, [4, 11], 0] = 9.0
    for residual in (steady, unsteady):
        spread.add(torch.arange(20).view(1, -1), residual)
    spread.begin_epoch()
    kept = spread.keep(torch.arange(20).view(1, -1))
    assert kept is not None
    assert (~kept).flatten().nonzero().flatten().tolist() == [4, 11]


@pytest.mark.parametrize("count", [1, 2, 11, 1000, 4097])
def test_the_quantile_is_torchs(count: int) -> None:
    values = torch.rand(count, generator=torch.Generator().manual_seed(count))
    for q in (0.1, 0.5, 0.9):
        assert torch.equal(quantile(values, q), torch.quantile(values, q))


def test_the_quantile_has_no_limit_of_values() -> None:
    many = torch.zeros(2**24 + 1)
    many[-(2**22) :] = 1  # a quarter
    assert (quantile(many, 0.7), quantile(many, 0.8)) == (0, 1)


def test_the_anomaly_mask_leaves_out_where_the_model_wins_by_most() -> None:
    estimator = LinearEstimator(16, 10).requires_grad_(False)
    spread = ResidualSpread(rows=100, channels=2, share=0.1, device=torch.device("cpu"))
    run = SelectiveRun(0.1, spread, estimator)
    batch = batches(1)[0]
    prediction = torch.randn(8, 10, 2)
    kept = run.weights(batch, prediction)
    advantage = (batch.y - prediction).abs() - (batch.y - estimator(batch.x)).abs()
    assert torch.equal((~kept).sum(dim=1), torch.ones(8, 2, dtype=torch.int64))
    assert torch.equal((~kept).int().argmax(dim=1), advantage.argmin(dim=1))


def test_selective_refuses_other_tasks() -> None:
    with pytest.raises(ArgumentError, match="selective is for forecasting"):
        parse("selective").check_task("anomaly")


def test_residuals_on_another_device() -> None:
    spread = ResidualSpread(4, 1, 0.5, PRETENDED)
    for residual in ([[1.0], [1.0]], [[1.0], [9.0]]):
        spread.add(Elsewhere(torch.tensor([[1, 2]])), Elsewhere(torch.tensor([residual])))
    spread.begin_epoch()
    assert spread.kept is not None
    assert spread.kept[:, 0].tolist() == [True, True, False, True]
