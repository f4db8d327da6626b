"""Synth-12 of the paper. The order of the random draws is part of its definition."""

from __future__ import annotations

import numpy as np

from sacm.data.datasets import ForecastingData, split_by_ratio
from sacm.data.load import SYNTH12

STEPS = 33_600
SIGNAL_SEED, NOISE_SEED, SEED_STEP = 42, 43, 100
RATIOS = (0.6, 0.2, 0.2)
START, STEP = np.datetime64("2016-07-01T00:00:00"), np.timedelta64(15, "m")


def synth12(sigma: float, channels: int) -> ForecastingData:
    """Generate Synth-12: see `sacm.data.synth12`."""
    clean = [clean_series(SIGNAL_SEED + SEED_STEP * number) for number in range(channels)]
    noisy = [
        add_layered_noise(series, sigma, NOISE_SEED + SEED_STEP * number)
        for number, series in enumerate(clean)
    ]
    return ForecastingData(
        name=f"{SYNTH12}@{sigma:g}",
        values=np.stack(noisy, axis=1).astype(np.float32),
        targets=np.stack(clean, axis=1).astype(np.float32),
        columns=tuple(f"synth{number}" for number in range(channels)),
        splits=split_by_ratio(STEPS, RATIOS),
        timestamps=START + np.arange(STEPS) * STEP,
        frequency="15min",
        notes=(
            "Inputs are noisy, targets clean, in every split; both are scaled by the noisy "
            "training rows, so the same error looks smaller as sigma grows: compare raw units.",
        ),
    )


def clean_series(seed: int = SIGNAL_SEED, steps: int = STEPS) -> np.ndarray:
    """The signal `[steps]`, float64."""
    random = np.random.RandomState(seed)
    trend = standardise(smooth(np.cumsum(random.normal(0, 0.1, steps)), steps / 50))
    tones = standardise(draw_tones(random, steps))
    events = draw_events(random, steps)
    active = smooth((np.abs(events) > 0.01).astype(np.float64), 5)
    return standardise((0.5 * trend + 0.5 * tones) * (1 - 0.3 * active) + 0.5 * events)


def draw_tones(random: np.random.RandomState, steps: int) -> np.ndarray:
    """Two or three tones whose phase wanders."""
    time = np.arange(steps)
    total = np.zeros(steps)
    for number in range(random.randint(2, 4)):
        period = random.uniform(50, 500)
        phase = np.cumsum(random.normal(0, 0.05, steps))
        size, harmonic = (1.0, 2) if number % 2 == 0 else (0.5, 4)
        total += size * np.sin(harmonic * np.pi * time / period + phase)
    return total


def draw_events(random: np.random.RandomState, steps: int) -> np.ndarray:
    """Short chirps and amplitude-modulated bursts, some hundreds of steps apart."""
    events = np.zeros(steps)
    position = 0
    while position < steps - 200:
        position += random.randint(400, 1500)
        if position >= steps - 100:
            break
        duration = random.randint(60, 180)
        end = min(position + duration, steps)
        unit = np.linspace(0, 1, end - position)
        if random.choice(["chirp", "am"], p=[0.5, 0.5]) == "chirp":
            start, stop = random.uniform(5, 10), random.uniform(1, 2)
            burst = np.cos(2 * np.pi * (start * unit + (stop - start) * unit**2 / 2))
        else:
            carrier, envelope = random.uniform(10, 20), random.uniform(2, 5)
            swell = 0.5 * (1 + np.sin(2 * np.pi * envelope * unit))
            burst = np.sin(2 * np.pi * carrier * unit) * swell
        events[position:end] += burst * np.hanning(end - position) * random.uniform(1.5, 2.5)
        position += duration
    return events


def add_layered_noise(clean: np.ndarray, sigma: float, seed: int = NOISE_SEED) -> np.ndarray:
    """`clean` `[T]` under Gaussian noise, heavy-tailed spikes and short gaps of level `sigma`."""
    if sigma == 0:
        return clean.copy()
    random = np.random.RandomState(seed)
    steps = len(clean)
    strength = sigma * smooth(draw_blocks(random, steps), 50)
    gaussian = random.normal(0, 1, steps) * strength
    hit = random.random_sample(steps) < 0.05
    spikes = np.zeros(steps)
    drawn = np.clip(random.standard_t(4, size=int(hit.sum())), -4, 4)
    spikes[hit] = drawn * strength[hit] * 1.5
    noisy = clean + (0.8 * gaussian + 0.5 * spikes)
    for _ in range(steps // 1000):
        start = random.randint(0, steps - 5)
        noisy[start : start + random.randint(1, 5)] = 0
    return noisy


def draw_blocks(random: np.random.RandomState, steps: int) -> np.ndarray:
    """Stretches of 50 to 499 steps, each noisy (1.0) or calm (0.1)."""
    blocks = np.zeros(steps)
    position = 0
    while position < steps:
        length = random.randint(50, 500)
        blocks[position : position + length] = 1.0 if random.random_sample() < 0.4 else 0.1
        position += length
    return blocks


def smooth(values: np.ndarray, width: float) -> np.ndarray:
    """A Gaussian filter of standard deviation `width`."""
    from scipy.ndimage import gaussian_filter1d

    return np.asarray(gaussian_filter1d(values, width))


def standardise(values: np.ndarray) -> np.ndarray:
    """Mean 0 and deviation 1."""
    return np.asarray((values - values.mean()) / (values.std() + 1e-6))
