"""Rules are obeyed exactly; malformed files are refused with line and key."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import sacm
from sacm.errors import ArgumentError
from sacm.quality.guard import Guard
from sacm.quality.rules import Rules, learnt_rules, read_kept
from tests.quality import tables

HOURS = pd.date_range("2024-01-01", periods=1000, freq="h")


def frame(seed: int = 0) -> pd.DataFrame:
    """Two temperatures and a flow, every hour."""
    values = tables.healthy(1000, 3, seed)
    return pd.DataFrame(values, columns=["temp_in", "temp_out", "flow"], index=HOURS)


def rule_rows(quality: Any, channel: str, rule: str) -> list[int]:
    """Rows of a channel that an event gives to a rule."""
    return [
        row
        for event in quality.events
        if event.channel == channel and event.rule == rule
        for row in range(event.first, event.last + 1)
    ]


def test_a_range_is_obeyed_exactly() -> None:
    table = frame()
    quality = sacm.inspect(table, rules={"temp_in": {"range": [-0.8, 0.9]}})
    values = table["temp_in"].to_numpy()
    expected = np.flatnonzero((values < -0.8) | (values > 0.9))
    assert rule_rows(quality, "temp_in", "range") == expected.tolist()
    assert (quality.grades[expected, 0] == 2).all()
    assert not rule_rows(quality, "temp_out", "range")
    half_open = sacm.inspect(table, rules={"flow": {"range": [None, 0.5]}})
    assert rule_rows(half_open, "flow", "range") == np.flatnonzero(table["flow"] > 0.5).tolist()


def test_the_largest_change_is_by_time_and_from_the_last_accepted_value() -> None:
    table = frame()
    table.iloc[500, 0] += 50
    table.iloc[600:604, 0] += 50
    quality = sacm.inspect(table, rules={"temp_in": {"max_change": "2/h"}})
    assert rule_rows(quality, "temp_in", "max_change") == [500, 600, 601, 602, 603]
    by_row = sacm.inspect(table.reset_index(drop=True), rules={"temp_in": {"max_change": "2/row"}})
    np.testing.assert_array_equal(quality.flags, by_row.flags)
    per_minute = sacm.inspect(table, rules={"temp_in": {"max_change": "0.0334/min"}})
    np.testing.assert_array_equal(quality.flags, per_minute.flags)


def test_codes_rests_and_maintenance() -> None:
    table = frame()
    table.iloc[[10, 20], 0] = 77.0
    table.iloc[100:108, 1] = table.iloc[100, 1]
    table.iloc[200:212, 1] = table.iloc[200, 1]
    rules = {
        "temp_in": {"codes": 77, "maintenance": [["2024-01-03 00:00", "2024-01-03 05:00"]]},
        "temp_out": {"longest_rest": "10 h"},
    }
    quality = sacm.inspect(table, rules=rules)
    assert rule_rows(quality, "temp_in", "codes") == [10, 20]
    assert rule_rows(quality, "temp_in", "maintenance") == list(range(48, 54))
    assert rule_rows(quality, "temp_out", "longest_rest") == list(range(200, 212))
    stuck = quality.kinds.index("stuck")
    assert np.flatnonzero(quality.flags[:, 1] == stuck).tolist() == list(range(200, 212))
    assert np.isfinite(quality.values).all()


def test_a_channel_fails_with_those_that_it_needs() -> None:
    table = frame()
    table.iloc[300:303, 0] = 50.0
    table.iloc[400, 0] = np.nan
    rules = {"temp_in": {"range": [-5, 5]}, "all": {"needs": ["temp_in"]}}
    quality = sacm.inspect(table, rules=rules)
    for channel in (1, 2):
        assert rule_rows(quality, quality.recording.columns[channel], "needs") == [300, 301, 302]
    assert not quality.grades[400, 1:].any()  # a gap says nothing about other channels
    assert rule_rows(quality, "temp_in", "range") == [300, 301, 302]
    assert not rule_rows(quality, "temp_in", "needs")
    by_others = {"temp_in": rules["temp_in"], "temp_out": {"needs": "temp_in"}}
    by_others["flow"] = {"needs": ["*_out"]}
    np.testing.assert_array_equal(sacm.inspect(table, rules=by_others).flags, quality.flags)
    rules["flow"] = {"leave_alone": True}
    assert not sacm.inspect(table, rules=rules).flags[:, 2].any()


def test_what_breaks_a_limit_counts_as_a_large_residual() -> None:
    table = frame()
    noise = np.random.default_rng(0).normal(0, 3, 60)
    table.iloc[300:360, 0] += noise
    free = sacm.inspect(table).flags[300:360, 0] > 0
    ruled = sacm.inspect(table, rules={"temp_in": {"range": [-2.5, 2.5]}}).flags[300:360, 0] > 0
    assert ruled.sum() >= free.sum() > 50


def test_codes_that_are_written_are_the_only_ones() -> None:
    table = frame()
    table.iloc[[10, 20, 30, 40], 0] = 5000.0
    table.iloc[[15, 25, 35], 0] = -999.0
    code = sacm.inspect(table).kinds.index("code")
    assert (sacm.inspect(table).flags[[10, 20, 30, 40, 15, 25, 35], 0] == code).all()
    quality = sacm.inspect(table, rules={"temp_in": {"codes": [-999]}})
    assert np.flatnonzero(quality.flags[:, 0] == code).tolist() == [15, 25, 35]


def test_long_gaps_are_not_repaired() -> None:
    table = frame()
    table.iloc[100:103, 2] = np.nan
    table.iloc[300:320, 2] = np.nan
    quality = sacm.inspect(table, rules={"all": {"longest_gap": "6 h"}})
    repaired = quality.repaired["flow"]
    assert repaired.iloc[100:103].notna().all()
    assert repaired.iloc[300:320].isna().all()
    assert (quality.grades[300:320, 2] == 2).all()
    assert (quality.reliability[300:320, 2] == 0).all()


def test_a_channel_is_left_alone_or_judged_for_some_kinds_only() -> None:
    table = frame()
    table.iloc[50, :2] = 30.0
    table.iloc[200:240, 1] = table.iloc[200, 1]
    table.iloc[300, 0] = np.nan
    rules = {"temp_in": {"leave_alone": True}, "temp_out": {"kinds": ["stuck"]}}
    quality = sacm.inspect(table, rules=rules)
    assert np.flatnonzero(quality.flags[:, 0]).tolist() == [300]
    assert quality.flags[50, 1] == 0
    assert (quality.flags[205:235, 1] > 0).all()


def test_names_win_over_patterns_and_patterns_over_all() -> None:
    rules = Rules.read(
        {
            "temp_in": {"range": [0, 1]},
            "temp_*": {"range": [0, 2], "codes": [5]},
            "all": {"range": [0, 3], "leave_alone": True},
        }
    )
    channels = rules.of_channels(["temp_in", "temp_out", "flow"], None)
    assert [own.range for own in channels] == [(0, 1), (0, 2), (0, 3)]
    assert [own.codes for own in channels] == [(5,), (5,), ()]
    assert all(own.leave_alone for own in channels)


def test_learnt_rules_are_a_rules_file(tmp_path: Path) -> None:
    table = frame()
    table.iloc[[4, 40, 400], 2] = -9999.0
    guard = Guard(window=None)
    text = learnt_rules(guard, guard.fit_inspect(table))
    (tmp_path / "rules.yaml").write_text(text, encoding="utf-8")
    assert "codes: [-9999]    # stand for a gap" in text
    assert "# max_change: " in text
    plain, ruled = sacm.inspect(table), sacm.inspect(table, rules=tmp_path / "rules.yaml")
    np.testing.assert_array_equal(plain.grades, ruled.grades)
    odd = frame().rename(columns={"flow": "a: b #c", "temp_in": "'x'"})
    (tmp_path / "odd.yaml").write_text(
        learnt_rules(guard, guard.fit_inspect(odd)), encoding="utf-8"
    )
    assert len(Rules.read(tmp_path / "odd.yaml").of_channels(list(odd), None)) == 3


def test_kept_events_stay_as_measured(tmp_path: Path) -> None:
    table = frame()
    table.iloc[500, 0] = 30.0
    table.iloc[700, 1] = 30.0
    events = sacm.inspect(table).to_frame()
    events.loc[events["first"] == 501, "keep"] = "yes"
    events.to_csv(tmp_path / "events.csv", index=False)
    for keep in (tmp_path / "events.csv", events):
        quality = sacm.inspect(table, keep=keep)
        assert quality.flags[500, 0] == 0
        assert quality.repaired.iloc[500, 0] == 30.0
        assert quality.flags[700, 1] > 0
    guard = Guard(window=48, keep=events).fit(table)
    assert guard.check(table).flags[500, 0] == 0
    guard.save(tmp_path / "guard.st")
    assert Guard.load(tmp_path / "guard.st").check(table).flags[500, 0] == 0
    assert guard.check(table[400:]).flags[100, 0] == 0  # by time, not by row
    with pytest.raises(ArgumentError, match="keep names the channel 'flow'"):
        sacm.inspect(table.drop(columns="flow"), keep=events.assign(channel="flow", keep="yes"))


MALFORMED: dict[str, tuple[str, str]] = {
    "no mapping": ("- a\n- b\n", "line 1: rules begin with a channel"),
    "a word": ("hello\n", "line 1: rules begin with a channel"),
    "broken YAML": ("flow:\n  range: [1, 2\n", "line 3: "),
    "a tab": ("flow:\n\trange: [1, 2]\n", "line 2: "),
    "no rules below": ("flow:\n", "line 1: flow holds None, not rules"),
    "a number below": ("flow: 3\n", "line 1: flow holds 3"),
    "a list below": ("flow: [1, 2]\n", "line 1: flow holds "),
    "no such rule": ("flow:\n  limit: 3\n", "line 2: flow.limit is no rule"),
    "a wrong letter": ("flow:\n  codes: [1]\n  Range: [1, 2]\n", "line 3: flow.Range is no rule"),
    "a rule twice": ("flow:\n  range: [1, 2]\n  range: [1, 3]\n", "line 3: flow.range is written"),
    "a channel twice": ("flow:\n  codes: 1\nflow:\n  codes: 2\n", "line 3: flow is written twice"),
    "a thirteenth month": (
        "flow:\n  codes: 1\n  maintenance: [[2024-13-01, 2024-14-01]]\n",
        "line 3: flow.maintenance holds what is no value",
    ),
    "a list as a channel": (
        "? [a, b]\n: {codes: 1}\n",
        "line 1: a channel or a rule must be a name",
    ),
    "a list as a rule": ("flow:\n  ? [x]\n  : 3\n", "line 2: a channel or a rule must be a name"),
    "no such channel": ("flw:\n  codes: 1\n", "line 1: flw matches no channel; channels are temp"),
    "a pattern of nothing": ("x*:\n  codes: 1\n", "line 1: x\\* matches no channel"),
    "one limit": ("flow:\n  range: 3\n", "line 2: flow.range must be two numbers"),
    "three limits": ("flow:\n  range: [1, 2, 3]\n", "line 2: flow.range must be two numbers"),
    "limits of text": ("flow:\n  range: [low, high]\n", "line 2: flow.range must be two numbers"),
    "limits upside down": (
        "flow:\n  range: [3, 1]\n",
        "line 2: flow.range must be two numbers such as .* the lower",
    ),
    "equal limits": (
        "flow:\n  range: [1, 1]\n",
        "line 2: flow.range must be two numbers such as .* the lower",
    ),
    "limits of truth": ("flow:\n  range: [true, 3]\n", "line 2: flow.range must be two numbers"),
    "NaN as a limit": ("flow:\n  range: [.nan, 3]\n", "line 2: flow.range must be two numbers"),
    "a bare change": ("flow:\n  max_change: 2\n", "line 2: flow.max_change must look like 2/min"),
    "a change in words": ("flow:\n  max_change: fast\n", "line 2: flow.max_change must look like"),
    "a change of 0": (
        "flow:\n  max_change: 0/min\n",
        "line 2: flow.max_change must look like .* above 0",
    ),
    "a falling change": (
        "flow:\n  max_change: -2/h\n",
        "line 2: flow.max_change must look like .* above 0",
    ),
    "an unknown unit": ("flow:\n  max_change: 2/week\n", "line 2: flow.max_change must look like"),
    "codes of text": ("flow:\n  codes: [bad]\n", "line 2: flow.codes must be numbers"),
    "no codes": ("flow:\n  codes: []\n", "line 2: flow.codes must be numbers"),
    "codes of nothing": ("flow:\n  codes:\n", "line 2: flow.codes must be numbers"),
    "a need of nothing": ("flow:\n  needs: [wind]\n", "line 2: flow.needs names wind, which match"),
    "needs in numbers": ("flow:\n  needs: [3]\n", "line 2: flow.needs must be channels or"),
    "a bare rest": ("flow:\n  longest_rest: 6\n", "line 2: flow.longest_rest must look like 6 h"),
    "a rest of 0": (
        "flow:\n  longest_rest: 0 h\n",
        "line 2: flow.longest_rest must look like .* above 0",
    ),
    "a gap of months": ("flow:\n  longest_gap: 6 months\n", "line 2: flow.longest_gap must look"),
    "a gap below 0": (
        "flow:\n  longest_gap: -6 h\n",
        "line 2: flow.longest_gap must look like .* above 0",
    ),
    "a strange truth": ("flow:\n  leave_alone: 1\n", "line 2: flow.leave_alone must be true or"),
    "no such kind": ("flow:\n  kinds: [spikes]\n", "line 2: flow.kinds must be some of missing"),
    "no kinds": ("flow:\n  kinds: []\n", "line 2: flow.kinds must be some of missing"),
    "one time": ("flow:\n  maintenance: 2024-01-01\n", "line 2: flow.maintenance must be pairs"),
    "three times": (
        "flow:\n  maintenance: [[1, 2, 3]]\n",
        "line 2: flow.maintenance must be pairs",
    ),
    "no times": ("flow:\n  maintenance: [[now, then]]\n", "line 2: flow.maintenance must be pairs"),
    "back in time": (
        "flow:\n  maintenance: [[2024-01-02, 2024-01-01]]\n",
        "line 2: flow.maintenance must be pairs .* the earlier",
    ),
    "a time and a row": (
        "flow:\n  maintenance: [[2024-01-02, 7]]\n",
        "line 2: flow.maintenance must be pairs",
    ),
}
HEAD = "channel,kind,first,last,keep,first_time\n"
BAD_EVENTS: dict[str, tuple[str, str]] = {
    "no keep": ("channel,first,last\na,1,2\n", "line 1: there is no column 'keep'"),
    "no channel": ("first,last,keep\n1,2,yes\n", "line 1: there is no column 'channel'"),
    "nothing": ("", "line 1: there is no column 'channel'"),
    "a strange mark": (HEAD + "flow,spike,1,2,perhaps,\n", "line 2: keep must be yes or empty"),
    "a row in words": (HEAD + "flow,spike,one,2,yes,\n", "line 2: first must be a row number"),
    "a row below 0": (HEAD + "flow,spike,-1,2,yes,\n", "line 2: first must be a row number"),
    "no last row": (HEAD + "flow,spike,1,,yes,\n", "line 2: last must be a row number"),
    "rows backwards": (HEAD + "flow,x,1,2,,\nflow,x,9,2,yes,\n", "line 3: last is before first"),
    "a wrong time": (HEAD + "flow,spike,1,2,yes,soon\n", "line 2: first_time is no time"),
    "times backwards": (
        "channel,first,last,first_time,last_time,keep\nflow,1,2,2024-01-05,2024-01-02,yes\n",
        "line 2: last_time is before first_time",
    ),
    "an empty channel": (HEAD + ",spike,1,2,yes,\n", "line 2: channel is empty"),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_rules_are_refused_with_line_and_key(name: str, tmp_path: Path) -> None:
    text, sentence = MALFORMED[name]
    file = tmp_path / "rules.yaml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ArgumentError, match=sentence) as caught:
        sacm.inspect(frame(), rules=file)
    assert str(caught.value).startswith(str(file))
    assert str(caught.value).endswith(".")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", BAD_EVENTS)
def test_malformed_events_are_refused_with_line_and_column(name: str, tmp_path: Path) -> None:
    text, sentence = BAD_EVENTS[name]
    file = tmp_path / "events.csv"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ArgumentError, match=sentence) as caught:
        read_kept(file)
    assert "\n" not in str(caught.value)


def test_files_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="cannot be read"):
        sacm.inspect(frame(), rules="nothing.yaml")
    with pytest.raises(ArgumentError, match="cannot be read"):
        sacm.inspect(frame(), keep="nothing.csv")
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00\x01")
    with pytest.raises(ArgumentError, match="is no text file"):
        sacm.inspect(frame(), rules=tmp_path / "binary")
    with pytest.raises(ArgumentError, match="is no CSV file"):
        sacm.inspect(frame(), keep=tmp_path / "binary")
    for wrong in (3, [1]):
        with pytest.raises(ArgumentError, match="rules must be a file or a dict"):
            sacm.inspect(frame(), rules=wrong)
        with pytest.raises(ArgumentError, match="keep must be a CSV file or a frame"):
            sacm.inspect(frame(), keep=wrong)
    (tmp_path / "empty.yaml").write_text("# nothing yet\n", encoding="utf-8")
    assert sacm.inspect(frame(), rules=tmp_path / "empty.yaml").flags.shape == (1000, 3)


@pytest.mark.parametrize(
    "rules",
    [
        {"all": {"max_change": "2/h"}},
        {"all": {"longest_rest": "2 h"}},
        {"all": {"longest_gap": "2 h"}},
        {"all": {"maintenance": [["2024-01-01", "2024-01-02"]]}},
    ],
)
def test_rules_by_time_need_times(rules: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError, match="by time, but the rows have no times"):
        sacm.inspect(frame().to_numpy(), rules=rules)
