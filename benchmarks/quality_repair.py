"""Repair of hidden stretches against simple ways: mean error in deviations of the channel.

python -m benchmarks.quality_repair --data ETTh1 ILI --out results/quality/repair.json
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import time
from pathlib import Path

import numpy as np

from benchmarks.quality_data import load_pieces
from benchmarks.quality_detection import cut_rows
from sacm.quality.kinds import MISSING
from sacm.quality.series import SeriesDetector, SeriesRepairer

LENGTHS = (1, 6, 24, 96)
SHARE = 0.05


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", nargs="+", required=True)
    parser.add_argument("--rows", type=int, default=6000, help="last training rows to use")
    parser.add_argument("--seed", type=int, default=3)
    parser.add_argument("--causal", action="store_true")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    results = []
    for name in options.data:
        results.append(measure(name, options))
        if options.out:
            options.out.write_text(json.dumps(results, indent=1) + "\n")


def measure(name: str, options: argparse.Namespace) -> dict[str, object]:
    values, pieces = load_pieces(name)
    rows, pieces = cut_rows(pieces, options.rows, len(values))
    values = values[rows]
    flags = SeriesDetector().fit(values, pieces).detect(values, pieces)
    good = flags == 0
    scales = np.array(
        [column[ok].std() if ok.any() else 1.0 for column, ok in zip(values.T, good.T, strict=True)]
    )
    scales[scales == 0] = 1.0
    generator = np.random.default_rng(options.seed)
    table = []
    for length in LENGTHS:
        if length > min(map(len, pieces)) // 8:
            continue
        hidden = hide(good, pieces, length, generator)
        marks = np.where(hidden, MISSING, flags).astype(np.uint8)
        begin = time.perf_counter()
        # What is hidden is not learnt from: the repairer never saw the values it must guess.
        repairer = SeriesRepairer().fit(values, marks, pieces)
        seconds = time.perf_counter() - begin
        known = good & ~hidden
        guesses = rivals(values, known, pieces, repairer.season)
        guesses["repair"] = repairer.repair(values, marks, pieces).values
        if options.causal:
            guesses["causal"] = repairer.repair(values, marks, pieces, causal=True).values
        row: dict[str, object] = {"length": length, "season": repairer.season}
        for way, guess in guesses.items():
            error = (np.abs(guess - values) / scales)[hidden]
            row[way] = round(float(error.mean()), 4)
        row["fit_seconds_a_million"] = round(seconds / values.size * 1e6, 1)
        table.append(row)
        print(f"{name}: " + " ".join(f"{key} {value}" for key, value in row.items()), flush=True)
    return {"data": name, "rows": len(values), "channels": values.shape[1], "gaps": table}


def hide(
    good: np.ndarray, pieces: list[range], length: int, generator: np.random.Generator
) -> np.ndarray:
    """Hide 5 % of the good values in stretches of one length."""
    hidden = np.zeros(good.shape, bool)
    for channel in range(good.shape[1]):
        for piece in pieces:
            for _ in range(max(1 if len(pieces) > 1 else 3, int(SHARE * len(piece) / length))):
                first = piece.start + int(generator.integers(1, len(piece) - length))
                hidden[first : first + length, channel] = True
    return hidden & good


def rivals(
    values: np.ndarray, known: np.ndarray, pieces: list[range], period: int
) -> dict[str, np.ndarray]:
    """Each simple way's guess of all values."""
    ways = {"linear": fill_linear, "last": fill_last, "seasonal_naive": fill_seasonal}
    if period and importlib.util.find_spec("statsmodels"):
        ways["stl"] = fill_stl
    guesses = {way: values.copy() for way in ways}
    for way, fill in ways.items():
        for piece in pieces:
            for channel in range(values.shape[1]):
                rows = slice(piece.start, piece.stop)
                ok = known[rows, channel]
                if ok.any():
                    guesses[way][rows, channel] = fill(values[rows, channel], ok, period)
    return guesses


def fill_linear(values: np.ndarray, known: np.ndarray, period: int) -> np.ndarray:
    rows = np.arange(len(values))
    return np.interp(rows, rows[known], values[known])


def fill_last(values: np.ndarray, known: np.ndarray, period: int) -> np.ndarray:
    last = np.maximum.accumulate(np.where(known, np.arange(len(values)), -1))
    return values[np.where(last >= 0, last, np.flatnonzero(known)[0])]


def fill_seasonal(values: np.ndarray, known: np.ndarray, period: int) -> np.ndarray:
    """The same phase of the nearest cycle that is known, past before future."""
    result = np.where(known, values, np.nan)
    if period:
        source = result.copy()
        for cycle in range(1, 8):
            lag = cycle * period
            if lag >= len(values):
                break
            past = np.concatenate((np.full(lag, np.nan), source[:-lag]))
            future = np.concatenate((source[lag:], np.full(lag, np.nan)))
            result = np.where(np.isnan(result), past, result)
            result = np.where(np.isnan(result), future, result)
    return fill_last(np.nan_to_num(result), np.isfinite(result), period)


def fill_stl(values: np.ndarray, known: np.ndarray, period: int) -> np.ndarray:
    from statsmodels.tsa.seasonal import STL

    season = STL(fill_linear(values, known, period), period=period, seasonal=13).fit().seasonal
    return season + fill_linear(values - season, known, period)


if __name__ == "__main__":
    main()
