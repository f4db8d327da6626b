"""Examples in docstrings print what they say.

Modules are found by their text: every module of the package with an example that is not skipped.
"""

from __future__ import annotations

import doctest
import importlib
import re
from pathlib import Path

import pytest
import torch

import sacm

SOURCE = Path(sacm.__file__).parent
RUNNABLE = re.compile(r"^\s*>>>(?!.*\+SKIP)", re.MULTILINE)
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def modules_with_examples() -> list[str]:
    """Dotted names of the modules that hold an example to run."""
    found = []
    for path in sorted(SOURCE.rglob("*.py")):
        if RUNNABLE.search(path.read_text(encoding="utf-8")):
            parts = path.relative_to(SOURCE.parent).with_suffix("").parts
            found.append(".".join(parts[:-1] if parts[-1] == "__init__" else parts))
    return found


# What people call first: each shows how.
EXPECTED = {
    *("sacm.core.config", "sacm.core.spectrum", "sacm.core.mapper", "sacm.core.dropout"),
    *("sacm.core.scorer", "sacm.core.scorer", "sacm.theory"),
    *("sacm.inject.attach", "sacm.inject.sites", "sacm.inject.modulator", "sacm.inject.sites"),
}


def test_what_people_call_first_has_an_example() -> None:
    assert set(modules_with_examples()) >= EXPECTED


@pytest.mark.parametrize("name", modules_with_examples())
def test_examples_of_a_module(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # an example may write files
    torch.manual_seed(0)
    result = doctest.testmod(importlib.import_module(name), optionflags=OPTIONS)
    assert result.failed == 0
    assert result.attempted > 0
