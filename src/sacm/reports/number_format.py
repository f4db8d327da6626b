"""Numbers as text, the same everywhere."""

from __future__ import annotations

import math

from sacm.experiments.statistics import ConfidenceInterval, PairedTest, Summary, WinTieLoss

UNDEFINED = "–"


def number(value: float | None, *, digits: int = 4) -> str:
    """A few significant digits."""
    if value is None:
        return UNDEFINED
    if 10**digits <= abs(value) < 1e6:
        return _signed(f"{value:.0f}")
    text = f"{value:#.{digits}g}".rstrip(".")
    return _signed(f"{value:.{digits - 1}e}" if "e" in text else text)


def mean_and_spread(summary: Summary | None, *, digits: int = 4) -> str:
    """`mean ± sample deviation`, both with the decimals of the mean."""
    if summary is None:
        return UNDEFINED
    mean = number(summary.mean, digits=digits)
    if summary.std is None:
        return mean
    if "e" in mean:  # one power of ten for both
        power = math.floor(math.log10(abs(summary.mean)))
        scaled = Summary(summary.n, summary.mean / 10**power, summary.std / 10**power)
        return f"({mean_and_spread(scaled, digits=digits)})e{power}"
    return f"{mean} ± {summary.std:.{decimals(mean)}f}"


def decimals(text: str) -> int:
    """How many digits follow the point."""
    return len(text.partition(".")[2])


def percent(value: float | None) -> str:
    """A signed relative change."""
    return UNDEFINED if value is None else _signed(f"{_rounded(value, 1):+.1f} %")


def interval(found: ConfidenceInterval | None) -> str:
    """Both ends of an interval of percentages."""
    if found is None or found.low is None or found.high is None:
        return UNDEFINED
    low, high = _rounded(found.low, 1), _rounded(found.high, 1)
    return _signed(f"{low:+.1f} … {high:+.1f}")


def probability(value: float | None) -> str:
    """Three decimals are enough to decide by."""
    if value is None:
        return UNDEFINED
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def p_value(test: PairedTest) -> str:
    """The p-value of a test."""
    return probability(test.p_value)


def p_equals(value: float | None) -> str:
    """`p = 0.012`, in a sentence."""
    return f"p = {probability(value)}".replace("= <", "< ")


def format_record(found: WinTieLoss) -> str:
    """`wins/ties/losses`."""
    return f"{found.wins}/{found.ties}/{found.losses}"


def format_difference(value: float, *, share: bool, like: float) -> str:
    """A signed absolute change, to the decimals of a value `like`; percentage points for shares."""
    if share:
        return _signed(f"{_rounded(100 * value, 2):+.2f} pp")
    text = number(like)
    if "e" in text:
        return _signed(f"{value:+.3e}")
    places = decimals(text)
    return _signed(f"{_rounded(value, places):+.{places}f}")


def count(number_of: int, what: str) -> str:
    """`1 seed`, `3 seeds`."""
    return f"{number_of} {what}" if number_of == 1 else f"{number_of} {what}s"


def _rounded(value: float, places: int) -> float:
    return round(value, places) + 0.0  # what rounds to zero has no sign left


def _signed(text: str) -> str:
    return text.replace("-", "−")
