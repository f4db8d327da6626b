from __future__ import annotations

import re

import pytest

from sacm.reports.compare_headline import compare_headline
from sacm.reports.compare_report import compare_report, write_compare_report
from tests.reports.cases import DATA, trained
from tests.reports.reading import Page

pytestmark = pytest.mark.slow

EXAMPLES = {
    "forecasting": "Forecasts",
    "classification": "Confusion matrices",
    "anomaly": "Anomaly scores",
}
# Metrics, training, rates, examples, spectra.
FIGURES = {
    "forecasting": 2 + 2 + 2 + 3 + 2,
    "classification": 2 + 2 + 2 + 2 + 2,
    "anomaly": 4 + 2 + 2 + 2 + 2,
}


@pytest.fixture(scope="module")
def pages(cases):
    return {task: compare_report(case.comparison, data=case.data) for task, case in cases.items()}


@pytest.mark.parametrize("task", DATA)
def test_a_page_has_every_section_and_figure(pages, task):
    page = Page(pages[task])
    assert page.headings == [
        "Results",
        "Every pair",
        "Training",
        "Dropout rates",
        EXAMPLES[task],
        "Spectra",
        "Settings and environment",
        "How to repeat it",
    ]
    assert page.tags.count("svg") == page.tags.count("figure") == FIGURES[task]


@pytest.mark.parametrize("task", DATA)
def test_a_page_needs_nothing_but_itself(pages, task):
    text, page = pages[task], Page(pages[task])
    assert all(reference.startswith(("#", "data:")) for reference in page.references)
    assert "http" not in text
    assert "url(" not in re.sub(r"url\(#[\w-]+\)", "", text)
    assert not {"script", "iframe", "object", "embed", "img", "image"} & set(page.tags)


@pytest.mark.parametrize("task", DATA)
def test_references_inside_drawings_meet_their_own(pages, task):
    page = Page(pages[task])
    assert len(page.ids) == len(set(page.ids))
    inner = {r[1:] for r in page.references if r.startswith("#")}
    inner |= set(re.findall(r"url\(#([\w-]+)\)", pages[task]))
    assert inner <= set(page.ids)


@pytest.mark.parametrize("task", DATA)
def test_a_page_says_what_the_headline_says(pages, cases, task):
    said = "".join(Page(pages[task]).text)
    assert all(sentence in said for sentence in compare_headline(cases[task].comparison))


def test_adjusted_scores_stand_beside_random_ones(pages):
    said = "".join(Page(pages["anomaly"]).text)
    assert "random (raw)" in said
    assert "random (sacm)" in said
    assert "VUS-PR" in said
    assert "Random scores that raise as many alarms reach" in said


def test_names_from_the_data_are_escaped(pages):
    assert "down &amp; out" in pages["classification"]
    assert "down & out" not in pages["classification"]


def test_strategies_without_rates_of_their_own(tmp_path):
    case = trained("forecasting", ["raw", "fixed(p=0.3)", "hard_denoise"], tmp_path)
    page = Page(compare_report(case.comparison, data=case.data, command="sacm demo"))
    said = "".join(page.text)
    assert "No strategy of this comparison gives windows dropout rates of their own." in said
    assert "by a fresh scorer" in said
    assert "sacm demo" in said
    assert "fixed(p=0.3)" in said


def test_the_same_report_twice(pages, cases, tmp_path):
    case = cases["forecasting"]
    path = tmp_path / "deep" / "report.html"
    write_compare_report(case.comparison, path, data=case.data)
    assert path.read_text(encoding="utf-8") == pages["forecasting"]
