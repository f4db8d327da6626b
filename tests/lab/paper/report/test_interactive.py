from __future__ import annotations

import json
import math
import re
from dataclasses import replace

from hypothesis import HealthCheck, given, settings

from sacm.experiments.named.findings import EpochFinding, Group, RunFinding
from sacm.reports.named.interactive import interactive_page
from sacm.reports.named.page_data import pack_findings
from tests.lab.paper.report.cases import REASON, any_findings, hand_made, with_ranks
from tests.reports.reading import Page

ANY = settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
DATA = re.compile(r'<script type="application/json" id="data">(.*?)</script>', re.DOTALL)


def plain(value):
    """Tuples as lists, as JSON has them."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list | tuple) else value


def loads(text):
    (found,) = DATA.findall(text)
    return json.loads(found)


@ANY
@given(any_findings())
def test_any_findings_make_a_whole_page(findings):
    text = interactive_page(findings)
    page = Page(text)
    assert page.tags.count("script") == 2
    assert page.references == ["data:,"]
    assert len(page.ids) == len(set(page.ids))
    found = loads(text)["findings"]
    expected = plain(findings.to_dict())
    for side in (found, expected):
        for group in side["groups"]:
            for run in group["runs"]:
                run.pop("history")
    assert found == expected


def test_nothing_comes_from_elsewhere():
    for findings in (hand_made(), with_ranks()):
        text = interactive_page(findings)
        assert not re.search(r"https?:|@import|\bsrc\s*=|fetch\(|XMLHttpRequest|import\(", text)
        assert all(found.startswith(("#", "data:")) for found in re.findall(r"url\(([^)]*)", text))


def test_a_reason_cannot_end_the_script():
    text = interactive_page(hand_made())
    assert "alert(" in text
    assert text.count("</script>") == 2
    runs = [run for group in loads(text)["findings"]["groups"] for run in group["runs"]]
    assert REASON in [run["reason"] for run in runs]


def test_curves_keep_five_digits_and_columns():
    run = pack_findings(hand_made())["findings"]["groups"][0]["runs"][0]
    assert run["history"]["epoch"] == [1, 2]
    assert run["history"]["train_loss"] == [0.91235, 0.7]
    assert run["history"]["rate_std"] == [0.05, 0.06]


def test_what_json_does_not_have_becomes_nothing():
    found = hand_made()
    burst = RunFinding("raw", "failed", history=(EpochFinding(1, math.nan, math.inf, None, None),))
    found = replace(found, groups=(*found.groups, Group({}, "paper", (burst,))))
    history = loads(interactive_page(found))["findings"]["groups"][-1]["runs"][0]["history"]
    assert (history["train_loss"], history["validation"]) == ([None], [None])


def test_the_tables_need_no_script():
    page = Page(re.sub(r"<script.*?</script>", "", interactive_page(hand_made()), flags=re.DOTALL))
    assert page.headings == [
        "Gains",
        "Overall",
        "Every row",
        "What was run",
        "What departs from the paper",
    ]
    text = " ".join(page.text)
    assert "+8.3 %" in text
    assert "Two horizons instead of four." in text
    assert REASON in text


def test_three_strategies_have_ranks():
    page = Page(interactive_page(with_ranks()))
    assert "Ranks of the strategies" in page.headings
    assert any("sacm" in text and "1.00" in text for text in page.text)
