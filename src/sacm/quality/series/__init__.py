"""Faults in a series of several channels: found, repaired, listed.

detector = SeriesDetector().fit(train)
flags = detector.detect(train)
repairer = SeriesRepairer().fit(train, flags)
repaired, uncertainty = repairer.repair(train, flags)
"""

from __future__ import annotations

from sacm.quality.series.detector import SeriesDetector
from sacm.quality.series.events import Event, events
from sacm.quality.series.reliability import reliability
from sacm.quality.series.repair import Repair, SeriesRepairer

__all__ = ["Event", "Repair", "SeriesDetector", "SeriesRepairer", "events", "reliability"]
