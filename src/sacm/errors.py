"""The errors a user can meet. Every message says what was found, where, and what to do."""

from __future__ import annotations

from collections.abc import Iterable


class SACMError(Exception):
    """Root of everything this package raises on purpose."""


class ArgumentError(SACMError, ValueError):
    """A caller passed something that cannot work."""


class DataError(ArgumentError):
    """A file, frame or array holds something that cannot be used; the message names the place."""


class LayoutError(ArgumentError):
    """It is not known which rows of an activation belong to which window."""


class RunError(SACMError):
    """A training run failed, though what was asked for could have worked."""


class SACMWarning(UserWarning):
    """Something worth knowing that does not stop the work."""


MOST_NAMES = 6  # of a list in a sentence


def list_names(names: Iterable[object], most: int = MOST_NAMES) -> str:
    """A list in words, only the first few if there are many."""
    listed = [str(name) for name in names]
    more = f" and {len(listed) - most} more" if len(listed) > most else ""
    return ", ".join(name if len(name) < 60 else f"{name[:57]}…" for name in listed[:most]) + more


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Give ` Did you mean 'sacm'?` with the nearest known name; empty if none is near."""
    from difflib import get_close_matches

    by_spelling = {each.lower(): each for each in known}
    near = get_close_matches(name.lower(), by_spelling, n=1, cutoff=0.5)
    return f" Did you mean {by_spelling[near[0]]!r}?" if near else ""
