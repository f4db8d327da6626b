"""Small files in the original layout of each source."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd


def table(path: Path, values: np.ndarray, *, frequency: str = "h", encoding: str = "utf-8") -> None:
    """A benchmark CSV: date and channels, the last one called OT."""
    path.parent.mkdir(parents=True, exist_ok=True)
    names = [*(str(i) for i in range(values.shape[1] - 1)), "OT"]
    frame = pd.DataFrame(values, columns=names)
    dates = pd.date_range("2016-07-01 02:00:00", periods=len(values), freq=frequency)
    frame.insert(0, "date", dates.strftime("%Y-%m-%d %H:%M:%S"))
    path.write_text(frame.to_csv(index=False), encoding=encoding)


def ts_text(name: str, cases: list[np.ndarray], labels: list[str]) -> str:
    """A .ts file."""
    equal = len({case.shape[1] for case in cases}) == 1
    head = (
        f"#A comment\n@problemName {name}\n@timestamps false\n@missing false\n@univariate false\n"
        f"@dimensions {len(cases[0])}\n@equalLength {str(equal).lower()}\n"
        f"@classLabel true {' '.join(sorted(set(labels)))}\n@data\n"
    )
    lines = [
        ":".join([",".join(f"{v:.6g}" for v in channel) for channel in case] + [label])
        for case, label in zip(cases, labels, strict=True)
    ]
    return (head + "\n".join(lines) + "\n").replace("nan", "?")


def ts_pair(folder: Path, name: str, train, test) -> None:
    """Both .ts files of a data set; `train` and `test` are (cases, labels)."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}_TRAIN.ts").write_text(ts_text(name, *train))
    (folder / f"{name}_TEST.ts").write_text(ts_text(name, *test))


def zipped(folder: Path, target: Path, inside: str = "") -> None:
    """All files of a folder in a zip file, below `inside`."""
    with zipfile.ZipFile(target, "w") as archive:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                archive.write(path, inside + str(path.relative_to(folder)))


def har(folder: Path, sizes: dict[str, int], random: np.random.Generator) -> dict[str, np.ndarray]:
    """The inertial signals, activities and subjects of both parts."""
    (folder / "train" / "Inertial Signals").mkdir(parents=True)
    (folder / "test" / "Inertial Signals").mkdir(parents=True)
    (folder / "activity_labels.txt").write_text("1 WALKING\n2 SITTING\n")
    written = {}
    for part, count in sizes.items():
        signals = random.standard_normal((count, 9, 128))
        names = [f"{k}_{a}" for k in ("body_acc", "body_gyro", "total_acc") for a in "xyz"]
        for number, name in enumerate(names):
            path = folder / part / "Inertial Signals" / f"{name}_{part}.txt"
            np.savetxt(path, signals[:, number], fmt="  %.7e")
        codes = np.arange(count) % 2 + 1
        (folder / part / f"y_{part}.txt").write_text("\n".join(map(str, codes)) + "\n")
        subjects = np.arange(count) // 2 + 1
        (folder / part / f"subject_{part}.txt").write_text("\n".join(map(str, subjects)) + "\n")
        written[part] = signals
    return written


def wfdb_212(folder: Path, record: int, millivolts: np.ndarray, names: tuple[str, str]) -> None:
    """A two-lead record in format 212: gain 200, zero at 1024."""
    folder.mkdir(parents=True, exist_ok=True)
    digital = np.round(millivolts * 200 + 1024).astype(int)
    first, second = digital[:, 0] & 0xFFF, digital[:, 1] & 0xFFF
    middle = (first >> 8) | ((second >> 8) << 4)
    packed = np.stack([first & 0xFF, middle, second & 0xFF], axis=1).astype(np.uint8)
    (folder / f"{record}.dat").write_bytes(packed.tobytes())
    lines = [f"{record} 2 360 {len(digital)}"]
    lines += [f"{record}.dat 212 200 11 1024 995 -22131 0 {name}" for name in names]
    (folder / f"{record}.hea").write_text("\n".join([*lines, "# 69 M 1085"]) + "\n")


def edf(path: Path, signals: dict[str, tuple[np.ndarray, int]], *, seconds: float) -> None:
    """An EDF file; `signals` are (16-bit samples, samples in a record) by label."""
    path.parent.mkdir(parents=True, exist_ok=True)
    records = min(len(samples) // size for samples, size in signals.values())
    count = len(signals)

    def field(value: object, width: int) -> bytes:
        return str(value).ljust(width)[:width].encode("ascii")

    head = io.BytesIO()
    head.write(field("0", 8) + field("X", 80) + field("X", 80) + field("01.01.89", 8))
    head.write(field("16.00.00", 8) + field(256 * (count + 1), 8) + field("EDF+C", 44))
    head.write(field(records, 8) + field(seconds, 8) + field(count, 4))
    blocks = [list(signals), ["x"] * count, ["uV"] * count, [-200] * count, [200] * count]
    blocks += [[-2000] * count, [2000] * count, ["x"] * count]
    blocks += [[size for _, size in signals.values()], [""] * count]
    for block, width in zip(blocks, (16, 80, 8, 8, 8, 8, 8, 80, 8, 32), strict=True):
        head.write(b"".join(field(value, width) for value in block))
    body = b"".join(
        samples[r * size : (r + 1) * size].astype("<i2").tobytes()
        for r in range(records)
        for samples, size in signals.values()
    )
    path.write_bytes(head.getvalue() + body)


def hypnogram(path: Path, stages: list[tuple[int, int, str]]) -> None:
    """An EDF+ file with annotations (onset, duration, text)."""
    texts = b"+0\x14\x14\x00" + b"".join(
        f"+{onset}\x15{duration}\x14{text}\x14\x00".encode() for onset, duration, text in stages
    )
    texts += b"\0" * (len(texts) % 2)
    samples = np.frombuffer(texts, dtype="<i2")
    edf(path, {"EDF Annotations": (samples, len(samples))}, seconds=0)
