"""Numbers as people write them: read right, or said to be in doubt."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from sacm.data import anomaly_data
from sacm.data.tables.table import Table
from sacm.errors import DataError

DATES = pd.date_range("2024-01-20", periods=30, freq="D")
LEVELS = 950 + 13 * np.arange(30)  # some below a thousand, some above


def write(path: Path, cells: list[str], separator: str = ";", end: str = "") -> Path:
    rows = [f"{date}{separator}{cell}{end}" for date, cell in zip(DATES, cells, strict=True)]
    path.write_text("\n".join([f"date{separator}load{end}", *rows]) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("word", ["-", "--", "n/a", "#N/A", "Missing", "#DIV/0!", "NULL", "?"])
def test_words_for_a_gap_in_a_column_of_numbers(tmp_path: Path, word: str) -> None:
    cells = [str(level) for level in LEVELS]
    cells[4] = word
    table = Table.read(write(tmp_path / "x.csv", cells, ","))
    expected = LEVELS.astype(float)
    expected[4] = np.nan
    np.testing.assert_array_equal(table.values[:, 0], expected)


def test_such_words_stay_in_columns_of_names(tmp_path: Path) -> None:
    path = write(tmp_path / "x.csv", ["-" if place % 2 else "north" for place in range(30)])
    with pytest.raises(DataError, match="not numeric"):
        Table.read(path)


@pytest.mark.parametrize("end", [",", ",,"])
def test_a_delimiter_at_the_end_of_every_line_is_no_channel(tmp_path: Path, end: str) -> None:
    cells = [str(level) for level in LEVELS]
    assert Table.read(write(tmp_path / "x.csv", cells, ",", end)).columns == ("load",)


def test_percent_is_read_and_said(tmp_path: Path) -> None:
    table = Table.read(write(tmp_path / "x.csv", [f"{level / 10:.1f}%" for level in LEVELS]))
    np.testing.assert_allclose(table.values[:, 0], LEVELS / 10, rtol=1e-6)
    assert "Column 'load' is in percent: 95.0% was read as 95.0." in table.notes
    commas = [f"{level / 10:.1f} %".replace(".", ",") for level in LEVELS]
    table = Table.read(write(tmp_path / "x.csv", commas), decimal=",")
    np.testing.assert_allclose(table.values[:, 0], LEVELS / 10, rtol=1e-6)


def spell(level: int, thousands: str, decimal: str) -> str:
    return f"{level:,}".replace(",", thousands) + f"{decimal}25"


@pytest.mark.parametrize("thousands", [".", " ", "\u00a0", "\u202f", "'"])
def test_thousands_are_read_with_decimal(tmp_path: Path, thousands: str) -> None:
    path = write(tmp_path / "x.csv", [spell(level, thousands, ",") for level in LEVELS])
    table = Table.read(path, decimal=",")
    np.testing.assert_allclose(table.values[:, 0], LEVELS + 0.25, rtol=1e-6)


@pytest.mark.parametrize(
    ("thousands", "sign"), [(".", ","), (" ", ","), ("'", "."), ("\u00a0", ",")]
)
def test_the_refusal_of_thousands_names_the_option(
    tmp_path: Path, thousands: str, sign: str
) -> None:
    path = write(tmp_path / "x.csv", [spell(level + 9000, thousands, sign) for level in LEVELS])
    with pytest.raises(DataError, match=rf"decimal='\{sign}' reads them"):
        Table.read(path)


def test_a_point_that_may_separate_thousands_is_said(tmp_path: Path) -> None:
    german = [f"{level:,}".replace(",", ".") for level in LEVELS]  # 950 … 1.327
    note = "numbers such as 1.002, whose point was taken for a decimal one"
    assert any(note in text for text in Table.read(write(tmp_path / "x.csv", german, ",")).notes)
    whole = Table.read(write(tmp_path / "x.csv", german), decimal=",")
    np.testing.assert_array_equal(whole.values[:, 0], LEVELS)
    assert whole.notes == ()
    large = [f"{level * 10:,}".replace(",", ".") for level in LEVELS]  # all with a point
    assert any("decimal=','" in text for text in Table.read(write(tmp_path / "x.csv", large)).notes)
    # With commas between fields and digits after every point, points are what they seem to be.
    plain = [f"{level / 7:.3f}" for level in LEVELS]
    assert Table.read(write(tmp_path / "x.csv", plain, ",")).notes == ()


def test_labels_in_words_say_which_is_the_anomaly() -> None:
    wave = np.sin(np.arange(300) / 4)
    words = np.where(np.arange(300) % 50 < 3, "attack", "normal")
    data = anomaly_data(pd.DataFrame({"v": wave, "w": wave**2, "label": words}))
    assert "Labels in column 'label': 'attack' is an anomaly, 'normal' is not." in data.notes
    assert data.labels is not None
    assert data.labels.sum() == (words[150:] == "attack").sum()


def test_labels_in_unknown_words_are_not_guessed() -> None:
    wave = np.sin(np.arange(300) / 4)
    table = pd.DataFrame({"v": wave, "label": np.where(np.arange(300) % 50 < 3, "A", "B")})
    assert any("none says what is normal" in note for note in anomaly_data(table).notes)
    with pytest.raises(DataError, match="none says what is normal: write 1 for anomalies"):
        Table.read(table, label="label")


def test_epoch_numbers_are_said_as_dates() -> None:
    seconds = 1_614_556_800_000.0 + 3_600_000.0 * np.arange(50)
    read = Table.read(pd.DataFrame({"ts": seconds, "v": np.arange(50) ** 2.0}))
    assert "that is 2021-03-01 00:00:00 to 2021-03-03 01:00:00 in UTC" in read.understood()[0]
