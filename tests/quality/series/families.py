"""Healthy series of many kinds: what a detector must leave alone."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Maker = Callable[[np.random.Generator, int], np.ndarray]


def sines(generator: np.random.Generator, rows: int) -> np.ndarray:
    time = np.arange(rows)
    wave = np.sin(2 * np.pi * time / 24) + 0.5 * np.sin(2 * np.pi * time / 168)
    return wave + 0.2 * generator.standard_normal(rows)


def random_walk(generator: np.random.Generator, rows: int) -> np.ndarray:
    return generator.standard_normal(rows).cumsum()


def autoregression(generator: np.random.Generator, rows: int) -> np.ndarray:
    noise = generator.standard_normal(rows)
    values = np.zeros(rows)
    for row in range(1, rows):
        values[row] = 0.9 * values[row - 1] + noise[row]
    return values


def white_noise(generator: np.random.Generator, rows: int) -> np.ndarray:
    return generator.standard_normal(rows)


def trend(generator: np.random.Generator, rows: int) -> np.ndarray:
    return 0.01 * np.arange(rows) + generator.standard_normal(rows)


def quantised(generator: np.random.Generator, rows: int) -> np.ndarray:
    return np.round(autoregression(generator, rows), 0)


def finely_quantised(generator: np.random.Generator, rows: int) -> np.ndarray:
    return np.round(sines(generator, rows), 1)


def zero_inflated(generator: np.random.Generator, rows: int) -> np.ndarray:
    rain = autoregression(generator, rows) - 2
    return np.maximum(rain, 0.0)


def mostly_zero(generator: np.random.Generator, rows: int) -> np.ndarray:
    return np.where(generator.random(rows) < 0.05, generator.exponential(1.0, rows), 0.0)


def daylight(generator: np.random.Generator, rows: int) -> np.ndarray:
    sun = np.sin(2 * np.pi * np.arange(rows) / 144)
    clouds = 1 - 0.5 * np.abs(np.sin(autoregression(generator, rows) / 6))
    return np.maximum(sun, 0.0) * clouds * 800


def steps(generator: np.random.Generator, rows: int) -> np.ndarray:
    count = rows // 5
    lengths = generator.integers(5, 60, count)
    levels = np.round(generator.standard_normal(count) * 3, 1)
    return np.repeat(levels, lengths)[:rows]


def pegged(generator: np.random.Generator, rows: int) -> np.ndarray:
    walk = random_walk(generator, rows)
    moves = generator.random(rows) < 0.15
    last = np.maximum.accumulate(np.where(moves, np.arange(rows), 0))
    return walk[last]


def heavy_tails(generator: np.random.Generator, rows: int) -> np.ndarray:
    return generator.standard_t(3, rows)


def heavy_steps(generator: np.random.Generator, rows: int) -> np.ndarray:
    return generator.standard_t(3, rows).cumsum()


def counts(generator: np.random.Generator, rows: int) -> np.ndarray:
    rate = np.exp(1.5 + 1.2 * np.sin(2 * np.pi * np.arange(rows) / 24))
    return generator.poisson(rate).astype(float)


def rare_counts(generator: np.random.Generator, rows: int) -> np.ndarray:
    return generator.poisson(0.3, rows).astype(float)


def day_and_night(generator: np.random.Generator, rows: int) -> np.ndarray:
    size = 0.05 + np.maximum(np.sin(2 * np.pi * np.arange(rows) / 48), 0.0)
    return size * generator.standard_normal(rows)


def changing_noise(generator: np.random.Generator, rows: int) -> np.ndarray:
    size = np.exp(np.sin(2 * np.pi * np.arange(rows) / 1500))
    return size * generator.standard_normal(rows)


def rare_peaks(generator: np.random.Generator, rows: int) -> np.ndarray:
    values = 0.2 * generator.standard_normal(rows)
    for centre in generator.integers(0, rows, max(rows // 400, 1)):
        width = generator.uniform(3, 8)
        values += generator.uniform(4, 9) * np.exp(-(((np.arange(rows) - centre) / width) ** 2))
    return values


def smooth(generator: np.random.Generator, rows: int) -> np.ndarray:
    time = np.arange(rows)
    return np.sin(2 * np.pi * time / 313) + 0.3 * np.sin(2 * np.pi * time / 71 + 1)


def two_states(generator: np.random.Generator, rows: int) -> np.ndarray:
    lengths = generator.integers(10, 80, rows // 10)
    levels = np.arange(rows // 10) % 2 * 3.0
    return np.repeat(levels, lengths)[:rows] + 0.2 * generator.standard_normal(rows)


def wind_direction(generator: np.random.Generator, rows: int) -> np.ndarray:
    return (generator.standard_normal(rows).cumsum() * 15 + 180) % 360


def bounded(generator: np.random.Generator, rows: int) -> np.ndarray:
    return np.clip(autoregression(generator, rows) * 200, 0, 600)


FAMILIES: dict[str, Maker] = {
    make.__name__: make
    for make in (
        sines,
        random_walk,
        autoregression,
        white_noise,
        trend,
        quantised,
        finely_quantised,
        zero_inflated,
        mostly_zero,
        daylight,
        steps,
        pegged,
        heavy_tails,
        heavy_steps,
        counts,
        rare_counts,
        day_and_night,
        changing_noise,
        rare_peaks,
        smooth,
        two_states,
        wind_direction,
        bounded,
    )
}
