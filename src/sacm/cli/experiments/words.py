"""Lists, times and folders that users name."""

from __future__ import annotations

import re
from pathlib import Path

from sacm.errors import ArgumentError

_UNITS = {"d": 86400, "h": 3600, "m": 60, "s": 1}


def split_names(text: str) -> tuple[str, ...]:
    """`a,b` as names."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


def duration(text: str) -> float:
    """`2h`, `90m` or `1h30m` in seconds."""
    parts = re.fullmatch(r"(?:(\d+(?:\.\d+)?[dhms]))+", text.strip())
    if parts is None:
        raise ArgumentError(f"--budget {text!r}: expected a time such as 2h, 90m or 1h30m.")
    found = re.findall(r"(\d+(?:\.\d+)?)([dhms])", text)
    return sum(float(number) * _UNITS[unit] for number, unit in found)


def format_duration(seconds: float) -> str:
    """A time for a person: `45 s`, `12 min`, `3.5 h`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def check_runs(runs: Path) -> None:
    """Refuse a folder that is not there, or that holds its runs one level further down."""
    if not runs.is_dir():
        raise ArgumentError(f"--runs {runs}: there is no such folder.")
    nested = sorted({path.parent.parent for path in runs.glob("*/*/config.json")})
    if nested and not any(runs.glob("*/config.json")):
        raise ArgumentError(
            f"--runs {runs}: the runs are further down, in {nested[0]}: copy the run folders of "
            "all machines into one folder."
        )
