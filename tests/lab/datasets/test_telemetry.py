from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import sacm.data
from sacm.errors import DataError
from sacm_lab.datasets.public import borders

RANDOM = np.random.default_rng(0)


def write_machine(folder: Path, name: str, rows: int) -> dict[str, np.ndarray]:
    made = {
        "train": RANDOM.random((rows, 38)),
        "test": RANDOM.random((rows + 1, 38)),
        "test_label": (RANDOM.random((rows + 1, 1)) < 0.2).astype(int),
    }
    for part, values in made.items():
        (folder / part).mkdir(parents=True, exist_ok=True)
        kind = "%d" if part == "test_label" else "%.6f"
        np.savetxt(folder / part / f"{name}.txt", values, fmt=kind, delimiter=",")
    return made


@pytest.mark.parametrize("top", ["ServerMachineDataset", "SMD", "dataset/SMD"])
def test_smd_text_files(tmp_path: Path, top):
    names = ["machine-3-9", "machine-2-6", "machine-3-1", "machine-3-10"]
    made = {name: write_machine(tmp_path / top, name, 20 + i) for i, name in enumerate(names)}
    data = sacm.data.load("SMD", folder=tmp_path)
    order = ["machine-2-6", "machine-3-1", "machine-3-9", "machine-3-10"]
    assert [segment.name for segment in data.segments] == order
    for segment in data.segments:
        part = made[segment.name]
        np.testing.assert_allclose(data.train[list(segment.train)], part["train"], atol=1e-6)
        np.testing.assert_array_equal(data.labels[list(segment.test)], part["test_label"][:, 0])
    assert any("This copy has 86 training rows" in note for note in data.notes)


def test_smd_labels_that_do_not_fit(tmp_path: Path):
    write_machine(tmp_path, "machine-1-1", 10)
    (tmp_path / "test_label" / "machine-1-1.txt").write_text("0\n1\n")
    with pytest.raises(DataError, match="machine-1-1 has 11 test rows, 2 labels"):
        sacm.data.load("SMD", folder=tmp_path)


@pytest.mark.parametrize("name", ["MSL", "SMAP"])
def test_telemanom_files(tmp_path: Path, name):
    channels = {"MSL": 55, "SMAP": 25}[name]
    rows = []
    for channel, craft in (("T-9", name), ("P-2", name), ("C-1", name), ("A-1", "other")):
        for part, length in (("train", 30), ("test", 40)):
            path = tmp_path / "SMAP_MSL" / part / f"{channel}.npy"
            path.parent.mkdir(parents=True, exist_ok=True)
            np.save(path, np.full((length, channels), len(rows), dtype=np.float64))
        rows.append((channel, craft, "[[3, 5], [38, 39]]", "[point, point]", 40))
    columns = ["chan_id", "spacecraft", "anomaly_sequences", "class", "num_values"]
    table = pd.DataFrame(rows, columns=columns)
    table.to_csv(tmp_path / "SMAP_MSL" / "labeled_anomalies.csv", index=False)
    data = sacm.data.load(name, folder=tmp_path)
    assert [segment.name for segment in data.segments] == ["C-1", "T-9"]
    assert data.train.shape == (60, channels)
    assert data.labels[:40].nonzero()[0].tolist() == [3, 4, 5, 38, 39]
    assert data.train[0, 0] == 2


def test_psm_files(tmp_path: Path):
    folder = tmp_path / "dataset" / "PSM"
    folder.mkdir(parents=True)
    for part, rows in (("train", 12), ("test", 9)):
        frame = pd.DataFrame(RANDOM.random((rows, 25)), columns=[f"feature_{i}" for i in range(25)])
        frame.insert(0, "timestamp_(min)", np.arange(rows, dtype=float))
        if part == "train":
            frame.loc[3, "feature_7"] = np.nan
        frame.to_csv(folder / f"{part}.csv", index=False)
    labels = pd.DataFrame({"timestamp_(min)": range(9), "label": [0, 1] * 4 + [0]})
    labels.to_csv(folder / "test_label.csv", index=False)
    data = sacm.data.load("PSM", folder=tmp_path)
    assert data.train.shape == (12, 25)
    assert data.train[3, 7] == 0
    assert data.labels.tolist() == [0, 1] * 4 + [0]


def save_joined(folder: Path, name: str, train: int, test: int, labels: np.ndarray) -> None:
    (folder / name).mkdir(parents=True, exist_ok=True)
    np.save(folder / name / f"{name}_train.npy", np.zeros((train, 2)))
    np.save(folder / name / f"{name}_test.npy", np.zeros((test, 2)))
    np.save(folder / name / f"{name}_test_label.npy", labels)


@pytest.mark.parametrize("order", ["numbers", "alphabet"])
def test_borders_of_joined_arrays_are_found_by_sizes_and_labels(tmp_path: Path, order):
    """Time-Series-Library keeps all machines in one array, and does not say where one ends."""
    known = borders("SMD")
    used = known if order == "numbers" else sorted(known, key=lambda border: border.name)
    marks = [np.arange(b.test) < (5 if b.anomalous is None else b.anomalous) for b in used]
    total = sum(b.train for b in used), sum(b.test for b in used)
    save_joined(tmp_path / "dataset", "SMD", *total, np.concatenate(marks))
    data = sacm.data.load("SMD", folder=tmp_path)
    assert [segment.name for segment in data.segments] == [b.name for b in used]
    assert [len(segment.test) for segment in data.segments] == [b.test for b in used]


def test_unknown_borders_are_admitted(tmp_path: Path):
    save_joined(tmp_path, "MSL", 50, 60, np.zeros((60, 1), bool))
    data = sacm.data.load("MSL", folder=tmp_path)
    assert len(data.segments) == 1
    assert any("not known in this copy" in note for note in data.notes)


def test_real_msl_labels_prove_the_borders(real_data: Path, tmp_path: Path):
    data = sacm.data.load("MSL")
    folder = tmp_path / "MSL"
    folder.mkdir()
    for part, values in (("train", data.train), ("test", data.test), ("test_label", data.labels)):
        np.save(folder / f"MSL_{part}.npy", values)
    again = sacm.data.load("MSL", folder=tmp_path)
    assert sacm.data.fingerprint(again) == sacm.data.fingerprint(data)
