"""Findings of several files are what one file with all of it would hold."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from sacm.errors import DataError
from sacm.files import write_json
from sacm_lab.robust.findings import RobustFindings
from sacm_lab.robust.join import join_findings, read_protocols
from tests.lab.robust.conftest import Carried


def part(found: RobustFindings, strategies: set[str], groups: slice) -> RobustFindings:
    """Findings of some strategies in some groups only."""
    findings = found.findings
    kept = tuple(
        replace(group, runs=tuple(run for run in group.runs if run.strategy in strategies))
        for group in findings.groups[groups]
    )
    named = tuple(name for name in findings.strategies if name in strategies)
    return replace(found, findings=replace(findings, groups=kept, strategies=named))


def test_slices_by_strategy_and_by_place_make_the_whole(
    protocol_t: Carried, protocol_f: Carried, tmp_path: Path
) -> None:
    whole = protocol_t.found
    everything = set(whole.findings.strategies)
    half = everything - {"guard"}
    slices = [
        part(whole, half, slice(0, 1)),
        part(whole, everything - half | {"raw"}, slice(0, 1)),
        part(whole, everything, slice(1, None)),
    ]
    for number, one in enumerate(slices):
        write_json(tmp_path / f"{number}.json", one.to_dict())
    write_json(tmp_path / "f.json", protocol_f.found.to_dict())
    joined, other = read_protocols(tmp_path)
    assert other == protocol_f.found
    ours = {(r.metric, r.strategy, str(r.keys)): r for r in joined.recovered}
    assert ours == {(r.metric, r.strategy, str(r.keys)): r for r in whole.recovered}
    overall = {(one.metric, one.strategy): one.gain for one in joined.findings.overall}
    expected = {(one.metric, one.strategy): one.gain for one in whole.findings.overall}
    assert overall == expected
    assert joined.findings.coverage.done == whole.findings.coverage.done


def test_two_runs_of_the_same_place_are_refused(protocol_t: Carried) -> None:
    found = protocol_t.found
    group = found.findings.groups[0]
    changed = replace(group, runs=(replace(group.runs[0], run="another"), *group.runs[1:]))
    other = replace(found, findings=replace(found.findings, groups=(changed,)))
    with pytest.raises(DataError, match="two files hold different runs of raw"):
        join_findings([found, other])


def test_a_path_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"There is no file or folder .*nowhere"):
        read_protocols(tmp_path / "nowhere")
