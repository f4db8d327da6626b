"""The isolated signal families: what structure looks like before anything corrupts it."""

from __future__ import annotations

from typing import Literal

import numpy as np

from sacm.errors import ArgumentError

Signal = Literal["periodic", "trend", "chirp", "am", "composite"]
TONES = ((1.0, 0.5), (0.5, 2.0))  # amplitude, frequency in Hz
SLOPE, LEVEL = 0.3, -1.5
SWEEP = (0.5, 3.0)
CARRIER, ENVELOPE, DEPTH = 2.0, 0.2, 0.8


def signal(kind: Signal, *, seconds: float = 10.0, rate: float = 100.0) -> np.ndarray:
    """A clean signal `[seconds * rate]`, float64.

    periodic: two tones, `sum A sin(2 pi f t)`. trend: `a t + b` and the tones. chirp: a linear
    sweep, `sin(2 pi (f0 t + k t^2 / 2))`. am: `(1 + m sin(2 pi fm t)) sin(2 pi fc t)`. composite:
    all four together (with the tones once).
    """
    steps = round(seconds * rate)
    if steps < 2:
        raise ArgumentError(f"{seconds} s at {rate} Hz make fewer than two samples.")
    time = np.arange(steps) / rate
    tones = sum(size * np.sin(2 * np.pi * frequency * time) for size, frequency in TONES)
    line = SLOPE * time + LEVEL
    speed = (SWEEP[1] - SWEEP[0]) / seconds
    chirp = np.sin(2 * np.pi * (SWEEP[0] * time + speed * time**2 / 2))
    swell = 1 + DEPTH * np.sin(2 * np.pi * ENVELOPE * time)
    modulated = swell * np.sin(2 * np.pi * CARRIER * time)
    families = {
        "periodic": tones,
        "trend": line + tones,
        "chirp": chirp,
        "am": modulated,
        "composite": line + tones + chirp + modulated,
    }
    if kind not in families:
        raise ArgumentError(f"There is no signal {kind!r}: use {', '.join(families)}.")
    return np.asarray(families[kind])
