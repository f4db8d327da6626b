"""Dropout sites and parameters of every network at paper size; a wrong layer shows here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, get_args

import pytest
import torch

from sacm import backbones
from sacm.backbones.registry import entry
from sacm.testing.backbones import BackboneCase, dropouts, make, training_loss, windows
from sacm.types import TaskName


class Size(NamedTuple):
    """Sizes that a network is counted at; with the steps of a day, it has calendar tables."""

    length: int
    channels: int
    horizon: int | None = None
    steps_a_day: int | None = None


@dataclass(frozen=True)
class Expectation:
    """Dropout rates with their number of sites, calls of sites in a forward, parameters."""

    name: str
    task: TaskName
    rates: dict[float, int]
    calls: int
    parameters: dict[Size, int]

    def __str__(self) -> str:
        return f"{self.name}-{self.task}"


EXPECTED = [
    Expectation(
        "AnomTrans",
        "anomaly",
        {0.1: 5},
        5,
        {
            Size(100, 38): 285_742,
            Size(100, 55): 294_463,
            Size(100, 25): 279_073,
            Size(96, 7): 269_839,
        },
    ),
    Expectation(
        "Crossformer",
        "forecasting",
        {0.05: 32},
        32,
        {Size(96, 7, 96): 46_976_560, Size(24, 7, 60): 46_893_616, Size(96, 1, 96): 46_939_696},
    ),
    Expectation(
        "DCdetector",
        "anomaly",
        {0.1: 6},
        6,
        {Size(100, 38): 94_464, Size(100, 55): 94_464, Size(100, 25): 94_464},
    ),
    Expectation("InceptionTime", "classification", {0.1: 6}, 6, {Size(96, 7): 473_029}),
    Expectation(
        "Informer",
        "forecasting",
        {0.05: 9},
        9,
        {
            Size(96, 7, 96): 11_323_911,
            Size(24, 7, 60): 11_323_911,
            Size(96, 1, 96): 11_302_401,
            Size(96, 7, 96, 24): 11_762_183,
            Size(24, 7, 60, 60): 11_799_047,
            Size(96, 1, 96, 96): 11_814_401,
        },
    ),
    Expectation(
        "iTransformer",
        "forecasting",
        {0.1: 3},
        3,
        {Size(96, 7, 96): 839_776, Size(24, 7, 60): 812_092, Size(96, 1, 96): 839_776},
    ),
    Expectation("iTransformer", "classification", {0.1: 4}, 4, {Size(96, 7): 824_069}),
    Expectation(
        "iTransformer",
        "anomaly",
        {0.1: 3},
        3,
        {
            Size(100, 38): 841_828,
            Size(100, 55): 841_828,
            Size(100, 25): 841_828,
            Size(96, 7): 839_776,
        },
    ),
    Expectation("MiniROCKET", "classification", {0.1: 1}, 1, {Size(96, 7): 49_985}),
    Expectation(
        "MultiPatchFormer",
        "forecasting",
        {0.1: 12},
        12,
        {Size(96, 7, 96): 4_045_614, Size(24, 7, 60): 3_443_562, Size(96, 1, 96): 4_045_602},
    ),
    Expectation("NSFormer", "classification", {0.1: 6}, 6, {Size(96, 7): 6_595_397}),
    Expectation(
        "NSFormer",
        "anomaly",
        {0.1: 5},
        5,
        {
            Size(100, 38): 6_449_534,
            Size(100, 55): 6_501_775,
            Size(100, 25): 6_409_585,
            Size(96, 7): 6_353_223,
        },
    ),
    Expectation(
        "PatchTST",
        "forecasting",
        {0.1: 3, 0.0: 1},
        4,
        {Size(96, 7, 96): 1_089_134, Size(24, 7, 60): 840_266, Size(96, 1, 96): 1_089_122},
    ),
    Expectation("PatchTST", "classification", {0.1: 3, 0.0: 1}, 4, {Size(96, 7): 77_971}),
    Expectation(
        "PatchTST",
        "anomaly",
        {0.1: 3, 0.0: 1},
        4,
        {
            Size(100, 38): 1_101_488,
            Size(100, 55): 1_101_522,
            Size(100, 25): 1_101_462,
            Size(96, 7): 1_089_134,
        },
    ),
    Expectation(
        "TimeFilter",
        "forecasting",
        {0.1: 6},
        6,
        {Size(96, 7, 96): 190_056, Size(24, 7, 60): 126_678, Size(96, 1, 96): 188_760},
    ),
    Expectation(
        "TimeMixer",
        "forecasting",
        {0.1: 1, 0.0: 7},
        14,
        {Size(96, 7, 96): 572_033, Size(24, 7, 60): 531_416, Size(96, 1, 96): 571_985},
    ),
    Expectation(
        "TimesNet",
        "forecasting",
        {0.1: 1},
        1,
        {
            Size(96, 7, 96): 18_380_231,
            Size(24, 7, 60): 18_363_707,
            Size(96, 1, 96): 18_374_081,
            Size(96, 7, 96, 24): 18_489_799,
            Size(24, 7, 60, 60): 18_482_491,
            Size(96, 1, 96, 96): 18_502_081,
        },
    ),
    Expectation("TimesNet", "classification", {0.1: 2}, 2, {Size(96, 7): 4_654_213}),
    Expectation(
        "TimesNet",
        "anomaly",
        {0.1: 1},
        1,
        {
            Size(100, 38): 4_609_574,
            Size(100, 55): 4_618_295,
            Size(100, 25): 4_602_905,
            Size(96, 7): 4_593_671,
        },
    ),
    Expectation(
        "TranAD",
        "anomaly",
        {0.1: 22},
        39,
        {
            Size(100, 38): 687_180,
            Size(100, 55): 698_094,
            Size(100, 25): 678_834,
            Size(96, 7): 667_278,
        },
    ),
    Expectation(
        "WPMixer",
        "forecasting",
        {0.1: 14},
        18,
        {Size(96, 7, 96): 207_076, Size(24, 7, 60): 171_856, Size(96, 1, 96): 206_896},
    ),
]


@pytest.mark.parametrize("expected", EXPECTED, ids=str)
def test_sites_and_their_rates(expected: Expectation) -> None:
    """Sites at paper size: how many at which rate, and how often they are called."""
    case = BackboneCase(expected.name, expected.task)
    length = 100 if case.task == "anomaly" else 96
    model = make(case, length=length, channels=7, horizon=96, size="paper")
    rates = [module.p for module in dropouts(model).values()]
    assert {rate: rates.count(rate) for rate in set(rates)} == expected.rates
    calls: list[str] = []
    for name, module in dropouts(model).items():
        module.register_forward_hook(lambda *_, name=name: calls.append(name))
    with torch.no_grad():
        training_loss(model, windows(1, length=length, channels=7))
    assert len(calls) == expected.calls
    assert set(calls) == set(dropouts(model))


@pytest.mark.parametrize("expected", EXPECTED, ids=str)
def test_number_of_parameters(expected: Expectation) -> None:
    """Trainable parameters at paper size."""
    for size, count in expected.parameters.items():
        sizes: dict[str, Any] = {"input_len": size.length, "channels": size.channels}
        if size.horizon is not None:
            sizes["horizon"] = size.horizon
        if size.steps_a_day is not None:
            sizes["calendar_sizes"] = (size.steps_a_day, 7, 31, 366)
        if expected.task == "classification":
            sizes["classes"] = 5
        model = backbones.build(expected.name, expected.task, **sizes)
        assert sum(p.numel() for p in model.parameters() if p.requires_grad) == count, size


def test_every_network_of_this_package_is_stated() -> None:
    own = {
        (name, task)
        for task in get_args(TaskName)
        for name in backbones.names(task)
        if entry(name, task).model.__module__.startswith("sacm.")
    }
    assert {(expected.name, expected.task) for expected in EXPECTED} == own
