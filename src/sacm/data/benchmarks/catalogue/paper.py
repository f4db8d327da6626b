"""The data sets of the paper's experiments, by name.

They are listed here and not taken from the catalogue, so that a new data set, from this package or
from a plug-in, changes no experiment and no preset.
"""

from __future__ import annotations

PAPER_FORECASTING = (
    *("ETTh1", "ETTh2", "ETTm1", "ETTm2", "Weather", "Electricity", "Exchange Rate"),
    *("ILI", "ECG"),
)
PAPER_CLASSIFICATION = (
    *("ArticularyWordRecognition", "AtrialFibrillation", "BasicMotions", "CharacterTrajectories"),
    *("Cricket", "DuckDuckGeese", "EigenWorms", "Epilepsy", "EthanolConcentration", "ERing"),
    *("FaceDetection", "FingerMovements", "HandMovementDirection", "Handwriting", "Heartbeat"),
    *("InsectWingbeat", "JapaneseVowels", "Libras", "LSST", "MotorImagery", "NATOPS", "PenDigits"),
    *("PEMS-SF", "PhonemeSpectra", "RacketSports", "SelfRegulationSCP1", "SelfRegulationSCP2"),
    *("SpokenArabicDigits", "StandWalkJump", "UWaveGestureLibrary", "HAR", "Sleep-EDF"),
)
PAPER_ANOMALY = ("SMD", "MSL", "SMAP", "PSM")
