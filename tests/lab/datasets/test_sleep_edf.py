from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import sacm.data
from sacm.errors import DataError
from sacm_lab.datasets.sleep_edf import read_edf

from . import layouts

EPOCHS = 130
# wake for 80 epochs, then stages 1, 2, 3, 4, R, movement, and wake again
STAGES = [
    (0, 2400, "Sleep stage W"),
    (2400, 60, "Sleep stage 1"),
    (2460, 30, "Sleep stage 2"),
    (2490, 30, "Sleep stage 3"),
    (2520, 60, "Sleep stage 4"),
    (2580, 30, "Movement time"),
    (2610, 30, "Sleep stage R"),
    (2640, 9000, "Sleep stage W"),
]


def write_night(folder: Path, subject: int) -> np.ndarray:
    random = np.random.default_rng(subject)
    samples = random.integers(-2000, 2001, EPOCHS * 3000).astype(np.int16)
    flat = np.zeros(EPOCHS * 30, dtype=np.int16)
    name = f"SC4{subject:02d}1E"
    signals = {"EOG horizontal": (flat, 30), "EEG Fpz-Cz": (samples, 3000)}
    layouts.edf(folder / f"{name}0-PSG.edf", signals, seconds=30)
    layouts.hypnogram(folder / f"{name}C-Hypnogram.edf", STAGES)
    return samples


def test_epochs_and_stages(tmp_path: Path):
    folder = tmp_path / "sleep-cassette"
    samples = {subject: write_night(folder, subject) for subject in (0, 3, 4, 25)}
    data = sacm.data.load("Sleep-EDF", folder=tmp_path)
    kept = 60 + 2 + 1 + 1 + 2 + 1 + 42
    assert data.X_train.shape == (2 * kept, 1, 3000)
    assert data.X_test.shape == (kept, 1, 3000)
    assert data.y_test[59:67].tolist() == ["W", "N1", "N1", "N2", "N3", "N3", "N3", "REM"]
    assert data.classes == ("N1", "N2", "N3", "REM", "W")
    assert sorted(set(data.subjects_train)) == [0, 3]
    first = samples[4][20 * 3000 : 21 * 3000] / 10  # 2000 digital steps are 200 microvolts
    np.testing.assert_allclose(data.X_test[0, 0], first, atol=1e-3)


def test_a_recording_cut_off(tmp_path: Path):
    for subject in (0, 4):
        write_night(tmp_path, subject)
    path = tmp_path / "SC4001E0-PSG.edf"
    path.write_bytes(path.read_bytes()[:-50])
    with pytest.raises(DataError, match=r"SC4001E0-PSG\.edf is cut off"):
        sacm.data.load("Sleep-EDF", folder=tmp_path)
    path.write_bytes(b"hello")
    with pytest.raises(DataError, match="not an EDF file"):
        sacm.data.load("Sleep-EDF", folder=tmp_path)


def test_what_is_missing_is_named(tmp_path: Path):
    write_night(tmp_path, 0)
    with pytest.raises(DataError, match=r"no recording of subjects 4, 9, 14, 19"):
        sacm.data.load("Sleep-EDF", folder=tmp_path)
    with pytest.raises(DataError, match="no signal 'EEG Pz-Oz'; it has EOG horizontal"):
        read_edf(tmp_path / "SC4001E0-PSG.edf").signal("EEG Pz-Oz")
    (tmp_path / "SC4001EC-Hypnogram.edf").unlink()
    with pytest.raises(DataError, match="no hypnogram beside it"):
        sacm.data.load("Sleep-EDF", folder=tmp_path)
