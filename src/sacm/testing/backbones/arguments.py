"""Wrong arguments are refused in one sentence, before torch meets them."""

from __future__ import annotations

import dataclasses

import torch

from sacm.backbones.registry import entry
from sacm.testing.case import CALENDAR, BackboneCase, make, windows


def wrong_windows_are_refused(case: BackboneCase) -> None:
    """Windows of another length, channel count or rank; `check_window` of the base does it."""
    model = make(case)
    for shape in ((2, 95, 3), (2, 96, 4), (96, 3), (2, 3, 96)):
        case.require_refusal(
            lambda shape=shape: model(torch.zeros(shape)),  # type: ignore[misc]  # bound at once
            "[B, 96, 3]",
            of=f"a window {list(shape)} by a network for [B, 96, 3]",
        )


def wrong_sizes_are_refused(case: BackboneCase) -> None:
    """Sizes below 1, and one class alone; the base classes do it."""
    case.require_refusal(lambda: make(case, length=0, prepare=False), "at least 1", of="length 0")
    case.require_refusal(
        lambda: make(case, channels=0, prepare=False), "at least 1", of="0 channels"
    )
    if case.task == "forecasting":
        case.require_refusal(lambda: make(case, horizon=0), "horizon", of="horizon 0")
        case.require_refusal(lambda: make(case, horizon=-1), "horizon", of="horizon -1")
    if case.task == "classification":
        case.require_refusal(lambda: make(case, classes=1), "classes", of="one class")


def wrong_settings_are_refused(case: BackboneCase) -> None:
    """A setting that does not exist, and a dropout rate of 1."""
    case.require_refusal(
        lambda: make(case, widht=3), "no setting 'widht'; its settings are", of="widht=3"
    )
    fields = {field.name for field in dataclasses.fields(entry(case.name, case.task).small)}
    if "dropout" in fields:
        case.require_refusal(
            lambda: make(case, dropout=1.0), "dropout must be in [0, 1)", of="dropout=1.0"
        )


def wrong_stamps_are_refused(case: BackboneCase) -> None:
    """Calendar features where the network takes none, and of another shape where it does."""
    if case.task == "forecasting":
        case.require_refusal(
            lambda: make(case)(windows(2), torch.zeros(2, 96 + 24, 4)),
            "no calendar tables",
            of="stamps without calendar tables",
        )
    if not case.has_calendar:
        case.require_refusal(
            lambda: make(case, calendar_sizes=CALENDAR), "no calendar features", of="a calendar"
        )
    elif case.task == "forecasting":
        model = make(case, calendar_sizes=CALENDAR)
        case.require_refusal(
            lambda: model(windows(2), torch.zeros(2, 96, 4)),
            "stamps must be [2, 120, 4]",
            of="stamps [2, 96, 4]",
        )
        case.require_refusal(lambda: model(windows(2)), "pass stamps", of="missing stamps")
