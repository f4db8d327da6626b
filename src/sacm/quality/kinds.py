"""Names of the faults that are told apart; a flag is the position of its name."""

from __future__ import annotations

KINDS = ("good", "missing", "code", "stuck", "spike", "burst", "shift", "range", "clipped")
"""Kind of a value by its flag (`uint8`); 0 is a healthy value."""

GOOD, MISSING, CODE, STUCK, SPIKE, BURST, SHIFT, RANGE, CLIPPED = range(len(KINDS))
