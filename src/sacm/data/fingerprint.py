"""A short name for the exact content of a data set."""

from __future__ import annotations

import hashlib
from dataclasses import fields

import numpy as np

from sacm.data.datasets import AnyData
from sacm.data.scaling import chunks

# Notes describe how the data came here; the same content found elsewhere is the same data.
IGNORED = ("notes",)
LENGTH = 16


def fingerprint(data: AnyData) -> str:
    """The first 16 hexadecimal digits of the SHA-256 of everything that models see."""
    digest = hashlib.sha256(type(data).__name__.encode())
    for item in fields(data):
        if item.name not in IGNORED:
            digest.update(item.name.encode())
            absorb(digest, getattr(data, item.name))
    return digest.hexdigest()[:LENGTH]


def absorb(digest: hashlib._Hash, value: object) -> None:
    """Add an array (with its type and shape) or a plain value."""
    if not isinstance(value, np.ndarray):
        digest.update(repr(value).encode())
        return
    digest.update(f"{value.dtype.kind}{value.dtype.itemsize}{value.shape}".encode())
    for piece in chunks(value):
        digest.update(piece.tobytes())
