"""Trainable parameters at paper size: a wrong layer shows here first."""

from __future__ import annotations

import pytest

from sacm import backbones

from .cases import cases

SETTINGS = {  # name of a column: input_len, horizon, channels
    "C7 96->96": (96, 96, 7),
    "C7 24->60": (24, 60, 7),
    "C1 96->96": (96, 96, 1),
}
STEPS_A_DAY = {"C7 96->96": 24, "C7 24->60": 60, "C1 96->96": 96}
FORECAST = {
    "Crossformer": (46_976_560, 46_893_616, 46_939_696),
    "PatchTST": (1_089_134, 840_266, 1_089_122),
    "iTransformer": (839_776, 812_092, 839_776),
    "TimeMixer": (572_033, 531_416, 571_985),
    "TimeFilter": (190_056, 126_678, 188_760),
    "WPMixer": (207_076, 171_856, 206_896),
    "MultiPatchFormer": (4_045_614, 3_443_562, 4_045_602),
    "Informer": (11_323_911, 11_323_911, 11_302_401),
    "TimesNet": (18_380_231, 18_363_707, 18_374_081),
}
WITH_CALENDAR = {
    "Informer": (11_762_183, 11_799_047, 11_814_401),
    "TimesNet": (18_489_799, 18_482_491, 18_502_081),
}
ANOMALY = {  # (input_len, channels): (100, 38), (100, 55), (100, 25), (96, 7)
    "PatchTST": (1_101_488, 1_101_522, 1_101_462, 1_089_134),
    "iTransformer": (841_828, 841_828, 841_828, 839_776),
    "NSFormer": (6_449_534, 6_501_775, 6_409_585, 6_353_223),
    "TimesNet": (4_609_574, 4_618_295, 4_602_905, 4_593_671),
    "AnomTrans": (285_742, 294_463, 279_073, 269_839),
    "TranAD": (687_180, 698_094, 678_834, 667_278),
    "DCdetector": (94_464, 94_464, 94_464),
}
CLASSIFICATION = {
    "PatchTST": 77_971,
    "iTransformer": 824_069,
    "NSFormer": 6_595_397,
    "TimesNet": 4_654_213,
    "InceptionTime": 473_029,
    "MiniROCKET": 49_985,
}


def count(model: backbones.Backbone) -> int:
    return sum(p.numel() for p in model.parameters() if p.requires_grad)


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("name", FORECAST)
def test_forecasting(name: str, setting: str) -> None:
    input_len, horizon, channels = SETTINGS[setting]
    model = backbones.build(
        name, "forecasting", input_len=input_len, horizon=horizon, channels=channels
    )
    assert count(model) == FORECAST[name][list(SETTINGS).index(setting)]


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("name", WITH_CALENDAR)
def test_forecasting_with_calendar(name: str, setting: str) -> None:
    input_len, horizon, channels = SETTINGS[setting]
    model = backbones.build(
        name,
        "forecasting",
        input_len=input_len,
        horizon=horizon,
        channels=channels,
        calendar_sizes=(STEPS_A_DAY[setting], 7, 31, 366),
    )
    assert count(model) == WITH_CALENDAR[name][list(SETTINGS).index(setting)]


@pytest.mark.parametrize("name", ANOMALY)
def test_anomaly(name: str) -> None:
    shapes = [(100, 38), (100, 55), (100, 25), (96, 7)]
    for expected, (input_len, channels) in zip(ANOMALY[name], shapes, strict=False):
        model = backbones.build(name, "anomaly", input_len=input_len, channels=channels)
        assert count(model) == expected, (input_len, channels)


@pytest.mark.parametrize("name", CLASSIFICATION)
def test_classification(name: str) -> None:
    model = backbones.build(name, "classification", input_len=96, channels=7, classes=5)
    assert count(model) == CLASSIFICATION[name]


def test_every_registered_network_is_counted() -> None:
    counted = {"forecasting": FORECAST, "classification": CLASSIFICATION, "anomaly": ANOMALY}
    for task, table in counted.items():
        assert {case.name for case in cases(task)} == set(table)
