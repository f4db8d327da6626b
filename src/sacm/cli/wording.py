"""Sentences of the library in the words of the command line."""

from __future__ import annotations

import re

from sacm.settings import RunSettings, option_name

# `time=`, `columns='a'` … in sentences that the library writes for Python.
_ARGUMENT = re.compile(rf"\b({'|'.join(RunSettings.model_fields)})=(?=\S?)(['\"\w(.,]|)")


def as_options(text: str) -> str:
    """A sentence with options of the command line where the library names Python's arguments.

    Example:
        >>> as_options("missing='interpolate' fills gaps, columns= takes it in.")
        "--missing 'interpolate' fills gaps, --columns takes it in."
    """

    def spell(found: re.Match[str]) -> str:
        value = found[2]
        known = (value and value[0] in "'\"(") or value[:1].isalnum()
        return option_name(found[1]) + (f" {value}" if known else value)

    return _ARGUMENT.sub(spell, text)
