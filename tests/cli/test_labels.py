"""`sacm labels`: wrong labels in a file of cases."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd

from tests.cli.conftest import Command

WRONG = [3, 40]


def write_cases(path: Path) -> None:
    """Sixty slow and fast waves in a training and a test part, two of them with a wrong label."""
    codes = np.arange(60) % 2
    X = np.sin((1 + 3 * codes[:, None, None]) * np.linspace(0, 6, 40)).astype(np.float32)
    X += 0.05 * np.random.default_rng(0).normal(size=X.shape).astype(np.float32)
    y = np.array(["slow", "fast"])[codes]
    y[WRONG] = np.array(["slow", "fast"])[1 - codes[WRONG]]
    np.savez(path, X_train=X[:30], y_train=y[:30], X_test=X[30:], y_test=y[30:])


def test_wrong_labels_are_listed_drawn_and_kept(sacm: Command) -> None:
    write_cases(Path("cases.npz"))
    done = sacm("labels", "cases.npz", "--out", "page.html", "--flags", "cases.csv")
    assert done.code == 0, done.err
    assert "2 of 60 labels are flagged" in done.out
    assert "Case 40: given fast, suggested slow" in Path("page.html").read_text()
    table = pd.read_csv("cases.csv")
    assert sorted(table.loc[table["flagged"], "case"]) == WRONG
    table["keep"] = np.where(table["case"] == 40, "yes", None)
    table.to_csv("cases.csv", index=False)
    again = json.loads(sacm("quality", "cases.npz", "--keep", "cases.csv", "--json").out)
    assert [each["case"] for each in again["suspicious"] if each["flagged"]] == [3]


def test_a_table_that_says_nothing_of_cases_is_refused(sacm: Command) -> None:
    write_cases(Path("cases.npz"))
    Path("keep.csv").write_text("a,b\n1,2\n")
    done = sacm("labels", "cases.npz", "--keep", "keep.csv")
    assert done.code == 2
    assert "needs the columns case and keep" in done.err
