"""The four anomaly-detection benchmarks."""

from __future__ import annotations

from sacm.data.benchmarks.catalogue.checksums import borders, checksums
from sacm.data.benchmarks.catalogue.entry import AnomalyEntry, RemoteFile

SMD_FILES = "https://raw.githubusercontent.com/NetManAIOps/OmniAnomaly/master/"
TELEMANOM_HOME = "https://github.com/khundman/telemanom"
CHANNEL_FILES = "https://raw.githubusercontent.com/imperial-qore/TranAD/main/data/"
LABEL_FILE = "https://raw.githubusercontent.com/khundman/telemanom/master/labeled_anomalies.csv"
PSM_FILES = "https://raw.githubusercontent.com/eBay/RANSynCoders/main/data/"
PSM_LABELS = "sha256:e5b6b0c716a9b3d52e3a1b06761527811f75a218790c37b8a5e806741aeb0676"


def smd_files() -> tuple[RemoteFile, ...]:
    """Three text files for each of the 28 machines."""
    paths = (
        f"ServerMachineDataset/{part}/{machine.name}.txt"
        for machine in borders("SMD")
        for part in ("train", "test", "test_label")
    )
    return tuple(RemoteFile(SMD_FILES + path, path, checksums()[path]) for path in paths)


def telemanom_files(name: str) -> tuple[RemoteFile, ...]:
    """Two arrays for each channel, and the list of anomalies."""
    paths = [
        f"SMAP_MSL/{part}/{channel.name}.npy"
        for channel in borders(name)
        for part in ("train", "test")
    ]
    arrays = (RemoteFile(CHANNEL_FILES + path, path) for path in paths)
    return (*arrays, RemoteFile(LABEL_FILE, "SMAP_MSL/labeled_anomalies.csv"))


ANOMALY = (
    AnomalyEntry(
        name="SMD",
        source="smd",
        channels=38,
        licence="MIT",
        home="https://github.com/NetManAIOps/OmniAnomaly",
        files=smd_files(),
        rows=(708_405, 708_420),
        anomaly_rate=0.0416,
        facts=(
            "28 machines end to end: windows never cross a machine border.",
            "Already scaled to [0, 1] machine by machine by its authors.",
        ),
    ),
    AnomalyEntry(
        name="MSL",
        source="telemanom",
        channels=55,
        licence="BSD-style (telemanom, Caltech)",
        home=TELEMANOM_HOME,
        files=telemanom_files("MSL"),
        rows=(58_317, 73_729),
        anomaly_rate=0.1053,
        facts=(
            "27 channel files end to end: windows never cross a channel border.",
            "54 of the 55 columns are 0/1 commands; column 0 reaches 258 in the test part, far "
            "outside its training range.",
            "Intervals are labelled with both ends included: 10.53 % anomalous (elsewhere 10.72 % "
            "is quoted).",
        ),
    ),
    AnomalyEntry(
        name="SMAP",
        source="telemanom",
        channels=25,
        licence="BSD-style (telemanom, Caltech)",
        home=TELEMANOM_HOME,
        files=telemanom_files("SMAP"),
        rows=(135_183, 427_617),
        anomaly_rate=0.1279,
        facts=(
            "53 channel files end to end: windows never cross a channel border.",
            "Channel P-2, labelled twice and differently, is left out, as in the usual row counts.",
            "Intervals are labelled with both ends included: 12.79 % anomalous (elsewhere 13.13 % "
            "is quoted).",
        ),
    ),
    AnomalyEntry(
        name="PSM",
        source="psm",
        channels=25,
        licence="CC BY 4.0",
        home="https://github.com/eBay/RANSynCoders",
        files=(
            RemoteFile(PSM_FILES + "train.csv", "PSM/train.csv"),
            RemoteFile(PSM_FILES + "test.csv", "PSM/test.csv"),
            RemoteFile(PSM_FILES + "test_label.csv", "PSM/test_label.csv", PSM_LABELS),
        ),
        rows=(132_481, 87_841),
        anomaly_rate=0.2776,
        facts=("Missing values are set to 0 and the timestamp column is dropped.",),
    ),
)
