"""The recovered share, against numbers made by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sacm.experiments.named.findings import Group, RunFinding
from sacm_lab.robust.recovered import Recovered, recovered_shares
from tests.lab.robust.conftest import Carried


def group(seed: int, **errors: float) -> Group:
    keys = {"data": "D", "backbone": "B", "contamination": "mix(0.3)", "seed": seed}
    named = {"raw_on_clean": "raw on clean"}
    runs = [
        RunFinding(named.get(name, name), "done", values={"mse": value})
        for name, value in errors.items()
    ]
    return Group(keys, "small", tuple(runs))


def test_the_share_is_that_of_the_means_over_seeds(protocol_t: Carried) -> None:
    groups = (
        group(1, raw=2.0, raw_on_clean=1.0, guard=1.2, sacm=2.1),
        group(2, raw=2.2, raw_on_clean=1.2, guard=1.2, sacm=2.3),
        group(3, raw=2.4, raw_on_clean=1.1, guard=1.4, sacm=2.4),
    )
    found = replace(protocol_t.found.findings, groups=groups, metrics=("mse",))
    shares = {(one.strategy, bool(one.keys)): one for one in recovered_shares(found)}
    guard = shares["guard", True]
    assert guard.share == pytest.approx((6.6 - 3.8) / (6.6 - 3.3))
    assert guard.lost == pytest.approx(1.0)
    assert guard.low < guard.share < guard.high <= 1
    assert guard.p_value < 0.05
    assert shares["sacm", True].share < 0
    assert shares["guard", False].share == pytest.approx(guard.share)
    assert shares["oracle flags", True].n == 0


def test_where_nothing_was_lost_there_is_no_share(protocol_t: Carried) -> None:
    groups = (group(1, raw=1.0, raw_on_clean=1.1, guard=0.9),)
    found = replace(protocol_t.found.findings, groups=groups, metrics=("mse",))
    assert all(one.share is None for one in recovered_shares(found))


def test_a_place_that_loses_next_to_nothing_counts_for_next_to_nothing(protocol_t: Carried) -> None:
    here = group(1, raw=2.0, raw_on_clean=1.0, guard=1.1)
    there = group(1, raw=1.01, raw_on_clean=1.0, guard=1.02)
    other = replace(there, keys={**there.keys, "data": "E"})
    found = replace(protocol_t.found.findings, groups=(here, other), metrics=("mse",))
    (whole,) = (r for r in recovered_shares(found) if not r.keys and r.strategy == "guard")
    assert whole.n == 2
    assert whole.share == pytest.approx((0.9 - 0.01) / (1.0 + 0.01))


@pytest.mark.parametrize(
    ("lost", "low", "high", "stated"),
    [
        (0.2, 0.4, 0.9, True),
        (0.2, None, None, True),  # one seed has no interval
        (0.01, 0.4, 0.9, False),  # of next to nothing
        (0.2, -0.5, 60.0, False),  # anything between nothing and sixty times the loss
        (None, None, None, False),
    ],
)
def test_a_share_is_stated_where_it_says_something(
    lost: float | None, low: float | None, high: float | None, stated: bool
) -> None:
    one = Recovered({}, "mse", "guard", 3, lost, 0.6, low, high)
    assert one.clear_share == (0.6 if stated else None)
