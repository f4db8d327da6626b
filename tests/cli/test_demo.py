from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Command


@pytest.mark.slow
def test_a_short_demo_twice(sacm: Command):
    done = sacm("demo", "--epochs", 1)
    assert done.code == 0, done.err
    assert "simulated plant" in done.err
    assert "MSE, raw units" in done.out
    assert "Over 3 seeds, guard " in done.out
    assert "report: sacm-demo/report.html" in done.out
    page = Path("sacm-demo/report.html").read_text(encoding="utf-8")
    assert "sacm demo --epochs 1" in page
    assert "What was found and repaired" in page
    runs = {path: path.stat().st_mtime_ns for path in Path("sacm-demo/runs").rglob("*.json")}
    again = sacm("demo", "--epochs", 1, "--json")
    assert again.code == 0, again.err
    record = json.loads(again.out)
    assert (record["strategies"], len(record["seeds"])) == (["raw", "guard"], 3)
    assert {path: path.stat().st_mtime_ns for path in runs} == runs


def test_a_folder_that_cannot_be_made(sacm: Command):
    Path("taken").write_text("", encoding="utf-8")
    done = sacm("demo", "--folder", "taken/inside")
    assert done.code == 2
    assert "taken/inside/runs cannot be made: Not a directory" in done.err
    assert sacm("demo", "--epochs", 0).code == 2
