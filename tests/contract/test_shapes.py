"""Any batch, length, horizon and channel count; gradients reach every parameter."""

from __future__ import annotations

import pytest
import torch

from .cases import (
    CALENDAR,
    WITH_CALENDAR,
    Case,
    cases,
    evaluate,
    every_case,
    flatten,
    make,
    training_loss,
    windows,
)

SHAPES = {  # batch, length, horizon, channels
    "one window": (1, 96, 24, 3),
    "odd length": (2, 99, 13, 3),
    "one channel": (2, 96, 24, 1),
    "short, horizon beyond it": (2, 24, 60, 7),
    "as many steps as channels": (2, 24, 24, 24),
}


@every_case
@pytest.mark.parametrize("shape", SHAPES)
def test_output_shapes_and_a_training_step(case: Case, shape: str) -> None:
    batch, length, horizon, channels = SHAPES[shape]
    model = make(case, length=length, horizon=horizon, channels=channels, classes=4)
    x = windows(batch, length=length, channels=channels)

    loss = training_loss(model, x)
    loss.backward()
    assert loss.shape == ()
    assert loss.isfinite()

    outputs = evaluate(model, x)
    expected = {
        "forecasting": (batch, horizon, channels),
        "classification": (batch, 4),
        "anomaly": (batch, length),
    }[case.task]
    assert outputs[-1].shape == expected  # a detector's scores come last
    assert all(output.isfinite().all() and len(output) == batch for output in outputs)


@every_case
def test_gradients_reach_every_parameter(case: Case) -> None:
    model = make(case, length=96, channels=3)
    training_loss(model, windows(8)).backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
        # A key bias adds the same amount to all logits of a query: softmax cancels it.
        if not name.endswith("key.bias"):
            assert parameter.grad.abs().max() > 0, name


@pytest.mark.parametrize(
    "case", [c for c in cases("forecasting") if c.name in WITH_CALENDAR], ids=str
)
def test_gradients_reach_calendar_tables(case: Case) -> None:
    model = make(case, calendar_sizes=CALENDAR)
    stamps = torch.rand(8, 96 + 24, 4, generator=torch.Generator().manual_seed(1))
    training_loss(model, windows(8), stamps).backward()
    tables = {n: p for n, p in model.named_parameters() if "calendar" in n}
    assert tables
    for name, parameter in tables.items():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().max() > 0, name


@every_case
def test_double_precision(case: Case) -> None:
    model = make(case, length=48).double()
    x = windows(2, length=48).double()
    assert all(output.dtype == torch.float64 for output in evaluate(model, x))
    model.train()
    assert training_loss(model, x).dtype == torch.float64


@every_case
def test_bfloat16_autocast_step(case: Case) -> None:
    model = make(case)
    x = windows(4)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = training_loss(model, x)
    loss.backward()
    assert loss.isfinite()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())

    exact = list(flatten(evaluate(model, x)))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        coarse = list(flatten(evaluate(model, x)))
    assert all(one.isfinite().all() for one in coarse)
    assert [one.shape for one in coarse] == [one.shape for one in exact]
