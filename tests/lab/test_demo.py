from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Command


@pytest.mark.slow
def test_a_short_demo_twice(sacm: Command):
    done = sacm("demo", "--epochs", 1)
    assert done.code == 0, done.err
    assert "paper's data" in done.err
    assert "simulated plant" in done.err
    assert "sacm: MSE of " in done.out
    assert "guard: MSE of " in done.out
    assert Path("sacm-demo/windows.png").stat().st_size > 10_000
    page = Path("sacm-demo/method.html").read_text(encoding="utf-8")
    assert "raw against sacm" in page
    runs = {path: path.stat().st_mtime_ns for path in Path("sacm-demo/runs").rglob("*.json")}
    again = sacm("demo", "--epochs", 1, "--only", "sensors", "--json")
    assert again.code == 0, again.err
    record = json.loads(again.out)["sensors"]
    assert (record["strategies"], len(record["seeds"])) == (["raw", "guard"], 3)
    assert {path: path.stat().st_mtime_ns for path in runs} == runs


def test_what_the_demo_refuses(sacm: Command):
    Path("taken").write_text("", encoding="utf-8")
    done = sacm("demo", "--folder", "taken/inside")
    assert done.code == 2
    assert "taken/inside cannot be made: Not a directory" in done.err
    assert sacm("demo", "--epochs", 0).code == 2
    assert "use method or sensors" in sacm("demo", "--only", "all").err
