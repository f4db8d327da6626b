"""Show the section "Example:" of docstrings as code, as Griffe does with "Examples:"."""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object

EXAMPLE = re.compile(r"^(\s*)Example:$", re.MULTILINE)


class DocstringExamples(Extension):
    """Loaded by mkdocstrings."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Called for every module, class, function and attribute."""
        if obj.docstring is not None:
            obj.docstring.value = EXAMPLE.sub(r"\1Examples:", obj.docstring.value)
