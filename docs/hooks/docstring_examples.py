"""Docstrings as readers need them: examples as code, and the parameters of estimators.

Griffe shows "Examples:" as code, not "Example:". It reads the source alone, in which estimators do
not list their parameters: these are made from the settings of a run when the class is made.
"""

from __future__ import annotations

import re
from inspect import getdoc
from typing import Any

from griffe import Extension, Object

EXAMPLE = re.compile(r"^(\s*)Example:$", re.MULTILINE)


class DocstringExamples(Extension):
    """Loaded by mkdocstrings."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Called for every module, class, function and attribute."""
        if obj.docstring is None:
            return
        if obj.name in ("Forecaster", "Classifier", "AnomalyDetector"):
            import sacm

            obj.docstring.value = getdoc(getattr(sacm, obj.name)) or ""
        obj.docstring.value = EXAMPLE.sub(r"\1Examples:", obj.docstring.value)
