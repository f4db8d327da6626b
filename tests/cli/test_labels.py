"""`sacm quality` of labelled cases: wrong labels in an archive and in a table."""

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
    done = sacm("quality", "cases.npz", "--out", "page.html", "--flags", "cases.csv")
    assert done.code == 0, done.err
    assert "2 of 60 labels are flagged" in done.out
    assert "Case test 10: given fast, suggested slow" in Path("page.html").read_text()
    table = pd.read_csv("cases.csv")
    assert sorted(table.loc[table["flagged"], "case"]) == ["test 10", "train 3"]
    table["keep"] = np.where(table["case"] == "test 10", "yes", None)
    table.to_csv("cases.csv", index=False)
    again = json.loads(sacm("quality", "cases.npz", "--keep", "cases.csv", "--json").out)
    assert [each["case"] for each in again["suspicious"] if each["flagged"]] == ["train 3"]


def test_cases_of_a_table_keep_their_names(sacm: Command) -> None:
    write_cases(Path("cases.npz"))
    with np.load("cases.npz") as archive:
        X = np.concatenate([archive["X_train"], archive["X_test"]])
        y = np.concatenate([archive["y_train"], archive["y_test"]])
    names = [f"patient {i}" for i in range(60)]
    rows = {"who": np.repeat(names, 40), "speed": np.repeat(y, 40), "value": X.reshape(-1)}
    pd.DataFrame(rows).to_csv("long.csv", index=False)
    done = sacm("quality", "long.csv", "--id", "who", "--label", "speed", "--fail-above", "1%")
    assert done.code == 1, done.err
    assert "patient 40  fast" in done.out
    assert "leave --label out to look at the values" in done.err
    assert "3.33% of the labels look wrong, more than --fail-above" in done.err


def test_a_table_that_says_nothing_of_cases_is_refused(sacm: Command) -> None:
    write_cases(Path("cases.npz"))
    Path("keep.csv").write_text("a,b\n1,2\n")
    done = sacm("quality", "cases.npz", "--keep", "keep.csv")
    assert done.code == 2
    assert "needs the columns case and keep" in done.err
    done = sacm("quality", "cases.npz", "--train", "0.5")
    assert done.code == 2
    assert "has labelled cases" in done.err


def test_files_that_cannot_be_read_are_named(sacm: Command) -> None:
    write_cases(Path("cases.npz"))
    done = sacm("quality", "cases.npz", "--keep", "none.csv")
    assert done.code == 2
    assert "none.csv cannot be read: No such file" in done.err
    with np.load("cases.npz") as archive:
        y = archive["y_train"].astype(object)
        y[4] = None
        np.savez("objects.npz", **{**archive, "y_train": y})
    assert "holds an array of Python objects" in sacm("quality", "objects.npz").err


def test_labels_that_cannot_be_judged_have_no_rate(sacm: Command) -> None:
    X = np.random.default_rng(0).normal(size=(30, 1, 20)).astype(np.float32)
    y = np.repeat(["a", "b"], 15)
    np.savez("cases.npz", X_train=X, y_train=y, X_test=X, y_test=y)
    answer = json.loads(sacm("quality", "cases.npz", "--json").out)
    assert answer["noise_rate"] is None
    assert "well enough" in answer["reason"]
