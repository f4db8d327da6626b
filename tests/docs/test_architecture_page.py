"""The architecture page tells the way of a prediction through the files as it is."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pandas as pd

import sacm
from sacm.cli.predict import predict

ROOT = Path(__file__).parents[2]
PACKAGE = Path(sacm.__file__).parent
RUN = ROOT / "tests" / "fixtures" / "finished_runs" / "forecasting"
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
STEPS = re.findall(r"^\| `([\w/]+\.py|backbones/…)` \| `(\w+)` \|", PAGE, flags=re.MULTILINE)


def follow(command: Any) -> list[tuple[str, str]]:
    """File and name of every function of the package that a command enters, in order."""
    entered: list[tuple[str, str]] = []

    def note(frame: FrameType, event: str, _: Any) -> None:
        path = Path(frame.f_code.co_filename)
        if event == "call" and path.is_relative_to(PACKAGE):
            file = path.relative_to(PACKAGE)
            place = "backbones/…" if file.parts[0] == "backbones" else file.as_posix()
            entered.append((place, frame.f_code.co_name))

    sys.setprofile(note)
    try:
        command()
    finally:
        sys.setprofile(None)
    return entered


def test_predict_goes_through_the_files_of_the_page(tmp_path: Path) -> None:
    table = tmp_path / "new.csv"
    pd.DataFrame(np.random.default_rng(0).normal(size=(40, 3))).to_csv(table, index=False)
    entered = follow(lambda: predict(**options(run=RUN, data=str(table), out=tmp_path / "a.csv")))
    assert len(STEPS) == len({file for file, _ in STEPS}) == 12
    places = [entered.index(step) for step in STEPS]
    assert places == sorted(places)


def options(**given: Any) -> dict[str, Any]:
    """Every option of the command, at None where it is not given."""
    names = predict.__signature__.parameters
    defaults = {
        name: None if each.default is each.empty else each.default for name, each in names.items()
    }
    return {**defaults, **given}
