"""Rank the windows of a sensor by reliability, then ask whether SACM helps on this sensor.

The signal is known here, so both answers can be checked: stretches with strong noise should score
high, and the test errors of raw and adaptive dropout come from paired runs with the same seeds.

Run: python examples/noisy_sensors.py [--quick] [--out FOLDER]
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import sacm
from sacm.experiments.compare import compare
from sacm.tasks import make_settings
from sacm.training import Hardware

WINDOW = 96


def make_sensor(rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Two channels of tones; every fifth stretch of 200 rows is noisy.

    Returns:
        Values `[T, 2]` and which rows are noisy `[T]`.
    """
    random = np.random.default_rng(0)
    time = np.arange(rows)[:, None]
    clean = np.sin(2 * np.pi * time / [24, 36]) + 0.5 * np.sin(2 * np.pi * time / [9, 13])
    noisy = time[:, 0] // 200 % 5 == 3
    level = np.where(noisy, 1.0, 0.1)[:, None]
    return clean + level * random.normal(size=clean.shape), noisy


def print_scores(values: np.ndarray, noisy: np.ndarray) -> np.ndarray:
    """Score every window without training, and compare both kinds of windows."""
    scores = sacm.score_windows(values, window=WINDOW)  # [T - 95]
    share = np.convolve(noisy, np.ones(WINDOW) / WINDOW, mode="valid")  # noisy rows of a window
    print("share of noisy rows   windows   mean score")
    for low, high in ((0.0, 0.0), (0.01, 0.5), (0.5, 1.0)):
        chosen = (share >= low) & (share <= high)
        print(f"{low:7.0%} to {high:4.0%}   {chosen.sum():12d} {scores[chosen].mean():12.3f}")
    return scores


def print_comparison(values: np.ndarray, folder: Path, quick: bool) -> None:
    """Train raw and SACM from the same weights on the same batches, seed by seed."""
    data = sacm.data.forecasting_data(values, name="sensor")
    settings = make_settings(
        task="forecasting",
        data="sensor",
        backbone="iTransformer",
        size="small",
        input_len=WINDOW,
        horizon=24,
        epochs=1 if quick else 10,
        stride=16 if quick else 1,
        learning_rate=1e-3,
    )
    comparison = compare(
        settings,
        strategies=["raw", "sacm"],
        seeds=[1] if quick else [1, 2, 3],
        data=data,
        folder=folder,
        hardware=Hardware(show_progress=False),
    )
    print("seed   raw MSE   sacm MSE")
    errors = comparison.frame.pivot(index="seed", columns="strategy", values="mse")
    for seed, row in errors.iterrows():
        print(f"{seed:4d} {row['raw']:9.4f} {row['sacm']:10.4f}")
    gain = comparison.gain("sacm", "mse")
    if gain is not None:
        print(f"mean gain {gain['gain']:+.1f} %: {gain['wins']} won, {gain['losses']} lost")


def draw(values: np.ndarray, scores: np.ndarray, path: Path) -> None:
    """One channel, and below it the score of the window that starts at each row."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 3.5), layout="constrained")
    top, bottom = figure.subplots(2, sharex=True)
    top.plot(values[:, 0], linewidth=0.7)
    top.set_ylabel("sensor")
    bottom.plot(scores, color="tab:red")
    bottom.set_ylabel("unreliability")
    bottom.set_xlabel("first row of the window")
    figure.savefig(path, dpi=120)


def main(arguments: list[str] | None = None) -> None:
    """Run the example; the arguments are those of the command line."""
    parser = argparse.ArgumentParser(description="Reliability of a sensor's windows.")
    parser.add_argument("--quick", action="store_true", help="one epoch, one seed, fewer windows")
    parser.add_argument("--out", type=Path, default=Path("."), help="folder of runs and figure")
    options = parser.parse_args(arguments)
    values, noisy = make_sensor(2000)
    scores = print_scores(values, noisy)
    print()
    print_comparison(values, options.out / "runs", options.quick)
    draw(values, scores, options.out / "noisy_sensors.png")


if __name__ == "__main__":
    main()
