"""Detection against injected truth: precision and recall by kind, and flags on untouched rows.

python -m benchmarks.quality_detection --data ETTh1 ILI --out results/quality/detection.json
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np

from benchmarks.quality_data import load_pieces
from sacm.data.corrupt import CORRUPTIONS, corrupt_series, series_kinds, series_parts
from sacm.quality.kinds import KINDS
from sacm.quality.series import SeriesDetector
from sacm.quality.series.arrays import find_stretches

DEFAULT = (
    *("missing", "code", "zero", "stuck", "spike", "points"),
    *("burst", "shift", "range", "clipped", "mix"),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", nargs="+", required=True)
    parser.add_argument("--kinds", nargs="*", default=DEFAULT, choices=CORRUPTIONS.names())
    parser.add_argument("--shares", nargs="*", type=float, default=[0.1])
    parser.add_argument("--rows", type=int, default=8640, help="last training rows to inject into")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--sensitivity", type=float, default=1.0)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    results = []
    for name in options.data:
        results.append(measure(name, options))
        if options.out:
            options.out.write_text(json.dumps(results, indent=1) + "\n")


def measure(name: str, options: argparse.Namespace) -> dict[str, object]:
    values, pieces = load_pieces(name)
    begin = time.process_time()
    detector = SeriesDetector(options.sensitivity).fit(values, pieces)
    flags = detector.detect(values, pieces)
    seconds = (time.process_time() - begin) / values.size * 1e6
    untouched = {
        "rows": len(values),
        "channels": values.shape[1],
        "season": detector.season,
        "unjudged": len(detector.unjudged),
        "flagged": round(float(np.mean(flags > 0)), 5),
        "by_kind": {
            KINDS[kind]: round(float(np.mean(flags == kind)), 5)
            for kind in range(1, len(KINDS))
            if (flags == kind).any()
        },
        "longest": list_longest(flags),
        "seconds_a_million": round(seconds, 2),
    }
    print(f"{name}: untouched {untouched}", flush=True)
    rows, parts = cut_rows(pieces, options.rows, len(values))
    detector = SeriesDetector(options.sensitivity).fit(values[rows], parts)
    natural = detector.detect(values[rows], parts) > 0
    injected = []
    for share in options.shares:
        for kind in options.kinds:
            row = score(values[rows], parts, natural, kind, share, options)
            injected.append(row)
            print("   " + " ".join(f"{key} {value}" for key, value in row.items()), flush=True)
    return {"data": name, "untouched": untouched, "injected": injected}


def list_longest(flags: np.ndarray, most: int = 12) -> list[list[object]]:
    """Channel, kind, first row and rows of the longest stretches that are flagged."""
    found: list[list[object]] = []
    for kind in range(1, len(KINDS)):
        for channel in np.flatnonzero((flags == kind).any(axis=0)):
            starts, stops = find_stretches(flags[:, channel] == kind)
            rows = zip(starts.tolist(), (stops - starts).tolist(), strict=True)
            found += [[int(channel), KINDS[kind], first, length] for first, length in rows]
    return sorted(found, key=lambda each: -int(str(each[3])))[:most]


def cut_rows(pieces: list[range], most: int, rows: int) -> tuple[slice, list[range]]:
    """The last pieces that hold `most` rows together; a long last piece is cut."""
    first = max(0, rows - most)
    starts = [piece.start for piece in pieces if piece.start >= first]
    if starts and rows - starts[0] >= most // 2:
        first = starts[0]
    kept = [range(max(p.start, first) - first, p.stop - first) for p in pieces if p.stop > first]
    return slice(first, rows), kept


def inject(
    values: np.ndarray, kind: str, share: float, seed: int
) -> tuple[np.ndarray, np.ndarray, tuple[str, ...]]:
    """Rows with faults, their truth and the names of the truth's numbers.

    The truth `[T, C]` is 0 for healthy values, 1 + position in the names where a fault changed the
    value, and -1 where it left the value as it was, such as zeros in rain.
    """
    names = tuple(series_parts(kind))
    result = corrupt_series(values, kind, share, seed=seed)
    truth = np.zeros(values.shape, np.int8)
    for number, name in enumerate(names, 1):
        truth[result.kinds == series_kinds().index(name)] = number
    truth[result.corrupted & (result.values == values)] = -1
    return result.values, truth, names


def score(
    values: np.ndarray,
    pieces: list[range],
    natural: np.ndarray,
    kind: str,
    share: float,
    options: argparse.Namespace,
) -> dict[str, object]:
    """Precision and recall of one kind.

    `precision` leaves out what is flagged untouched too, `recall_varied` the channels that are
    constant but for the fault.
    """
    broken, truth, names = inject(values, kind, share, options.seed)
    detector = SeriesDetector(options.sensitivity).fit(broken, pieces)
    flags = detector.detect(broken, pieces) > 0
    bad = (truth > 0) & np.isfinite(values)
    hits = int((flags & bad).sum())
    counted = flags & (truth >= 0)
    fresh = int((counted & ~(natural & ~bad)).sum())
    varied = bad & (np.nanstd(values, axis=0) > 0)
    row: dict[str, object] = {
        "kind": kind,
        "share": share,
        "precision": round(hits / max(1, fresh), 3),
        "recall": round(hits / max(1, int(bad.sum())), 3),
        "recall_varied": round(float(flags[varied].mean()), 3) if varied.any() else None,
        "precision_raw": round(hits / max(1, int(counted.sum())), 3),
        "season": detector.season,
    }
    if len(names) > 1:
        row["recall_by_kind"] = {
            name: round(float(flags[(truth == number) & bad].mean()), 3)
            for number, name in enumerate(names, 1)
            if ((truth == number) & bad).any()
        }
    if kind == "spike":
        large = bad & (np.abs(broken - values) >= 4 * np.nanstd(values, axis=0))
        row["recall_4_deviations"] = round(float(flags[large].mean()), 3)
    if kind == "points":
        large = bad & (np.abs(broken - values) >= np.nanstd(values, axis=0))
        row["recall_1_deviation"] = round(float(flags[large].mean()), 3)
    return row


if __name__ == "__main__":
    main()
