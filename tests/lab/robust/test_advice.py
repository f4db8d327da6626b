"""Which strategy when, against numbers made by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sacm.experiments.named.findings import Group, RunFinding
from sacm_lab.robust.advice import Situation, advice_table, advise
from sacm_lab.robust.findings import RobustFindings
from tests.lab.robust.conftest import Carried

SEEDS = 8


def faults(carried: Carried, **stuck: float) -> RobustFindings:
    """Eight seeds of F: clean error 1 for everybody, these degradations under stuck sensors."""
    groups = []
    for seed in range(SEEDS):
        runs = tuple(
            RunFinding(
                name,
                "done",
                values={
                    "clean_mse": 1.0,
                    "degradation_stuck_sensor": value + 0.01 * seed,
                    "train_seconds": 2.0 if name == "raw" else 6.0,
                },
            )
            for name, value in stuck.items()
        )
        groups.append(Group({"data": "D", "backbone": "B", "seed": seed}, "small", runs))
    findings = replace(
        carried.found.findings, groups=tuple(groups), strategies=tuple(stuck), baseline="raw"
    )
    return RobustFindings(findings, ())


def test_the_best_strategy_stands_first_with_its_gain_and_cost(protocol_f: Carried) -> None:
    found = faults(protocol_f, raw=1.3, guard=1.04, sacm=1.35)
    best, last = advise(Situation("stuck", "F", "stuck_sensor"), [found])
    expected = [100 * 0.26 / (1.3 + 0.01 * seed) for seed in range(SEEDS)]
    assert best.strategy == "guard"
    assert best.gain == pytest.approx(sum(expected) / SEEDS)
    assert best.cost == pytest.approx(3.0)
    assert best.p_value == pytest.approx(2 * 2 / 2**SEEDS)  # exact, two strategies corrected
    assert last.gain < 0


def test_where_nothing_helps_the_table_says_so(protocol_f: Carried) -> None:
    table = advice_table([faults(protocol_f, raw=1.3, sacm=1.35)])
    rows = {row.cells[0]: row.cells for row in table.rows}
    assert rows["stuck sensors at prediction"][1] == "nothing that was tried helps"
    assert "wrong labels" not in rows  # was not measured


def test_a_few_pairs_say_neither_that_something_helps_nor_that_nothing_does(
    protocol_f: Carried,
) -> None:
    found = faults(protocol_f, raw=1.3, guard=1.04)
    few = replace(found.findings, groups=found.findings.groups[:4])
    table = advice_table([RobustFindings(few, ())])
    rows = {row.cells[0]: row.cells for row in table.rows}
    assert rows["stuck sensors at prediction"][1] == "too few pairs to tell"


def test_a_strategy_that_was_tried_in_fewer_places_is_no_advice(protocol_f: Carried) -> None:
    found = faults(protocol_f, raw=1.3, guard=1.04, sacm=1.0)
    groups = [
        replace(group, runs=group.runs[:2]) if number < 2 else group
        for number, group in enumerate(found.findings.groups)
    ]
    found = RobustFindings(replace(found.findings, groups=tuple(groups)), ())
    tried = advise(Situation("stuck", "F", "stuck_sensor"), [found])
    assert [(one.strategy, one.n) for one in tried] == [("guard", SEEDS), ("sacm", SEEDS - 2)]
    row = next(row for row in advice_table([found]).rows if row.cells[0].startswith("stuck"))
    assert row.cells[1] == "guard"
    assert row.cells[-1].endswith(f"(n {SEEDS - 2})")


def test_what_helps_only_where_it_was_chosen_is_no_advice(protocol_f: Carried) -> None:
    def group(data: str, seed: int, **values: float) -> Group:
        runs = tuple(
            RunFinding(name, "done", values={"vus_pr": value + 0.001 * seed})
            for name, value in values.items()
        )
        return Group({"data": data, "backbone": "B", "seed": seed}, "small", runs)

    groups = [
        *(group("SMD@machine-1-1", seed, raw=0.5, guard=0.7, trim=0.51) for seed in range(12)),
        *(group("MSL", seed, raw=0.5, guard=0.49, trim=0.52) for seed in range(4)),
    ]
    findings = replace(
        protocol_f.found.findings,
        name="C",
        metrics=("vus_pr",),
        groups=tuple(groups),
        strategies=("raw", "guard", "trim"),
    )
    found = [RobustFindings(findings, ())]
    guard, trim = advise(Situation("anomalies", "C"), found)
    assert (guard.strategy, trim.strategy) == ("guard", "trim")
    assert guard.p_value is not None
    assert guard.p_value < 0.05
    assert guard.confirmed == pytest.approx(-1.0)
    assert not guard.certain
    (row,) = advice_table(found).rows
    assert row.cells[1] == "trim"
    assert row.cells[-1].startswith("guard +14.")
