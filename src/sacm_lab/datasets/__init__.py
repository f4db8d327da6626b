"""The 45 public data sets: their names, known without reading or importing anything.

`catalogue` describes them, `download` fetches them; each family of sources has a file.
"""

from __future__ import annotations

from sacm.registry import DATASETS, GENERATED
from sacm.types import TaskName

# The paper's experiments use these lists: a data set of another package changes none of them.
FORECASTING = (
    *("ETTh1", "ETTh2", "ETTm1", "ETTm2", "Weather", "Electricity", "Exchange Rate"),
    *("ILI", "ECG"),
)
CLASSIFICATION = (
    *("ArticularyWordRecognition", "AtrialFibrillation", "BasicMotions", "CharacterTrajectories"),
    *("Cricket", "DuckDuckGeese", "EigenWorms", "Epilepsy", "EthanolConcentration", "ERing"),
    *("FaceDetection", "FingerMovements", "HandMovementDirection", "Handwriting", "Heartbeat"),
    *("InsectWingbeat", "JapaneseVowels", "Libras", "LSST", "MotorImagery", "NATOPS", "PenDigits"),
    *("PEMS-SF", "PhonemeSpectra", "RacketSports", "SelfRegulationSCP1", "SelfRegulationSCP2"),
    *("SpokenArabicDigits", "StandWalkJump", "UWaveGestureLibrary", "HAR", "Sleep-EDF"),
)
ANOMALY = ("SMD", "MSL", "SMAP", "PSM")
NAMES: dict[TaskName, tuple[str, ...]] = {
    "forecasting": FORECASTING,
    "classification": CLASSIFICATION,
    "anomaly": ANOMALY,
}
ALIASES: dict[str, tuple[str, ...]] = {
    "Electricity": ("ECL",),
    "Exchange Rate": ("Exchange",),
    "ILI": ("Illness", "national_illness"),
    "ECG": ("MIT-BIH",),
    "HAR": ("UCI-HAR",),
    "Sleep-EDF": ("SleepEDF", "sleep-edfx"),
}


def register() -> None:
    """Make the public data sets loadable by name."""
    for task, names in NAMES.items():
        for name in names:
            add = DATASETS.register(name, aliases=ALIASES.get(name, ()), group=task)
            add(f"sacm_lab.datasets.catalogue:{name}")
    GENERATED.register("Synth-12")("sacm_lab.datasets.synth12:synth12")
    DATASETS.register("Plant")("sacm_lab.datasets.plant:PLANT")  # of no group: it is in no list
