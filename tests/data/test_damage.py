"""Files with random damage: read anyway, or refused in one sentence, never a crash."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from random import Random

import numpy as np
import pandas as pd
import pytest

from sacm.data import anomaly_data, classification_data, forecasting_data
from sacm.errors import SACMError
from tests.lab.datasets import layouts

LETTERS = b'0123456789,;:\n\r\t ".-+eENa?\x00\xff|@#x'


def table() -> bytes:
    values = np.random.default_rng(0).standard_normal((40, 2)).round(3)
    frame = pd.DataFrame(values, columns=["a", "b"])
    frame.insert(0, "date", pd.date_range("2021-01-01", periods=40, freq="h"))
    return frame.to_csv(index=False).encode()


def cases() -> bytes:
    listed = list(np.random.default_rng(0).standard_normal((6, 2, 5)))
    return layouts.ts_text("x", listed, list("uvuvuv")).encode()


def archive() -> bytes:
    buffer = io.BytesIO()
    np.savez_compressed(buffer, values=np.arange(80.0).reshape(40, 2), columns=np.array(["a", "b"]))
    return buffer.getvalue()


def parquet() -> bytes:
    buffer = io.BytesIO()
    pd.DataFrame({"a": np.arange(30.0)}).to_parquet(buffer)
    return buffer.getvalue()


READERS = {
    "x.csv": (table, forecasting_data),
    "plant.csv": (table, anomaly_data),
    "x.ts": (cases, classification_data),
    "x.npz": (archive, forecasting_data),
    "x.parquet": (parquet, forecasting_data),
}


def damaged(content: bytes, random: Random) -> bytes:
    """Some bytes changed, removed, inserted, or everything after a place gone."""
    result = bytearray(content)
    for _ in range(random.choice([1, 1, 2, 5, 20])):
        place = random.randrange(len(result))
        kind = random.randrange(5)
        if kind == 0:
            result[place] = random.choice(LETTERS)
        elif kind == 1:
            del result[place : place + random.randrange(1, 30)]
        elif kind == 2:
            result[place:place] = bytes(random.choices(LETTERS, k=3))
        elif kind == 3:
            result[place] = random.randrange(256)
        else:
            del result[place + 1 :]
        if not result:
            break
    return bytes(result)


@pytest.mark.parametrize("name", READERS)
def test_damage_is_survived(name, tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    make, read = READERS[name]
    check_damage(make(), tmp_path / name, read)


def check_damage(content: bytes, path: Path, read: Callable[[Path], object]) -> None:
    """Damaged files are read anyway, or refused in a sentence."""
    refusals = []
    for seed in range(60):
        path.write_bytes(damaged(content, Random(seed)))
        try:
            read(path)
        except SACMError as error:
            refusals.append(str(error))
    assert refusals
    assert all(said.endswith(".") for said in refusals)
