"""The 32 classification data sets: 30 of the UEA archive, HAR and Sleep-EDF."""

from __future__ import annotations

import zipfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sacm.data.cases import Arrays, Cases, case_arrays, from_padded, read_ts
from sacm.data.datasets import ClassificationData
from sacm.errors import DataError
from sacm.types import TaskName
from sacm_lab.datasets import har, sleep_edf
from sacm_lab.datasets.public import (
    FolderLayout,
    PublicDataset,
    RemoteFile,
    checksums,
    difference_note,
    first_file,
)

UEA_HOME = "https://www.timeseriesclassification.com"
UEA_FILES = "https://timeseriesclassification.com/aeon-toolkit/"
UEA_LICENCE = "terms of the original donors (UEA archive states none)"
SLEEP_FILES = "https://physionet.org/files/sleep-edfx/1.0.0/"

SHIFTED = (
    "Every channel is the one before it, shifted by {channels} steps: a case holds L + C(C - 1) "
    "distinct samples, not C x L. Channel mixing or channel dropout means little here."
)

# name: (training cases, test cases, channels, shortest, longest, classes, facts)
UEA: dict[str, tuple[int, int, int, int, int, int, tuple[str, ...]]] = {
    "ArticularyWordRecognition": (275, 300, 9, 144, 144, 25, ()),
    "AtrialFibrillation": (15, 15, 2, 640, 640, 3, ("15 test cases: one is worth 6.7 points.",)),
    "BasicMotions": (40, 40, 6, 100, 100, 4, ()),
    "CharacterTrajectories": (1422, 1436, 3, 60, 182, 20, ()),
    "Cricket": (108, 72, 6, 1197, 1197, 12, ()),
    "DuckDuckGeese": (50, 50, 1345, 270, 270, 5, ()),
    "EigenWorms": (128, 131, 6, 17984, 17984, 5, ()),
    "Epilepsy": (137, 138, 3, 206, 206, 4, ("One training case occurs twice.",)),
    "EthanolConcentration": (261, 263, 3, 1751, 1751, 4, ()),
    "ERing": (30, 270, 4, 65, 65, 6, ("Sizes of the present files; the 2018 paper: 30 / 30.",)),
    "FaceDetection": (5890, 3524, 144, 62, 62, 2, ()),
    "FingerMovements": (316, 100, 28, 50, 50, 2, (SHIFTED,)),
    "HandMovementDirection": (
        *(160, 74, 10, 400, 400, 4),
        ("Sizes of the present files; the 2018 paper: 320 / 147.",),
    ),
    "Handwriting": (150, 850, 3, 152, 152, 26, ()),
    "Heartbeat": (204, 205, 61, 405, 405, 2, ()),
    "InsectWingbeat": (25000, 25000, 200, 2, 22, 10, ()),
    "JapaneseVowels": (270, 370, 12, 7, 29, 9, ()),
    "Libras": (
        *(180, 180, 2, 45, 45, 15),
        ("19 distinct cases occur in both training and test; 6 training cases are repeats.",),
    ),
    "LSST": (2459, 2466, 6, 36, 36, 14, ()),
    "MotorImagery": (278, 100, 64, 3000, 3000, 2, (SHIFTED,)),
    "NATOPS": (180, 180, 24, 51, 51, 6, ()),
    "PenDigits": (7494, 3498, 2, 8, 8, 10, ()),
    "PEMS-SF": (267, 173, 963, 144, 144, 7, ()),
    "PhonemeSpectra": (3315, 3353, 11, 217, 217, 39, ()),
    "RacketSports": (151, 152, 6, 30, 30, 4, ()),
    "SelfRegulationSCP1": (268, 293, 6, 896, 896, 2, (SHIFTED,)),
    "SelfRegulationSCP2": (200, 180, 7, 1152, 1152, 2, (SHIFTED,)),
    "SpokenArabicDigits": (6599, 2199, 13, 4, 93, 10, ()),
    "StandWalkJump": (12, 15, 4, 2500, 2500, 3, ("15 test cases: one is worth 6.7 points.",)),
    "UWaveGestureLibrary": (120, 320, 3, 315, 315, 8, ()),
}


@dataclass(frozen=True, kw_only=True)
class ClassificationSet(PublicDataset):
    """Labelled cases: training and test counts (None: the source fixes none), shortest, longest."""

    cases: tuple[int, int] | None
    lengths: tuple[int, int]
    classes: int

    task: TaskName = "classification"

    def sizes(self) -> dict[str, Any]:
        """Cases, channels, lengths and classes."""
        return {
            "cases": None if self.cases is None else list(self.cases),
            "channels": self.channels,
            "lengths": list(self.lengths),
            "classes": self.classes,
        }

    def shape(self) -> str:
        """Cases x channels x length."""
        cases = "by subject" if self.cases is None else "/".join(map(str, self.cases))
        shortest, longest = self.lengths
        length = str(longest) if shortest == longest else f"{shortest}-{longest}"
        return f"{cases} x {self.channels} x {length}"

    def build_as_published(self, arrays: Arrays) -> ClassificationData:
        """Cases cut to the longest training case, gaps filled."""
        data = from_padded(arrays, self.name)
        counts = (len(data.X_train), len(data.X_test))
        expected = self.cases or counts
        notes = [
            *self.facts,
            *data.notes,
            difference_note("training cases", counts[0], expected[0]),
            difference_note("test cases", counts[1], expected[1]),
            difference_note("channels", data.channels, self.channels),
            difference_note("classes", len(data.classes), self.classes),
        ]
        return replace(data, notes=tuple(note for note in notes if note))


def find_ts(folder: Path, dataset: ClassificationSet) -> Path | None:
    """The training file in `.ts` format, or the zip file that holds both."""
    name = dataset.name
    loose = f"{name}_TRAIN.ts"
    nested = f"Multivariate_ts/{name}/{loose}"
    return first_file(folder, dataset, (loose, f"{name}/{loose}", nested, f"{name}.zip"))


def read_ts_pair(path: Path, dataset: ClassificationSet) -> Arrays:
    """Training and test cases."""
    if path.suffix == ".zip":
        return case_arrays(*read_zip(path, dataset.name))
    return case_arrays(read_ts(path), read_ts(path.with_name(f"{dataset.name}_TEST.ts")))


def read_zip(path: Path, name: str) -> tuple[Cases, Cases]:
    """Both files, out of the zip file."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = {Path(member).name: member for member in archive.namelist()}
            cases = []
            for part in ("TRAIN", "TEST"):
                file = f"{name}_{part}.ts"
                if file not in members:
                    raise DataError(f"{path} does not contain {file}.")
                cases.append(read_ts(path / file, archive.read(members[file])))
    except (zipfile.BadZipFile, EOFError) as error:
        raise DataError(f"{path} is a damaged zip file: remove it and fetch it again.") from error
    return cases[0], cases[1]


TS_FILES = (FolderLayout(".ts files", find_ts, read_ts_pair),)
HAR_FILES = (FolderLayout("UCI text files", har.find_har, har.read_har),)
EDF_FILES = (FolderLayout("EDF recordings", sleep_edf.find_sleep, sleep_edf.read_sleep),)


def uea(name: str) -> ClassificationSet:
    """A data set of the archive."""
    train, test, channels, shortest, longest, classes, facts = UEA[name]
    return ClassificationSet(
        name=name,
        layouts=TS_FILES,
        channels=channels,
        licence=UEA_LICENCE,
        home=f"{UEA_HOME}/description.php?Dataset={name}",
        files=(RemoteFile(f"{UEA_FILES}{name}.zip", f"{name}.zip"),),
        cases=(train, test),
        lengths=(shortest, longest),
        classes=classes,
        facts=tuple(fact.format(channels=channels) for fact in facts),
    )


HAR = ClassificationSet(
    name="HAR",
    layouts=HAR_FILES,
    channels=9,
    licence="CC BY 4.0",
    home="https://archive.ics.uci.edu/dataset/240/human+activity+recognition+using+smartphones",
    files=(
        RemoteFile(
            "https://archive.ics.uci.edu/static/public/240/"
            "human+activity+recognition+using+smartphones.zip",
            "UCI HAR Dataset.zip",
            "sha256:c00b803081a5c797cd5e4b83700a9810b38d53d9d84e01917e090e1fdbc81031",
        ),
    ),
    cases=(7352, 2947),
    lengths=(128, 128),
    classes=6,
    facts=(
        "Neighbouring windows overlap by half: a validation split by case leaks, so validation "
        "holds out whole subjects.",
        "The official split is by subject: 21 for training, 9 for testing.",
    ),
)

SLEEP_EDF = ClassificationSet(
    name="Sleep-EDF",
    layouts=EDF_FILES,
    channels=1,
    licence="ODC-BY 1.0",
    home="https://physionet.org/content/sleep-edfx/1.0.0/",
    files=tuple(
        RemoteFile(SLEEP_FILES + path, path, checksum)
        for path, checksum in checksums().items()
        if path.startswith("sleep-cassette/")
    ),
    cases=None,
    lengths=(3000, 3000),
    classes=5,
    facts=(
        "30-second epochs of EEG Fpz-Cz at 100 Hz from the 39 nights of subjects 0 to 19; stages 3 "
        "and 4 are joined; half an hour of wake is kept on either side of sleep.",
        "There is no official split: subjects 4, 9, 14 and 19 test, whole subjects validate.",
    ),
)

CLASSIFICATION_SETS = (*(uea(name) for name in UEA), HAR, SLEEP_EDF)
