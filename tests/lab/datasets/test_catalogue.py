from __future__ import annotations

import re

import pytest

from sacm.data.load import find, names
from sacm.errors import ArgumentError
from sacm_lab.datasets.catalogue import PUBLIC
from sacm_lab.datasets.classification import ClassificationSet
from sacm_lab.datasets.forecasting import ForecastingSet
from sacm_lab.datasets.public import borders, checksums

# name: channels, rows used, split, horizons
FORECASTING = {
    "ETTh1": (7, 14_400, [8640, 2880, 2880]),
    "ETTh2": (7, 14_400, [8640, 2880, 2880]),
    "ETTm1": (7, 57_600, [34560, 11520, 11520]),
    "ETTm2": (7, 57_600, [34560, 11520, 11520]),
    "Weather": (21, 52_696, [36887, 5269, 10540]),
    "Electricity": (321, 26_304, [18412, 2630, 5262]),
    "Exchange Rate": (8, 7_588, [4552, 1518, 1518]),
    "ILI": (7, 966, [676, 96, 194]),
    "ECG": (12, 65_000, [45500, 6500, 13000]),
}


def test_forty_five_data_sets():
    assert [len(names(task)) for task in ("forecasting", "classification", "anomaly")] == [9, 32, 4]
    assert set(names()) == set(PUBLIC)


@pytest.mark.parametrize("entry", PUBLIC.values(), ids=lambda entry: entry.name)
def test_every_entry_is_complete(entry):
    assert entry.layouts
    assert entry.task in ("forecasting", "classification", "anomaly")
    assert entry.licence
    assert entry.home.startswith("https://")
    assert entry.files
    for file in entry.files:
        assert file.url.startswith("https://")
        assert file.checksum is None or re.fullmatch(
            r"sha256:[0-9a-f]{64}|sha1:[0-9a-f]{40}", file.checksum
        )
    if isinstance(entry, ClassificationSet):
        assert entry.classes >= 2
        assert entry.lengths[0] <= entry.lengths[1]


@pytest.mark.parametrize("name", FORECASTING)
def test_forecasting_sizes(name):
    entry = find(name)
    assert isinstance(entry, ForecastingSet)
    channels, rows, split = FORECASTING[name]
    assert (entry.channels, entry.benchmark_rows) == (channels, rows)
    assert [len(part) for part in entry.splits(rows)] == split


def test_borders_add_up_to_the_published_rows():
    for name, segments in (("SMD", 28), ("MSL", 27), ("SMAP", 53)):
        known = borders(name)
        assert len(known) == segments
        rows = sum(border.train for border in known), sum(border.test for border in known)
        assert rows == find(name).rows


def test_tables_of_checksums_are_used_in_full():
    used = {file.path for name in ("SMD", "Sleep-EDF") for file in find(name).files}
    assert used == set(checksums())
    assert len(used) == 84 + 78


def test_facts_that_a_user_should_hear():
    assert "-9999" in find("Weather").facts[0]
    assert "overlap" in find("HAR").facts[0]
    for name in ("SelfRegulationSCP1", "SelfRegulationSCP2", "FingerMovements", "MotorImagery"):
        assert "shifted" in find(name).facts[0]
    assert "19 distinct cases" in find("Libras").facts[0]
    for name in ("SMD", "MSL", "SMAP"):
        assert "border" in find(name).facts[0]


@pytest.mark.parametrize(
    ("written", "meant"),
    [("etth1", "ETTh1"), ("exchange_rate", "Exchange Rate"), ("pems sf", "PEMS-SF"), ("ECL", None)],
)
def test_spelling_is_forgiven(written, meant):
    assert find(written).name == (meant or "Electricity")


def test_unknown_names():
    with pytest.raises(ArgumentError, match="Did you mean 'Handwriting'"):
        find("Handwritng")
    with pytest.raises(ArgumentError, match="sacm data list"):
        find("qqqqq")
    with pytest.raises(ArgumentError, match="unknown task 'regression'"):
        names("regression")
