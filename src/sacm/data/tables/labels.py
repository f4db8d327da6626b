"""Find the columns that label rows as normal or not: they are never channels by themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sacm.data.tables.columns import check_present

if TYPE_CHECKING:
    import pandas as pd

LABEL_NAMES = ("label", "labels", "anomaly", "is_anomaly", "attack")


class Labels(NamedTuple):
    """The column of labels, if there is one, and other columns that look like labels."""

    column: str | None
    others: tuple[str, ...] = ()


def find_labels(frame: pd.DataFrame, label: str | None, where: str) -> Labels:
    """Find columns of labels by name; `label` names the one to use."""
    found = [str(name) for name in frame.columns if str(name).lower() in LABEL_NAMES]
    if label is not None:
        check_present(frame, [label], where)
    chosen = label or next(iter(found), None)
    return Labels(chosen, tuple(name for name in found if name != chosen))
