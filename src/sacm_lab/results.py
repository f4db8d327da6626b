"""Result files, and rows that are derived from the runs of a grid.

A result file is CSV of the frame of `sacm_lab.runs`, one row a run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from sacm.errors import DataError
from sacm.experiments.gains import CELL
from sacm.files import write_atomically
from sacm.strategies.race import choose_winner
from sacm_lab.gains import check_unique
from sacm_lab.runs import FIRST, KEYS, OUTCOMES, records, setting_defaults, tidy

BEST_FIXED = "best_fixed"  # the strategy of a row that is chosen among fixed rates


def read_results(paths: Iterable[Path]) -> pd.DataFrame:
    """Read result files, and all of the folders among them, as one frame; a run counts once."""
    frames = []
    for path in paths:
        files = sorted(path.glob("*.csv")) if path.is_dir() else [path]
        frames += [frame for frame in map(_read_file, files) if frame is not None]
        if not path.is_dir() and (not files or not path.exists()):
            raise DataError(f"there is no {path}.")
    if not frames:
        raise DataError("no file holds results of runs: make one with `--format csv`.")
    return join_results(*frames)


def join_results(*frames: pd.DataFrame) -> pd.DataFrame:
    """Several frames as one; of the same run, a finished row stands for one that is not."""
    whole = pd.concat([frame for frame in frames if len(frame)] or frames[:1], ignore_index=True)
    finished = whole[whole["state"] == "done"]
    for name, rows in finished[finished["run"].duplicated(keep=False)].groupby("run"):
        for metric in tested_columns(rows):
            if rows[metric].nunique() > 1:
                values = rows[metric].unique()
                raise DataError(f"two rows of {name} differ: {metric} {values[0]} and {values[1]}.")
    order = whole["state"].ne("done").sort_values(kind="stable").index
    kept = whole.loc[order].drop_duplicates("run").sort_index()
    return tidy(records(kept))


def write_results(frame: pd.DataFrame, path: Path) -> None:
    """Write a frame as CSV; the file is whole or not there."""
    text = results_csv(frame)
    write_atomically(path, lambda file: file.write_text(text, encoding="utf-8"))


def results_csv(frame: pd.DataFrame) -> str:
    """A frame as CSV; whole numbers stay whole beside missing ones."""
    with np.errstate(invalid="ignore"):  # pandas also tries floats that no integer can hold
        typed = frame.convert_dtypes(convert_string=False)
    return str(typed.to_csv(index=False, lineterminator="\n"))


def tested_columns(frame: pd.DataFrame) -> list[str]:
    """Columns of test results."""
    other = {*FIRST, *setting_defaults(every=True), *OUTCOMES, "commit", "threads", "chosen"}
    numeric = frame.select_dtypes("number").columns
    return [name for name in numeric if name not in other]


def _read_file(path: Path) -> pd.DataFrame | None:
    """The frame of a file; None of a table of something else."""
    try:
        frame = pd.read_csv(path, float_precision="round_trip", keep_default_na=True)
    except FileNotFoundError:
        raise DataError(f"there is no {path}.") from None
    except (OSError, UnicodeDecodeError, pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        raise DataError(f"{path} cannot be read: {error}.") from None
    return frame if {"run", "state", *KEYS} <= set(frame.columns) else None


def add_best_fixed(frame: pd.DataFrame, *, cell: Sequence[str] = CELL) -> pd.DataFrame:
    """Add a row `best_fixed` where every fixed rate of the frame was run: what validation chooses.

    Ties go to the smaller rate. The column `chosen` names the rate.
    """
    done = frame[frame["state"] == "done"]
    fixed = done[done["strategy"].str.startswith("fixed(")]
    rates = fixed["strategy"].nunique()
    rows = []
    for _, part in _cells(fixed, cell):
        if len(part) == rates > 1 and _is_complete(part, "validation"):
            ordered = part.sort_values("strategy", kind="stable")
            best = ordered.loc[_best(ordered, "validation")]
            name = f"{best['run']}#{BEST_FIXED}"
            rows.append({**best, "run": name, "strategy": BEST_FIXED, "chosen": best["strategy"]})
    return _with_rows(frame, rows)


def add_race(
    frame: pd.DataFrame,
    arms: tuple[str, str] = ("raw", "sacm"),
    *,
    epochs: int = 4,
    cell: Sequence[str] = CELL,
) -> pd.DataFrame:
    """Add a row `race(a,b)` for every pair of arms: the result of the arm that wins the race.

    The mean validation of epochs 2 to 4 decides. `chosen` names the winner; `seconds` are
    its own and those of the first `epochs` epochs of the other; `cost` is their ratio to its own.
    """
    done = frame[(frame["state"] == "done") & frame["strategy"].isin(arms)]
    rows = []
    for _, part in _cells(done, cell):
        if set(part["strategy"]) == set(arms) and _is_complete(part, "early_validation"):
            ordered = part.sort_values("strategy", key=lambda names: names.map(arms.index))
            scores = dict(zip(ordered["strategy"], ordered["early_validation"], strict=True))
            select = ordered["select"].iloc[0] if "select" in ordered else ""
            chosen = choose_winner(scores, select=select)
            winner = ordered[ordered["strategy"] == chosen].iloc[0]
            loser = ordered[ordered["strategy"] != winner["strategy"]].iloc[0]
            seconds = winner["seconds"] + epochs * loser["seconds_per_epoch"]
            rows.append(
                {
                    **winner,
                    "run": f"{winner['run']}#race",
                    "strategy": f"race({','.join(arms)})",
                    "chosen": winner["strategy"],
                    "seconds": seconds,
                    "cost": seconds / winner["seconds"],
                }
            )
    return _with_rows(frame, rows)


def _cells(frame: pd.DataFrame, cell: Sequence[str]) -> Iterator[tuple[Any, pd.DataFrame]]:
    keys = [*(name for name in cell if name in frame), "seed"]
    check_unique(frame, [*keys, "strategy"])
    return iter(frame.groupby(keys, sort=False, dropna=False))


def _is_complete(part: pd.DataFrame, column: str) -> bool:
    return column in part and bool(part[column].notna().all())


def _best(part: pd.DataFrame, column: str) -> Any:
    """The index of the best validation; higher is better for accuracy."""
    highest = "select" in part and (part["select"] == "accuracy").all()
    return part[column].idxmax() if highest else part[column].idxmin()


def _with_rows(frame: pd.DataFrame, rows: list[dict[str, Any]]) -> pd.DataFrame:
    if not rows:
        return frame
    return pd.concat([frame, pd.DataFrame(rows)], ignore_index=True)
