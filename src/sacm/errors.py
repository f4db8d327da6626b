"""The errors a user can meet. Every message says what was found, where, and what to do."""

from __future__ import annotations


class SACMError(Exception):
    """Root of everything this package raises on purpose."""


class ArgumentError(SACMError, ValueError):
    """A caller passed something that cannot work."""


class DataError(ArgumentError):
    """A file, frame or array holds something that cannot be used; the message names the place."""


class LayoutError(ArgumentError):
    """It is not known which rows of an activation belong to which window."""


class SACMWarning(UserWarning):
    """Something worth knowing that does not stop the work."""
