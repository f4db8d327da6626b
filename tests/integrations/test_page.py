"""The code of docs/howto/integrations.md runs, section by section."""

from __future__ import annotations

import logging
import re
from pathlib import Path

import pytest

from .libraries import import_library

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "integrations.md"
BLOCK = re.compile(r"^```python no-run\n(.*?)^```$", re.MULTILINE | re.DOTALL)
OPENING, *SECTIONS = re.split(r"^## ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
WITH_CODE = [section for section in SECTIONS if BLOCK.search(section)]


def code(text: str) -> str:
    return "\n".join(BLOCK.findall(text))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # those of the libraries
@pytest.mark.parametrize("section", WITH_CODE, ids=lambda section: section.partition("\n")[0])
def test_section_runs(section: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in re.findall(r"^(?:from|import) (\w+)", code(section), flags=re.MULTILINE):
        import_library(name)
    monkeypatch.chdir(tmp_path)
    logging.disable(logging.WARNING)
    try:
        exec(compile(code(OPENING) + "\n" + code(section), str(PAGE), "exec"), {})
    finally:
        logging.disable(logging.NOTSET)
