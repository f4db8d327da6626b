"""The results page shows what the kept findings say."""

from __future__ import annotations

import shutil
from pathlib import Path

from sacm.cli.experiments.findings import read_results
from sacm.reports.named.summary import write_summary

ROOT = Path(__file__).parents[2]


def test_the_table_is_the_one_that_the_command_makes(tmp_path: Path) -> None:
    page = ROOT / "docs" / "results.md"
    copy = Path(shutil.copy(page, tmp_path))
    findings = [read_results(path, path.stem) for path in sorted((ROOT / "results").glob("*.json"))]
    write_summary(findings, copy)
    assert copy.read_text(encoding="utf-8") == page.read_text(encoding="utf-8")
