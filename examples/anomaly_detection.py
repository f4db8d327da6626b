"""Find anomalies in telemetry, and read the numbers that tell how well it went.

The detector learns from normal rows alone. Its scores on rows with known anomalies are measured
with point adjustment, as published tables do, and without it, beside random scores.

Run: python examples/anomaly_detection.py [--quick] [--out FOLDER]
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import sacm


def make_telemetry(rows: int, seed: int) -> np.ndarray:
    """Three channels of sines with noise, `[T, 3]`."""
    random = np.random.default_rng(seed)
    time = np.arange(rows)[:, None]
    return np.sin(2 * np.pi * time / [24, 16, 12]) + random.normal(scale=0.1, size=(rows, 3))


def add_anomalies(rows: np.ndarray) -> np.ndarray:
    """A shift, a burst of noise and a frozen sensor; returns the labels `[T]`."""
    random = np.random.default_rng(2)
    labels = np.zeros(len(rows), dtype=int)
    rows[150:165, 0] += 2.0
    rows[350:370] += random.normal(size=(20, 3))
    rows[520:550, 1] = rows[520, 1]
    for part in (slice(150, 165), slice(350, 370), slice(520, 550)):
        labels[part] = 1
    return labels


def draw(scores: np.ndarray, labels: np.ndarray, threshold: float, path: Path) -> None:
    """The score of every row, the threshold, and the labelled rows."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 3), layout="constrained")
    axes = figure.subplots()
    axes.plot(scores, linewidth=0.8, label="score")
    axes.axhline(threshold, color="grey", linestyle="--", label="threshold")
    axes.fill_between(
        range(len(labels)), 0, scores.max(), where=labels > 0, alpha=0.2, label="labelled"
    )
    axes.set_xlabel("row")
    axes.legend(frameon=False)
    figure.savefig(path, dpi=120)


def main(arguments: list[str] | None = None) -> None:
    """Run the example; the arguments are those of the command line."""
    parser = argparse.ArgumentParser(description="Find anomalies in telemetry.")
    parser.add_argument("--quick", action="store_true", help="few rows, one epoch")
    parser.add_argument("--out", type=Path, default=Path("."), help="folder of the figure")
    options = parser.parse_args(arguments)

    detector = sacm.AnomalyDetector(
        "iTransformer",
        input_len=50,
        size="small",
        epochs=1 if options.quick else 10,
        learning_rate=1e-3,
    )
    detector.fit(make_telemetry(400 if options.quick else 2000, seed=0))

    rows = make_telemetry(700, seed=1)
    labels = add_anomalies(rows)
    scores, alarms = detector.anomaly_scores(rows), detector.alarms(rows)
    print(f"threshold {detector.threshold_:.3f}, alarms on {alarms.sum()} of {len(rows)} rows")

    found = detector.evaluate(rows, labels)
    for name in ("f1", "f1_pa", "f1_pa_random", "auc_pr", "vus_pr"):
        value = found[name]
        print(f"{name:13s} {'undefined' if value is None else format(value, '.2f')}")
    draw(scores, labels, detector.threshold_, options.out / "anomaly_detection.png")


if __name__ == "__main__":
    main()
