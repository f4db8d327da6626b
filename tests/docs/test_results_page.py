"""The tables of the results page are those that the commands make from the kept results."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from sacm_lab.paper import commands as paper
from sacm_lab.robust import commands as robust

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "results.md"


@pytest.mark.parametrize(
    ("summary", "results"),
    [(paper.summary, ROOT / "results"), (robust.summary, ROOT / "results" / "robust")],
    ids=["paper", "robust"],
)
def test_a_command_changes_nothing_on_the_page(
    summary: Callable[..., None], results: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "results.md"
    shutil.copy(PAGE, copy)
    summary(results=results, into=copy)
    assert copy.read_text(encoding="utf-8") == PAGE.read_text(encoding="utf-8")
