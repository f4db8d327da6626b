from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

import sacm.data
from sacm_lab.datasets.forecasting import WEATHER_COLUMNS

from . import layouts

RANDOM = np.random.default_rng(0)


def values(rows: int, channels: int) -> np.ndarray:
    return RANDOM.standard_normal((rows, channels)).astype(np.float32)


# what Time-Series-Library calls the files below its folder `dataset`
LIBRARY = {
    "ETTh1": ("ETT-small/ETTh1.csv", 7),
    "ETTm2": ("ETT-small/ETTm2.csv", 7),
    "Weather": ("weather/weather.csv", 21),
    "Electricity": ("electricity/electricity.csv", 321),
    "Exchange Rate": ("exchange_rate/exchange_rate.csv", 8),
    "ILI": ("illness/national_illness.csv", 7),
}


@pytest.mark.parametrize("name", LIBRARY)
@pytest.mark.parametrize("pointed_at", ["repository", "dataset"])
def test_time_series_library_tree(tmp_path: Path, monkeypatch, name, pointed_at):
    path, channels = LIBRARY[name]
    written = values(60, channels)
    layouts.table(tmp_path / "dataset" / path, written)
    folder = tmp_path if pointed_at == "repository" else tmp_path / "dataset"
    monkeypatch.setenv("SACM_DATA", str(folder))
    data = sacm.data.load(name)
    np.testing.assert_allclose(data.values, written, rtol=1e-6)
    assert data.timestamps[0] == np.datetime64("2016-07-01T02:00:00")
    assert data.columns[-1] == "OT"
    assert any("This copy has 60 rows" in note for note in data.notes)


def test_electricity_as_gzipped_text(tmp_path: Path):
    written = values(40, 321)
    text = "\n".join(",".join(f"{v:.6f}" for v in row) for row in written) + "\n"
    (tmp_path / "electricity.txt.gz").write_bytes(gzip.compress(text.encode()))
    data = sacm.data.load("Electricity", folder=tmp_path)
    np.testing.assert_allclose(data.values, written, atol=1e-6)
    assert data.timestamps is None
    assert "This copy has no timestamps." in data.notes


def test_exchange_text_has_its_last_columns_in_the_other_order(tmp_path: Path):
    written = values(40, 8)
    np.savetxt(tmp_path / "exchange_rate.txt", written, delimiter=",", fmt="%.6f")
    data = sacm.data.load("exchange", folder=tmp_path)
    np.testing.assert_allclose(data.values, written[:, [0, 1, 2, 3, 4, 5, 7, 6]], atol=1e-6)


def test_weather_header_in_a_broken_encoding(tmp_path: Path):
    path = tmp_path / "weather.csv"
    layouts.table(path, values(40, 21))
    path.write_bytes(path.read_bytes().replace(b"date,0,", b"date,SWDR (W/m\xb2),"))
    assert sacm.data.load("Weather", folder=tmp_path).columns == WEATHER_COLUMNS


def test_real_ett_is_the_same_from_its_csv(real_data: Path, tmp_path: Path):
    data = sacm.data.load("ETTh1")
    with np.load(real_data / "forecasting" / "ETTh1.npz") as archive:
        stamps, whole = archive["timestamps"], archive["values"]
    lines = ["date," + ",".join(data.columns)]
    lines += [
        f"{str(stamp).replace('T', ' ')},{','.join(repr(float(v)) for v in row)}"
        for stamp, row in zip(stamps, whole, strict=True)
    ]
    (tmp_path / "ETTh1.csv").write_text("\n".join(lines) + "\n")
    again = sacm.data.load("ETTh1", folder=tmp_path)
    assert sacm.data.fingerprint(again) == sacm.data.fingerprint(data)
    assert again.notes == data.notes
