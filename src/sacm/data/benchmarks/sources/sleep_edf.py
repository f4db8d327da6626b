"""Sleep-EDF: 30-second epochs of one EEG channel with their sleep stages."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from sacm.data.benchmarks.catalogue import ClassificationEntry
from sacm.data.benchmarks.sources.archive import Arrays
from sacm.data.benchmarks.sources.edf import read_edf
from sacm.data.benchmarks.sources.search import first_folder
from sacm.errors import DataError

FOLDERS = ("", "sleep-cassette", "sleep-edf-database-expanded-1.0.0/sleep-cassette", "sleep-edfx")
CHANNEL = "EEG Fpz-Cz"
EPOCH_SECONDS = 30
SAMPLES = 3000
WAKE_EPOCHS = 60
SUBJECTS = range(20)
TEST_SUBJECTS = (4, 9, 14, 19)
STAGES = {
    "Sleep stage W": "W",
    "Sleep stage 1": "N1",
    "Sleep stage 2": "N2",
    "Sleep stage 3": "N3",
    "Sleep stage 4": "N3",
    "Sleep stage R": "REM",
}


def find_sleep(folder: Path, entry: ClassificationEntry) -> Path | None:
    """The folder with the recordings."""
    return first_folder(folder, entry, FOLDERS, "SC4*-PSG.edf")


def read_sleep(folder: Path, entry: ClassificationEntry) -> Arrays:
    """All nights of subjects 0 to 19, split by subject."""
    parts: dict[str, list[tuple[np.ndarray, np.ndarray, int]]] = {"train": [], "test": []}
    for psg in sorted(folder.glob("SC4*-PSG.edf")):
        subject = int(psg.name[3:5])
        if subject in SUBJECTS:
            part = "test" if subject in TEST_SUBJECTS else "train"
            parts[part].append((*read_night(psg), subject))
    arrays: Arrays = {}
    for part, nights in parts.items():
        if not nights:
            which = "4, 9, 14, 19" if part == "test" else "other than 4, 9, 14, 19"
            raise DataError(f"{folder} has no recording of subjects {which} ({part} part).")
        X = np.concatenate([epochs for epochs, _, _ in nights])[:, None, :]  # [N, 1, 3000]
        arrays[f"X_{part}"] = X
        arrays[f"len_{part}"] = np.full(len(X), SAMPLES, dtype=np.int32)
        arrays[f"y_{part}"] = np.concatenate([stages for _, stages, _ in nights])
        subjects = [np.full(len(stages), subject) for _, stages, subject in nights]
        arrays[f"subject_{part}"] = np.concatenate(subjects).astype(np.int16)
    return arrays


def read_night(psg: Path) -> tuple[np.ndarray, np.ndarray]:
    """Epochs `[n, 3000]` and stages `[n]` of one recording."""
    scored = sorted(psg.parent.glob(f"{psg.name[:7]}*-Hypnogram.edf"))
    if not scored:
        raise DataError(f"{psg} has no hypnogram beside it ({psg.name[:7]}…-Hypnogram.edf).")
    signal, rate = read_edf(psg).signal(CHANNEL)
    if rate != SAMPLES / EPOCH_SECONDS:
        raise DataError(f"{psg}: {CHANNEL} has {rate:g} samples a second instead of 100.")
    epochs = signal[: len(signal) // SAMPLES * SAMPLES].reshape(-1, SAMPLES)
    stages = np.full(len(epochs), "", dtype="<U3")
    for onset, duration, text in read_edf(scored[0]).annotations():
        first = round(onset / EPOCH_SECONDS)
        stages[first : first + round(duration / EPOCH_SECONDS)] = STAGES.get(text, "")
    asleep = np.flatnonzero((stages != "W") & (stages != ""))
    if not len(asleep):
        raise DataError(f"{scored[0]} scores no sleep.")
    night = slice(max(0, asleep[0] - WAKE_EPOCHS), asleep[-1] + WAKE_EPOCHS + 1)
    epochs, stages = epochs[night], stages[night]
    return epochs[stages != ""], stages[stages != ""]
