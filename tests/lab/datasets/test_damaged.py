"""Damaged files of public data sets are refused in one sentence."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import numpy as np
import pytest

import sacm
from sacm.errors import DataError
from sacm_lab.datasets.sleep_edf import read_edf
from tests.data.test_damage import check_damage
from tests.data.test_malformed import TS
from tests.lab.datasets import layouts


def test_a_damaged_recording_is_refused(tmp_path: Path):
    path = tmp_path / "s.edf"
    layouts.edf(path, {"EEG": (np.zeros(600, np.int16), 100)}, seconds=1)
    check_damage(path.read_bytes(), path, lambda damaged: read_edf(damaged).signal("EEG"))


def test_damaged_benchmark_files(tmp_path: Path):
    (tmp_path / "BasicMotions.zip").write_bytes(b"PK\x03\x04 broken")
    (tmp_path / "ETTh1.npz").write_bytes(b"PK\x03\x04 broken")
    with zipfile.ZipFile(tmp_path / "Libras.zip", "w") as archive:
        archive.writestr("Libras_TRAIN.ts", TS + "1,2:u\n3,4:v\n")
    for name, message in {
        "BasicMotions": "damaged zip file",
        "ETTh1": "damaged archive",
        "Libras": "does not contain Libras_TEST.ts",
    }.items():
        with pytest.raises(DataError, match=message):
            sacm.data.load(name, folder=tmp_path)


def test_folders_that_are_not(tmp_path: Path, monkeypatch):
    with pytest.raises(DataError, match="is not a folder"):
        sacm.data.load("ETTh1", folder=tmp_path / "none")
    monkeypatch.setenv("SACM_DATA", str(tmp_path / "none"))
    with pytest.raises(DataError, match=r"SACM_DATA is .*none, which is not a folder"):
        sacm.data.load("ETTh1")


@pytest.mark.skipif(not hasattr(os, "seteuid"), reason="no POSIX users here")
def test_unreadable_folder(tmp_path: Path):
    locked = tmp_path / "locked"
    locked.mkdir(mode=0)
    user = os.geteuid()
    if user == 0:  # the superuser may read everything
        os.seteuid(65_534)
    try:
        with pytest.raises(DataError, match="permission denied"):
            sacm.data.load("ETTh1", folder=locked)
    finally:
        os.seteuid(user)
        locked.chmod(0o700)
