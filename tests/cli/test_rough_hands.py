"""What a rough user met: guesses that were not said, and answers that were kept back."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.cli.conftest import Command, Example

TRAIN = ("train", "forecasting", "--size", "small", "--backbone", "iTransformer", "--epochs", "1")
SIZES = ("--input-len", "12", "--horizon", "4")


@pytest.fixture
def untested(sacm: Command, example: Example) -> str:
    """A run whose data have no test part."""
    outcome = sacm(*TRAIN, *SIZES, "--data", example.series, "--split", "0.8,0.2,0")
    assert outcome.code == 0
    return "latest"


def test_fewer_origins_than_asked_are_said(sacm: Command, example: Example) -> None:
    outcome = sacm("backtest", example.forecasting, "--origins", "1000")
    assert outcome.code == 0
    assert "origins, fewer than 1000" in outcome.err


def test_an_index_without_a_name_comes_back_as_a_column_of_times(sacm: Command) -> None:
    stamps = pd.date_range("2024-01-01", periods=200, freq="h", tz="America/New_York")
    wave = np.sin(np.arange(200) / 4)
    pd.DataFrame({"v": wave}, index=stamps).to_parquet("x.parquet")
    assert sacm(*TRAIN, *SIZES, "--data", "x.parquet").code == 0
    ahead = pd.read_csv(io.StringIO(sacm("predict", "latest").out))
    assert list(ahead.columns) == ["time", "v", "repaired_share"]
    assert pd.Timestamp(ahead["time"][0]) == stamps[-1] + pd.Timedelta("1h")


def test_a_comparison_is_shown_even_if_its_report_cannot_be_written(
    sacm: Command, example: Example, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sacm.errors import SACMError
    from sacm.experiments import compare_page

    def refuse(*_: object, **__: object) -> None:
        raise SACMError("report.html cannot be written (no space left on device).")

    monkeypatch.setattr(compare_page, "write_compare_page", refuse)
    options = ("--size", "small", "--backbone", "iTransformer", "--epochs", "1", *SIZES)
    data = ("--data", example.series, "--strategies", "raw,fixed(0.1)", "--seeds", "1")
    outcome = sacm("compare", "forecasting", *data, *options, "--out", "report.html")
    assert outcome.code == 2
    assert "cannot be written" in outcome.err
    assert "MSE" in outcome.out
    assert "report:" not in outcome.out


def test_python_dash_m_is_the_command(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "sacm", "--version"]
    found = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert found.stdout.startswith("sacm ")
