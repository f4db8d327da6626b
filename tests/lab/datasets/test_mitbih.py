from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.signal import resample_poly

import sacm.data
from sacm.errors import DataError
from sacm_lab.datasets.mitbih import decode_212

from . import layouts


def test_records_side_by_side_at_36_hz(tmp_path: Path):
    random = np.random.default_rng(0)
    written = {}
    for record in range(100, 106):
        # multiples of the resolution, so that nothing is lost in writing
        written[record] = np.round(random.normal(0, 1, (2_000, 2)) * 200) / 200
        layouts.wfdb_212(tmp_path / "mitdb", record, written[record], ("MLII", "V5"))
    data = sacm.data.load("ECG", folder=tmp_path)
    assert data.values.shape == (200, 12)
    assert data.columns[:3] == ("100_MLII", "100_V5", "101_MLII")
    assert data.timestamps is None
    expected = resample_poly(written[101][:, 1], 1, 10)
    np.testing.assert_allclose(data.values[:, 3], expected, atol=1e-6)


def test_decoding_covers_all_twelve_bits():
    packed = bytes([0xFF, 0x87, 0x00])  # 0x7FF = 2047 and 0x800 = -2048
    assert decode_212(packed, 2, Path("x")).tolist() == [[2047, -2048]]


def test_invalid_samples_are_interpolated(tmp_path: Path):
    signal = np.tile(np.linspace(0, 1, 500)[:, None], (1, 2))
    signal[100:110, 0] = (-2048 - 1024) / 200
    for record in range(100, 106):
        layouts.wfdb_212(tmp_path, record, signal, ("MLII", "V1"))
    values = sacm.data.load("ECG", folder=tmp_path).values
    np.testing.assert_allclose(values[:, 0], values[:, 1], atol=0.01)


def test_damage_is_named(tmp_path: Path):
    for record in range(100, 106):
        layouts.wfdb_212(tmp_path, record, np.zeros((30, 2)), ("MLII", "V1"))
    (tmp_path / "103.dat").write_bytes(b"\0" * 31)
    with pytest.raises(DataError, match=r"103\.dat has 31 bytes"):
        sacm.data.load("ECG", folder=tmp_path)
    (tmp_path / "102.hea").write_text("nothing\n")
    with pytest.raises(DataError, match=r"102\.hea is not a WFDB header"):
        sacm.data.load("ECG", folder=tmp_path)
    (tmp_path / "101.hea").unlink()
    with pytest.raises(DataError, match=r"There is no file .*101\.hea"):
        sacm.data.load("ECG", folder=tmp_path)
