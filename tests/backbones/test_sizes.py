"""Dropout sites and parameters of every network at paper size; a wrong layer shows here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, get_args

import pytest
import torch
from torch import nn

from sacm import backbones
from sacm.backbones.registry import entry
from sacm.testing.backbones import make, training_loss, windows
from sacm.types import TaskName

# Name and task; dropout rates with their number of sites; calls of sites in a forward; trainable
# parameters by length x channels (x horizon (x steps of a day, with calendar tables)).
TABLE = """\
AnomTrans anomaly | 0.1:5 | 5 | 100x38=285742 100x55=294463 100x25=279073 96x7=269839
Crossformer forecasting | 0.05:32 | 32 | 96x7x96=46976560 24x7x60=46893616 96x1x96=46939696
DCdetector anomaly | 0.1:6 | 6 | 100x38=94464 100x55=94464 100x25=94464
InceptionTime classification | 0.1:6 | 6 | 96x7=473029
Informer forecasting | 0.05:9 | 9 | 96x7x96=11323911 24x7x60=11323911 96x1x96=11302401 \
    96x7x96x24=11762183 24x7x60x60=11799047 96x1x96x96=11814401
iTransformer forecasting | 0.1:3 | 3 | 96x7x96=839776 24x7x60=812092 96x1x96=839776
iTransformer classification | 0.1:4 | 4 | 96x7=824069
iTransformer anomaly | 0.1:3 | 3 | 100x38=841828 100x55=841828 100x25=841828 96x7=839776
MiniROCKET classification | 0.1:1 | 1 | 96x7=49985
MultiPatchFormer forecasting | 0.1:12 | 12 | 96x7x96=4045614 24x7x60=3443562 96x1x96=4045602
NSFormer classification | 0.1:6 | 6 | 96x7=6595397 1200x2=519205
NSFormer anomaly | 0.1:5 | 5 | 100x38=6449534 100x55=6501775 100x25=6409585 96x7=6353223
PatchTST forecasting | 0.1:3 0.0:1 | 4 | 96x7x96=1089134 24x7x60=840266 96x1x96=1089122
PatchTST classification | 0.1:3 0.0:1 | 4 | 96x7=77971
PatchTST anomaly | 0.1:3 0.0:1 | 4 | 100x38=1101488 100x55=1101522 100x25=1101462 96x7=1089134
TimeFilter forecasting | 0.1:6 | 6 | 96x7x96=190056 24x7x60=126678 96x1x96=188760
TimeMixer forecasting | 0.1:1 0.0:7 | 14 | 96x7x96=572033 24x7x60=531416 96x1x96=571985
TimesNet forecasting | 0.1:1 | 1 | 96x7x96=18380231 24x7x60=18363707 96x1x96=18374081 \
    96x7x96x24=18489799 24x7x60x60=18482491 96x1x96x96=18502081
TimesNet classification | 0.1:2 | 2 | 96x7=4654213
TimesNet anomaly | 0.1:1 | 1 | 100x38=4609574 100x55=4618295 100x25=4602905 96x7=4593671
TranAD anomaly | 0.1:22 | 39 | 100x38=687180 100x55=698094 100x25=678834 96x7=667278
WPMixer forecasting | 0.1:14 | 18 | 96x7x96=207076 24x7x60=171856 96x1x96=206896
"""


@dataclass(frozen=True)
class Expectation:
    """A row of the table."""

    name: str
    task: TaskName
    rates: dict[float, int]
    calls: int
    parameters: dict[tuple[int, ...], int]

    def __str__(self) -> str:
        return f"{self.name}-{self.task}"


def read(row: str) -> Expectation:
    network, rates, calls, parameters = row.split("|")
    name, task = network.split()
    return Expectation(
        name,
        task,
        {float(rate): int(sites) for rate, sites in (each.split(":") for each in rates.split())},
        int(calls),
        {
            tuple(map(int, sizes.split("x"))): int(count)
            for sizes, count in (each.split("=") for each in parameters.split())
        },
    )


EXPECTED = [read(row) for row in TABLE.splitlines()]


@pytest.mark.parametrize("expected", EXPECTED, ids=str)
def test_sites_and_their_rates(expected: Expectation) -> None:
    """Sites at paper size: how many at which rate, and how often they are called."""
    case = entry(expected.name, expected.task)
    length = 100 if case.task == "anomaly" else 96
    model = make(case, length=length, channels=7, horizon=96, size="paper")
    sites = {n: each for n, each in model.named_modules() if isinstance(each, nn.Dropout)}
    rates = [module.p for module in sites.values()]
    assert {rate: rates.count(rate) for rate in set(rates)} == expected.rates
    calls: list[str] = []
    for name, module in sites.items():
        module.register_forward_hook(lambda *_, name=name: calls.append(name))
    with torch.no_grad():
        training_loss(model, windows(1, length=length, channels=7))
    assert len(calls) == expected.calls
    assert set(calls) == set(sites)


@pytest.mark.parametrize("expected", EXPECTED, ids=str)
def test_number_of_parameters(expected: Expectation) -> None:
    """Trainable parameters at paper size."""
    for (length, channels, *more), count in expected.parameters.items():
        sizes: dict[str, Any] = {"input_len": length, "channels": channels}
        if expected.task == "forecasting":
            sizes["horizon"] = more[0]
            sizes["calendar_sizes"] = (more[1], 7, 31, 366) if more[1:] else None
        if expected.task == "classification":
            sizes["classes"] = 5
        model = backbones.build(expected.name, expected.task, **sizes)
        assert sum(p.numel() for p in model.parameters() if p.requires_grad) == count, sizes


def test_every_network_of_this_package_is_stated() -> None:
    own = {
        (name, task)
        for task in get_args(TaskName)
        for name in backbones.names(task)
        if entry(name, task).model.__module__.startswith("sacm.")
    }
    assert {(expected.name, expected.task) for expected in EXPECTED} == own
