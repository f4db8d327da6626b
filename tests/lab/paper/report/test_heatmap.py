from __future__ import annotations

import re
from dataclasses import replace

from sacm.reports.named.heatmap import heatmaps, row_state
from tests.lab.paper.report.cases import hand_made, with_ranks
from tests.reports.reading import Page

CELL = re.compile(
    r'<td class="(\w+)" style="--depth:(\d+)%"><button type="button" data-row="(\d+)" '
    r'aria-label="([^"]*)">([^<]*)(?:<small>([^<]*)</small>)?'
)


def test_a_cell_shows_its_gain_and_what_is_missing():
    cells = CELL.findall(heatmaps(hand_made()))
    assert cells == [
        ("better", "43", "0", "data ILI, backbone PatchTST: +8.3 %, 2 of 2", "+8.3", ""),
        ("better", "50", "2", "data ETTh1, backbone PatchTST: +10.0 %, 1 of 2", "+10.0", "1/2"),
        ("worse", "17", "1", "data ILI, backbone Informer: −3.3 %, 2 of 2", "−3.3", ""),
        ("missing", "0", "3", "data ETTh1, backbone Informer: not run, 0 of 2", "·", ""),
    ]


def test_backbones_go_down_and_the_other_keys_across():
    text = Page(heatmaps(hand_made())).text
    assert text[1:6] == ["backbone \\ data", "ILI", "ETTh1", "PatchTST", "+8.3"]


def test_a_failed_run_is_not_one_that_was_not_made():
    found = hand_made()
    failed = replace(found.rows[2], n=0, gain=None, groups=(5,))
    assert row_state(found, failed) == "failed"
    assert row_state(found, found.rows[3]) == "missing"
    text = heatmaps(replace(found, rows=(failed,)))
    assert CELL.findall(text)[0][:5:4] == ("failed", "✕")


def test_only_the_map_of_the_last_strategy_is_open():
    maps = re.findall(r'data-strategy="(\w+)"( hidden)?', heatmaps(with_ranks()))
    assert maps == [("sacm", ""), ("fixed", " hidden")]


def test_values_without_a_baseline_have_no_colour():
    found = hand_made()
    rows = tuple(replace(row, gain=None) for row in found.rows[:1])
    assert CELL.findall(heatmaps(replace(found, rows=rows)))[0][:2] == ("plain", "0")
