"""A short name for the exact content of a data set."""

from __future__ import annotations

import hashlib
from dataclasses import MISSING, fields

import numpy as np

from sacm.data.datasets import AnyData
from sacm.data.scaling import chunks

# Notes describe how the data came here; the same content found elsewhere is the same data. What
# lies ahead of the last row is for forecasts, not for training; a zone says how the clock is read.
IGNORED = ("notes", "understood", "ahead", "zone")
LENGTH = 16


def fingerprint(data: AnyData) -> str:
    """Hash everything of a data set that models see.

    Optional fields that are absent (at their default) do not count, so that a field added to a data
    set later changes no fingerprint.

    Returns:
        The first 16 hexadecimal digits of the SHA-256.
    """
    digest = hashlib.sha256(type(data).__name__.encode())
    for item in fields(data):
        value = getattr(data, item.name)
        empty = value is None or value is False or (isinstance(value, tuple) and not value)
        if item.name not in IGNORED and not (empty and item.default is not MISSING):
            digest.update(item.name.encode())
            add_value(digest, value)
    return digest.hexdigest()[:LENGTH]


def add_value(digest: hashlib._Hash, value: object) -> None:
    """Add an array (with its type and shape) or a plain value."""
    if not isinstance(value, np.ndarray):
        digest.update(repr(value).encode())
        return
    digest.update(f"{value.dtype.kind}{value.dtype.itemsize}{value.shape}".encode())
    for piece in chunks(value):
        digest.update(piece.tobytes())
