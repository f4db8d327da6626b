"""What the networks of this package hold beyond the checks that plug-ins use."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import pytest
import torch

from sacm import attach
from sacm.backbones.registry import entry, has_tables
from sacm.errors import ArgumentError
from sacm.testing.backbones import evaluate_network

from .cases import Case, cases, every_detector, in_daily_work, make, training_loss, windows

CALENDAR = (24, 7, 31, 366)
every_network = pytest.mark.parametrize(
    "case", [pytest.param(case, id=str(case), marks=in_daily_work(case)) for case in cases()]
)


def has_calendar(case: Case) -> bool:
    return has_tables(entry(case.name, case.task).model)


@pytest.mark.parametrize("case", [case for case in cases() if has_calendar(case)], ids=str)
def test_calendar_tables_are_trained_and_stamps_move_their_window(case: Case) -> None:
    model, x = make(case, calendar_sizes=CALENDAR), windows(2)
    stamps = torch.rand(2, 96 + 24, 4, generator=torch.Generator().manual_seed(0))
    training_loss(model, x, stamps).backward()
    tables = [parameter for name, parameter in model.named_parameters() if "calendar" in name]
    assert tables
    assert all(table.grad.abs().max() > 0 for table in tables)
    moved = stamps.clone()
    moved[0, :96] = (moved[0, :96] + 0.5) % 1
    forecast, other = (evaluate_network(model, x, each)[0] for each in (stamps, moved))
    assert (forecast[0] - other[0]).abs().max() > 1e-4
    torch.testing.assert_close(forecast[1], other[1], atol=1e-5, rtol=1e-5)
    with pytest.raises(ArgumentError, match=re.escape("needs stamps [2, 120, 4], got [2, 96, 4]")):
        model(x, stamps[:, :96])
    with pytest.raises(ArgumentError, match="got none"):
        model(x)


@every_network
def test_float64_is_kept_and_autocast_stays_finite(case: Case) -> None:
    double, x = make(case, length=48).double(), windows(2, length=48).double()
    results = [*evaluate_network(double, x), training_loss(double.train(), x)]
    assert {result.dtype for result in results} == {torch.float64}
    model, x = make(case), windows(4)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = training_loss(model, x)
    loss.backward()
    assert loss.isfinite()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert all(output.isfinite().all() for output in evaluate_network(model, x))


@every_network
def test_wrong_settings_are_refused_in_one_sentence(case: Case) -> None:
    wrong: list[tuple[str, dict[str, Any]]] = [
        ("at least 1", {"length": 0, "prepare": False}),
        ("at least 1", {"channels": 0, "prepare": False}),
        ("no setting 'widht'; its settings are", {"widht": 3}),
    ]
    if case.task == "forecasting":
        wrong += [("horizon", {"horizon": steps}) for steps in (0, -1)]
        with pytest.raises(ArgumentError, match="no calendar tables"):
            make(case)(windows(2), torch.zeros(2, 96 + 24, 4))
    if case.task == "classification":
        wrong.append(("classes", {"classes": 1}))
    if "dropout" in {field.name for field in dataclasses.fields(entry(case.name, case.task).small)}:
        wrong.append(("dropout must be in [0, 1)", {"dropout": 1.0}))
    if not has_calendar(case):
        wrong.append(("no calendar features", {"calendar_sizes": CALENDAR}))
    for words, settings in wrong:
        with pytest.raises(ArgumentError, match=re.escape(words)):
            make(case, **settings)


@every_network
@pytest.mark.parametrize("shape", [(2, 95, 3), (2, 96, 4), (96, 3), (2, 3, 96)], ids=str)
def test_windows_of_another_shape_are_refused(case: Case, shape: tuple[int, ...]) -> None:
    with pytest.raises(ArgumentError, match=re.escape("[B, 96, 3]")):
        make(case)(torch.zeros(shape))


@every_network
def test_stated_layouts_are_those_that_the_probe_finds(case: Case) -> None:
    model, x = make(case), windows(5)
    stated, model.sacm_layouts = model.sacm_layouts, {}
    found = {site.name: site.layout for site in attach(model, example_inputs=x).sites}
    # None: no window moves the site, such as a learned table.
    assert all(layout in (None, stated[name]) for name, layout in found.items())
    assert any(found.values())


@every_detector
def test_another_kind_of_score_is_refused(case: Case) -> None:
    with pytest.raises(ArgumentError, match="score"):
        make(case).anomaly_scores(windows(3), score="magic")
