"""In evaluation a window's result depends on that window and on nothing else."""

from __future__ import annotations

import copy

import torch

from sacm.testing.case import CALENDAR, BackboneCase, are_close, evaluate_network, make, windows


def windows_do_not_mix(case: BackboneCase) -> None:
    """A window alone and the same window in a batch give the same output."""
    model = make(case)
    x = windows(7)
    together = evaluate_network(model, x)
    for i in (0, 3, 6):
        alone = evaluate_network(model, x[i : i + 1])
        expected = [output[i : i + 1] for output in together]
        case.require(
            are_close(alone, expected, tolerance=1e-5),
            f"window {i} of a batch of 7 gives another output alone",
        )


def evaluation_is_repeatable(case: BackboneCase) -> None:
    """Two evaluations of the same windows are equal, and the windows are left alone."""
    model = make(case)
    x = windows(3)
    before = x.clone()
    first, second = evaluate_network(model, x), evaluate_network(model, x)
    case.require(are_close(first, second, tolerance=0.0), "two evaluations differ")
    case.require(torch.equal(x, before), "evaluation changes its input")


def weights_are_all_there_is(case: BackboneCase) -> None:
    """A state dict carries everything to another network of the same settings."""
    model = make(case, seed=0)
    other = make(case, seed=1, prepare=False)
    other.load_state_dict(model.state_dict(), strict=True)
    x = windows(3)
    same = are_close(evaluate_network(other, x), evaluate_network(model, x), tolerance=0.0)
    case.require(same, "another network with the same state dict gives another output")


def copies_are_independent(case: BackboneCase) -> None:
    """Changing a deep copy leaves the network alone."""
    model = make(case)
    x = windows(3)
    before = evaluate_network(model, x)
    twin = copy.deepcopy(model)
    with torch.no_grad():
        for parameter in twin.parameters():
            parameter.add_(1.0)
    same = are_close(evaluate_network(model, x), before, tolerance=0.0)
    case.require(same, "changing a deep copy changes the network")
    case.require(twin.sacm_layouts == model.sacm_layouts, "a deep copy loses its layouts")


def forecasts_do_not_read_ahead(case: BackboneCase) -> None:
    """What follows the window in memory has no effect on the forecast."""
    if case.task != "forecasting":
        return
    series = windows(3, length=96 + 24)
    poisoned = series.clone()
    poisoned[:, 96:] = float("nan")  # the views below share its memory
    model = make(case)
    for training in (True, False):
        forecasts = []
        for source in (series, poisoned):
            model.train(training)
            torch.manual_seed(0)
            with torch.no_grad():
                forecasts.append(copy.deepcopy(model)(source[:, :96]))
        case.require(torch.equal(*forecasts), "the forecast reads beyond its window")


def calendar_is_used(case: BackboneCase) -> None:
    """Where the network has calendar tables, stamps change the forecast of their own window."""
    if not case.has_calendar:
        return
    model = make(case, calendar_sizes=CALENDAR)
    x = windows(2)
    stamps = torch.rand(2, 96 + 24, 4, generator=torch.Generator().manual_seed(0))
    forecast = evaluate_network(model, x, stamps)[0]
    moved = stamps.clone()
    moved[0, :96] = (moved[0, :96] + 0.5) % 1
    other = evaluate_network(model, x, moved)[0]
    changed = (forecast[0] - other[0]).abs().max() > 1e-4
    case.require(changed, "other stamps do not change the forecast")
    same = torch.allclose(forecast[1], other[1], atol=1e-5, rtol=1e-5)
    case.require(same, "stamps change the forecast of another window")
