"""Reports of protocols in every format, and the commands."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from sacm.errors import ArgumentError, DataError
from sacm.experiments.named.pairs import pairs, value_of
from sacm.files import write_json
from sacm.reports import number_format
from sacm_lab.paper.published.sensor_faults import sensor_fault_rows
from sacm_lab.robust.default_table import HEADINGS as DEFAULT_HEADINGS
from sacm_lab.robust.default_table import default_table
from sacm_lab.robust.examples import first_raw_run, make_examples
from sacm_lab.robust.fault_places import fault_place_table
from sacm_lab.robust.findings import read_robust_findings
from sacm_lab.robust.headline import robust_headline, summary_lines
from sacm_lab.robust.place_table import guard_sentence, place_table
from sacm_lab.robust.recovered import Recovered
from sacm_lab.robust.render import render_protocol, write_protocol_report
from sacm_lab.robust.summary import BEGIN, END, protocol_summary_table, write_protocol_summary
from sacm_lab.robust.tables import fault_table, published_table
from tests.cli.conftest import Command
from tests.lab.robust.conftest import Carried, sacm_command  # noqa: F401  (a fixture)


@pytest.mark.parametrize("format", ["md", "latex", "csv", "html"])
def test_every_format_names_every_strategy(format: Any, protocol_t: Carried) -> None:
    text = render_protocol(protocol_t.found, format)
    for strategy in protocol_t.experiment.run_rows:
        assert strategy in text
    assert "nan" not in re.findall(r"[a-z]+", text)


def test_the_page_shows_faults_and_one_window_under_each(
    protocol_f: Carried, tmp_path: Path
) -> None:
    run = first_raw_run(protocol_f.groups, protocol_f.folder)
    assert run is not None
    examples = make_examples(run)
    assert len(examples) == 8
    assert all((one.broken != one.clean).any() for one in examples.values())
    write_protocol_report(protocol_f.found, tmp_path / "f.html", format="html", examples=examples)
    text = (tmp_path / "f.html").read_text()
    assert "D stuck_sensor" in text
    assert text.count("<svg") == 2  # gains and examples; two strategies are too few to rank
    assert "missing_data" in text


def test_findings_come_back_from_json(protocol_t: Carried, tmp_path: Path) -> None:
    write_json(tmp_path / "t.json", protocol_t.found.to_dict())
    assert read_robust_findings(tmp_path / "t.json") == protocol_t.found


def test_sentences_say_what_was_run_and_what_is_won_back(protocol_t: Carried) -> None:
    found = protocol_t.found
    assert robust_headline(found)[0] == (
        "Of the 14 runs chosen from the grid's 35 (size: small), 14 are done."
    )
    lost = [replace(one, lost=0.2, share=0.5) for one in found.recovered]
    said = robust_headline(replace(found, recovered=tuple(lost)))
    assert "Broken training data cost raw 20% in MSE" in said[1]
    assert "sacm 50%" in said[1]
    # A share of next to nothing says nothing.
    nothing = [replace(one, lost=0.001, share=50.0) for one in found.recovered]
    said = robust_headline(replace(found, recovered=tuple(nothing)))
    assert not any("won back" in sentence for sentence in said)


def test_the_summary_has_a_line_for_each_strategy_and_goes_into_a_file(
    protocol_t: Carried, protocol_f: Carried, tmp_path: Path
) -> None:
    table = protocol_summary_table([protocol_f.found, protocol_t.found])
    assert len(table.rows) == 2 + 6
    page = tmp_path / "page.md"
    marks = [(BEGIN.format(name), END.format(name)) for name in ("robust", "when", "robust-lines")]
    page.write_text("before\n" + "\n".join(f"{a}\nold\n{b}\nafter\n" for a, b in marks))
    write_protocol_summary([protocol_t.found], page)
    text = page.read_text()
    assert "old" not in text
    assert "| guard |" in text
    assert "- **T**, trained on broken rows" in text
    assert "| training rows broken in places |" in text
    assert text.startswith("before\n")
    page.write_text("no marks")
    with pytest.raises(DataError, match="none of the marks"):
        write_protocol_summary([protocol_t.found], page)


def test_places_have_a_line_each_with_what_is_won_back(protocol_t: Carried) -> None:
    table = place_table(protocol_t.found)
    findings = protocol_t.found.findings
    (row,) = table.rows  # one data set, one network, one fault
    cells = dict(zip(table.headings, row.cells, strict=True))

    def mean(name: str) -> float:
        return float(np.mean([value_of(group, name, "mse") for group in findings.groups]))

    raw, clean, own = mean("raw"), mean("raw on clean"), mean("sacm")
    assert cells["raw"] == number_format.number(raw)
    lost = raw / clean - 1
    assert cells["lost"] == number_format.percent(100 * lost)
    change = 100 * (mean("guard on clean") / clean - 1)
    assert cells["guard on clean"] == number_format.percent(change)
    share = (raw - own) / (raw - clean)
    guard, treated = (
        next(
            one
            for one in protocol_t.found.recovered
            if one.keys and (one.metric, one.strategy) == ("mse", name)
        )
        for name in ("guard", "sacm")
    )
    stated = treated.clear_share is not None
    expected = f"{100 * share:.0f}" if stated else number_format.percent(100 * share * lost)
    assert cells["sacm"] == expected
    assert cells["p of guard"] == number_format.probability(guard.adjusted_p_value)


def test_the_mean_of_places_counts_those_that_lose_and_names_the_worst(
    protocol_t: Carried,
) -> None:
    def place(lost: float, won: float) -> Recovered:
        share = won / lost if lost > 0 else None
        return Recovered({"data": "x"}, "mse", "guard", 3, lost, share, None, None, won=won)

    places = (place(0.2, 0.1), place(0.1, 0.1), place(0.01, 0.3), place(-0.1, -0.007))
    said = guard_sentence(replace(protocol_t.found, recovered=places))
    assert "75% on the mean of the 2 places" in said
    assert "between 50% and 100%" in said
    assert "worse than raw in 1 of 4, by 0.7% at most" in said
    said = guard_sentence(replace(protocol_t.found, recovered=places[:2]))
    assert "nowhere worse than raw." in said
    groups = protocol_t.found.findings.groups
    clean, own = (
        float(np.mean([value_of(group, name, "mse") for group in groups]))
        for name in ("raw on clean", "guard on clean")
    )
    change = number_format.percent(100 * (own / clean - 1))
    assert f"changes the error by {change} on the mean of 1 pairs" in said
    assert said.endswith(f"between {change} and {change}.")


def test_the_default_stands_beside_others_where_it_was_chosen_and_where_not(
    protocol_t: Carried,
) -> None:
    findings = protocol_t.found.findings
    (line,) = default_table([protocol_t.found]).rows  # its data set is in no half
    cells = dict(zip(DEFAULT_HEADINGS, line.cells, strict=True))
    assert (cells["protocol"], cells[""], cells["default"]) == ("T", "confirmed on", "guard")
    values = pairs(findings.groups, "raw", "guard", "mse")
    gains = [100 * (raw - own) / raw for raw, own in zip(*values, strict=True)]
    assert cells["gain"] == number_format.percent(float(np.mean(gains)))
    assert cells["n"] == str(len(gains))
    known = [replace(group, keys={**group.keys, "data": "ILI"}) for group in findings.groups]
    both = replace(findings, groups=(*findings.groups, *known))
    lines = default_table([replace(protocol_t.found, findings=both)]).rows
    assert [line.cells[1] for line in lines] == ["chosen on", "confirmed on"]
    assert lines[0].cells[3:] == lines[1].cells[3:]


def test_faults_have_a_line_for_every_place(protocol_f: Carried) -> None:
    table = fault_place_table(protocol_f.found)
    groups = protocol_f.found.findings.groups
    (row,) = table.rows  # one data set, one network
    cells = dict(zip(table.headings, row.cells, strict=True))
    assert cells["seeds"] == str(len(groups))

    def mean(strategy: str, name: str) -> list[float]:
        return [float(value_of(group, strategy, name) or np.nan) for group in groups]

    for heading, strategy, name in (
        ("sacm", "sacm", "mean_fault_mse"),
        ("clean", "raw + protect", "clean_mse"),
    ):
        raw, own = np.array(mean("raw", name)), np.array(mean(strategy, name))
        assert cells[heading] == number_format.percent(float(np.mean(100 * (raw - own) / raw)))
    worst = [np.mean(mean(one, "worst_degradation")) for one in ("raw", "raw + protect")]
    assert cells["D_w"] == " → ".join(number_format.number(float(one)) for one in worst)


def test_published_rows_are_whole_and_stand_beside_etth1(protocol_f: Carried) -> None:
    rows = sensor_fault_rows()
    assert len(rows) == 7 + 34
    patch = next(row for row in rows if (row.model, row.method) == ("PatchTST", "none"))
    assert patch.degradation == patch.by_fault["stuck_sensor"] == 1.3122
    groups = [
        replace(group, keys={**group.keys, "data": "ETTh1", "backbone": "PatchTST"})
        for group in protocol_f.found.findings.groups
    ]
    table = published_table(replace(protocol_f.found.findings, groups=tuple(groups)))
    assert table.rows[0].cells[:2] == ("PatchTST", "none")
    assert not table.rows[0].quiet


def test_p_values_of_faults_are_corrected_for_the_lines_of_a_figure(protocol_f: Carried) -> None:
    findings = protocol_f.found.findings
    table = fault_table(findings)
    at = table.headings.index("p (t, Holm)")
    raw = np.array([value_of(group, "raw", "mean_fault_mse") for group in findings.groups])
    plain = []
    for strategy in findings.strategies[1:]:
        own = np.array([value_of(group, strategy, "mean_fault_mse") for group in findings.groups])
        plain.append(stats.ttest_1samp((raw - own) / raw, 0).pvalue)
    steps = np.maximum.accumulate(np.sort(plain) * np.arange(len(plain), 0, -1)).clip(max=1)
    expected = dict(zip(np.argsort(plain).tolist(), steps.tolist(), strict=True))
    shown = [row.cells[at] for row in table.rows]
    assert shown == [number_format.probability(expected[line]) for line in range(len(plain))]


def test_the_commands_list_plan_and_report(
    sacm_command: Command,  # noqa: F811  (the fixture)
    protocol_t: Carried,
    tmp_path: Path,
) -> None:
    listed = json.loads(sacm_command("robust", "list", "--json").out)
    assert [one["name"] for one in listed] == ["T", "F", "TF", "N", "C"]
    write_json(tmp_path / "t.json", protocol_t.found.to_dict())
    shown = sacm_command("robust", "report", "T", "--results", "t.json", "--format", "md")
    assert "Recovered share" in shown.out
    assert sacm_command("robust", "summary", "--results", ".").code == 0
    part = ("T", "--data", "Waves", "--backbone", "iTransformer", "--strategies", "sacm")
    planned = sacm_command(
        "robust", "run", *part, "--seeds", 1, "--horizons", 8, "--plan", "--json"
    )
    assert planned.code == 2
    assert "no horizon 8" in planned.err
    for arguments, message in (
        (("run", "Q"), "no protocol 'Q'"),
        (("run", "T", "--kind", "rust"), "no fault 'rust'"),
        (("run", "F", "--kind", "mix"), "breaks no training data"),
        (("run", "T", "--strategies", "magic"), "unknown strategy 'magic'"),
        (("run", "T", "--ratio", "much"), "expected numbers"),
        (("report", "T", "--format", "pdf"), "use table, md"),
        (("report", "T", "--runs", "nowhere"), "no such folder"),
    ):
        outcome = sacm_command("robust", *arguments)
        assert outcome.code == 2
        assert message in outcome.err


@pytest.mark.parametrize("width", [60, 80, 160])
def test_a_terminal_shows_every_strategy_by_its_whole_name(
    sacm_command: Command,  # noqa: F811  (the fixture)
    protocol_f: Carried,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    width: int,
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    write_json(tmp_path / "f.json", protocol_f.found.to_dict())
    for command in (("report", "F"), ("summary",)):
        outcome = sacm_command("robust", *command, "--results", tmp_path)
        assert outcome.code == 0, outcome.err
        for strategy in protocol_f.found.findings.strategies[1:]:
            assert re.search(rf"^ .*\b{re.escape(strategy)}  ", outcome.out, re.MULTILINE)
        tables = [line for line in outcome.out.splitlines() if " ± " in line]
        assert all(len(line) <= width for line in tables)


def test_an_unknown_format_is_refused(protocol_t: Carried) -> None:
    wrong: Any = "pdf"
    with pytest.raises(ArgumentError, match="format must be one of md"):
        render_protocol(protocol_t.found, wrong)


def test_a_protocol_in_a_sentence_says_what_is_confirmed(protocol_t: Carried) -> None:
    findings = protocol_t.found.findings
    assert "nothing was chosen on" not in summary_lines(protocol_t.found)[0]  # one half alone
    known = [replace(group, keys={**group.keys, "data": "ILI"}) for group in findings.groups]
    both = replace(findings, groups=(*findings.groups, *known))
    (said,) = summary_lines(replace(protocol_t.found, findings=both))
    best = said.split("against raw: ")[1].split(" ")[0]
    gains = [
        100 * (1 - own / raw)
        for raw, own in zip(*pairs(findings.groups, "raw", best, "mse"), strict=True)
    ]
    gain = number_format.percent(float(np.mean(gains)))
    assert f"On data sets that nothing was chosen on {best}: {gain}." in said
