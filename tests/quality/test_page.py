from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import sacm
from sacm.errors import SACMError
from sacm.quality.page import quality_page
from tests.quality import tables
from tests.reports.reading import Page


@pytest.fixture(scope="module")
def text() -> str:
    return quality_page(sacm.inspect(tables.wide()))


def test_the_page_says_what_was_found(text: str) -> None:
    assert "look broken" in text
    for title in ("Overview", "The worst, enlarged", "Shares by channel", "3 events"):
        assert f"<h2>{title}</h2>" in text
    assert "heat, rows 151 to 180: stuck" in text
    assert text.count("<svg") == 1 + 3


def test_the_page_says_what_training_would_see(text: str) -> None:
    quality = sacm.inspect(tables.wide())
    trusted = quality.weights[quality.flags > 0].mean()
    assert "4.6 % of the values would be replaced" in text
    assert f"count {100 * trusted:.0f} % on average" in text


def test_the_page_needs_nothing_but_itself(text: str) -> None:
    assert "http" not in text
    assert not re.findall(r"(?:src|href)\s*=\s*[\"'](?!#|data:)", text)
    ids = Page(text).ids
    assert len(ids) == len(set(ids)) > 0


def test_healthy_data_have_a_page_too() -> None:
    text = quality_page(sacm.inspect(np.zeros((100, 1))))
    assert "nothing broken was found" in text
    assert "Nothing would change" in text
    assert "The worst" not in text


def test_names_cannot_bring_in_markup(tmp_path: Path) -> None:
    frame = tables.wide().rename(columns={"load": "<script>alert(1)</script>"})
    sacm.inspect(frame).report(tmp_path / "new" / "q.html")
    text = (tmp_path / "new" / "q.html").read_text(encoding="utf-8")
    assert "<script>" not in text
    assert "&lt;script&gt;" in text


def test_a_page_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SACMError, match="cannot be written to"):
        sacm.inspect(np.zeros((100, 1))).report(tmp_path / "file" / "q.html")
    with pytest.raises(SACMError, match="is a folder"):
        sacm.inspect(np.zeros((100, 1))).report(tmp_path)
