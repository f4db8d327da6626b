from __future__ import annotations

import re

import pytest

from sacm.data.benchmarks.catalogue import (
    ClassificationEntry,
    ForecastingEntry,
    entries,
    find_entry,
    names,
)
from sacm.data.benchmarks.catalogue.checksums import borders, checksums
from sacm.data.benchmarks.sources import LAYOUTS
from sacm.errors import ArgumentError

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
    assert len(set(names())) == 45


@pytest.mark.parametrize("entry", entries(), ids=lambda entry: entry.name)
def test_every_entry_is_complete(entry):
    assert entry.source in LAYOUTS
    assert entry.licence
    assert entry.home.startswith("https://")
    assert entry.files
    for file in entry.files:
        assert file.url.startswith("https://")
        assert file.checksum is None or re.fullmatch(
            r"sha256:[0-9a-f]{64}|sha1:[0-9a-f]{40}", file.checksum
        )
    if isinstance(entry, ClassificationEntry):
        assert entry.classes >= 2
        assert entry.lengths[0] <= entry.lengths[1]


@pytest.mark.parametrize("name", FORECASTING)
def test_forecasting_sizes(name):
    entry = find_entry(name)
    assert isinstance(entry, ForecastingEntry)
    channels, rows, split = FORECASTING[name]
    assert (entry.channels, entry.benchmark_rows) == (channels, rows)
    assert [len(part) for part in entry.splits(rows)] == split


def test_borders_add_up_to_the_published_rows():
    for name, segments in (("SMD", 28), ("MSL", 27), ("SMAP", 53)):
        known = borders(name)
        assert len(known) == segments
        rows = sum(border.train for border in known), sum(border.test for border in known)
        assert rows == find_entry(name).rows


def test_tables_of_checksums_are_used_in_full():
    used = {file.path for name in ("SMD", "Sleep-EDF") for file in find_entry(name).files}
    assert used == set(checksums())
    assert len(used) == 84 + 78


def test_facts_that_a_user_should_hear():
    assert "-9999" in find_entry("Weather").facts[0]
    assert "overlap" in find_entry("HAR").facts[0]
    for name in ("SelfRegulationSCP1", "SelfRegulationSCP2", "FingerMovements", "MotorImagery"):
        assert "shifted" in find_entry(name).facts[0]
    assert "19 distinct cases" in find_entry("Libras").facts[0]
    for name in ("SMD", "MSL", "SMAP"):
        assert "border" in find_entry(name).facts[0]


@pytest.mark.parametrize(
    ("written", "meant"),
    [("etth1", "ETTh1"), ("exchange_rate", "Exchange Rate"), ("pems sf", "PEMS-SF"), ("ECL", None)],
)
def test_spelling_is_forgiven(written, meant):
    assert find_entry(written).name == (meant or "Electricity")


def test_unknown_names():
    with pytest.raises(ArgumentError, match="did you mean Handwriting"):
        find_entry("Handwritng")
    with pytest.raises(ArgumentError, match="see sacm data list"):
        find_entry("qqqqq")
    with pytest.raises(ArgumentError, match="unknown task 'regression'"):
        names("regression")
