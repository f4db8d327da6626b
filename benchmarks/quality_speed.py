"""Time to find and repair faults in a million values, against a rolling median of them.

python -m benchmarks.quality_speed
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from benchmarks.quality_faults import inject
from benchmarks.timing import interleave, ratio
from sacm.quality.series import SeriesDetector, SeriesRepairer

ROWS, CHANNELS = 100_000, 10


def make_series() -> np.ndarray:
    """Ten related channels with a daily season, slow wandering, noise and 5 % faults."""
    from scipy.signal import lfilter

    generator = np.random.default_rng(0)
    day = np.sin(2 * np.pi * np.arange(ROWS) / 96)[:, None]
    slow = lfilter([1.0], [1.0, -0.99], generator.standard_normal((ROWS, 3)), axis=0) / 7
    mixed = slow @ generator.standard_normal((3, CHANNELS))
    noise = 0.2 * generator.standard_normal((ROWS, CHANNELS))
    return inject(day + 0.5 * mixed + noise, "mix", 0.05, 0)[0]


def work(values: np.ndarray) -> None:
    detector = SeriesDetector().fit(values)
    flags = detector.detect(values)
    SeriesRepairer().fit(values, flags, period=detector.season).repair(values, flags)


def main() -> None:
    values = make_series()
    frame = pd.DataFrame(values)
    seconds = interleave(
        {"rolling": lambda: frame.rolling(25).median(), "quality": lambda: work(values)},
        rounds=5,
        warmup=1,
    )
    took = ratio(seconds["quality"], seconds["rolling"])
    print(f"find and repair {values.size:,} values: {took} times a rolling median of 25")


if __name__ == "__main__":
    main()
