"""Numbers as text, the same everywhere."""

from __future__ import annotations

from sacm.experiments.statistics import ConfidenceInterval, PairedTest, Summary, WinTieLoss

NOTHING = "–"


def number(value: float | None) -> str:
    """Four significant digits."""
    if value is None:
        return NOTHING
    text = f"{value:#.4g}".rstrip(".")
    return f"{value:.3e}" if "e" in text else text


def mean_and_spread(summary: Summary | None) -> str:
    """`mean ± sample deviation`, with the decimals of the mean."""
    if summary is None:
        return NOTHING
    mean = number(summary.mean)
    if summary.std is None:
        return mean
    decimals = len(mean.partition(".")[2]) if "e" not in mean else None
    spread = f"{summary.std:.{decimals}f}" if decimals is not None else number(summary.std)
    return f"{mean} ± {spread}"


def percent(value: float | None) -> str:
    """A signed relative change."""
    return NOTHING if value is None else f"{value:+.1f} %"


def interval(found: ConfidenceInterval | None) -> str:
    """Both ends of an interval of percentages."""
    if found is None or found.low is None or found.high is None:
        return NOTHING
    return f"{found.low:+.1f} … {found.high:+.1f}"


def p_value(test: PairedTest) -> str:
    """Three decimals are enough to decide by."""
    if test.p_value is None:
        return NOTHING
    return "<0.001" if test.p_value < 0.001 else f"{test.p_value:.3f}"


def record(found: WinTieLoss) -> str:
    """`wins/ties/losses`."""
    return f"{found.wins}/{found.ties}/{found.losses}"


def difference(value: float, *, share: bool) -> str:
    """A signed absolute change; percentage points for shares."""
    return f"{100 * value:+.2f} pp" if share else f"{value:+.4g}"


def count(number_of: int, what: str) -> str:
    """`1 seed`, `3 seeds`."""
    return f"{number_of} {what}" if number_of == 1 else f"{number_of} {what}s"
