"""Any batch, length, horizon and channel count; gradients reach every parameter."""

from __future__ import annotations

import torch

from sacm.testing.case import (
    CALENDAR,
    BackboneCase,
    evaluate_network,
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


def outputs_have_their_shapes(case: BackboneCase) -> None:
    """Outputs and losses are finite and of the right shape, whatever the sizes."""
    for name, (batch, length, horizon, channels) in SHAPES.items():
        model = make(case, length=length, horizon=horizon, channels=channels, classes=4)
        x = windows(batch, length=length, channels=channels)
        outputs = evaluate_network(model, x)
        expected = {
            "forecasting": (batch, horizon, channels),
            "classification": (batch, 4),
            "anomaly": (batch, length),
        }[case.task]
        found = tuple(outputs[-1].shape)  # a detector's scores come last
        case.require(found == expected, f"the output is {found} instead of {expected} ({name})")
        case.require(
            all(output.isfinite().all() and len(output) == batch for output in outputs),
            f"outputs must be finite and have one row a window ({name})",
        )
        model.train()
        loss = training_loss(model, x)
        loss.backward()
        case.require(loss.shape == () and loss.isfinite(), f"the loss is {loss} ({name})")


def gradients_reach_every_parameter(case: BackboneCase) -> None:
    """No parameter is left out of the loss."""
    model = make(case, length=96, channels=3)
    training_loss(model, windows(8)).backward()
    for name, parameter in model.named_parameters():
        gradient = parameter.grad
        case.require(gradient is not None, f"{name} gets no gradient")
        assert gradient is not None
        case.require(gradient.isfinite().all(), f"the gradient of {name} is not finite")
        # A key bias adds the same amount to all logits of a query: softmax cancels it.
        if not name.endswith("key.bias"):
            case.require(gradient.abs().max() > 0, f"the gradient of {name} is 0 everywhere")


def gradients_reach_calendar_tables(case: BackboneCase) -> None:
    """Where the network has calendar tables, training reaches them."""
    if not case.has_calendar:
        return
    model = make(case, calendar_sizes=CALENDAR)
    stamps = torch.rand(8, 96 + 24, 4, generator=torch.Generator().manual_seed(1))
    training_loss(model, windows(8), stamps).backward()
    tables = {name: p for name, p in model.named_parameters() if "calendar" in name}
    case.require(tables, "no parameter has `calendar` in its name")
    for name, parameter in tables.items():
        reached = parameter.grad is not None and parameter.grad.abs().max() > 0
        case.require(reached, f"training does not reach {name}")


def double_precision_is_kept(case: BackboneCase) -> None:
    """A network in float64 computes in float64."""
    model = make(case, length=48).double()
    x = windows(2, length=48).double()
    kept = all(output.dtype == torch.float64 for output in evaluate_network(model, x))
    case.require(kept, "an output of a float64 network is not float64")
    model.train()
    kept = training_loss(model, x).dtype == torch.float64
    case.require(kept, "the loss of a float64 network is not float64")


def autocast_works(case: BackboneCase) -> None:
    """Training and evaluation work under bfloat16 autocast."""
    model = make(case)
    x = windows(4)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = training_loss(model, x)
    loss.backward()
    case.require(loss.isfinite(), "the loss under bfloat16 autocast is not finite")
    reached = all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())
    case.require(reached, "gradients under bfloat16 autocast are missing or not finite")
    exact = list(flatten(evaluate_network(model, x)))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        coarse = list(flatten(evaluate_network(model, x)))
    finite = all(one.isfinite().all() for one in coarse)
    case.require(finite, "an output under bfloat16 autocast is not finite")
    same = [one.shape for one in coarse] == [one.shape for one in exact]
    case.require(same, "outputs change their shapes under bfloat16 autocast")
