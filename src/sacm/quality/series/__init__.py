"""Faults in a series of several channels: found, repaired, listed.

detector = SeriesDetector().fit(train)
flags = detector.detect(train)
"""

from __future__ import annotations

from sacm.quality.series.detector import SeriesDetector

__all__ = ["SeriesDetector"]
