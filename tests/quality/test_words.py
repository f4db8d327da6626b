from __future__ import annotations

import numpy as np
import pytest

import sacm
from sacm.quality.words import event_table, format_share, share_table, worst_events
from tests.quality import tables


@pytest.fixture(scope="module")
def quality() -> sacm.Quality:
    return sacm.inspect(tables.wide())


@pytest.mark.parametrize(
    ("share", "text"),
    [(0.0, ""), (0.00001, "< 0.01 %"), (0.00123, "0.12 %"), (0.046, "4.6 %"), (0.37, "37 %")],
)
def test_shares_have_the_digits_they_need(share: float, text: str) -> None:
    assert format_share(share).replace(" %", "%") == text.replace(" %", "%")


def test_the_first_sentence_is_the_verdict(quality: sacm.Quality) -> None:
    verdict = quality.sentences()[0]
    assert verdict.startswith("data: 4.6 % of the values in 400 rows of 2 channels look broken: ")
    assert "3.8 % stuck" in verdict
    assert verdict.index("stuck") < verdict.index("missing") < verdict.index("spikes")


def test_healthy_data_are_called_healthy() -> None:
    quality = sacm.inspect(np.zeros((200, 1)))
    assert quality.sentences() == [
        "data: nothing broken was found in 200 rows of 1 channel.",
        "Channel '0' was not judged: constant.",
    ]
    assert str(quality) == "\n".join(quality.sentences())


def test_channels_that_were_not_judged_share_a_sentence() -> None:
    sentences = sacm.inspect(np.zeros((200, 9))).sentences()
    assert sentences[1:] == [
        "Channels '0', '1', '2', '3', '4', '5' and 3 more were not judged: constant."
    ]


def test_shares_are_listed_by_channel_and_kind(quality: sacm.Quality) -> None:
    table = share_table(quality)
    assert table.headings == ("channel", "flagged", "missing", "stuck", "spike")
    cells = {row.cells[0]: row.cells[1:] for row in table.rows}
    assert cells["heat"] == ("7.5 %", "", "7.5 %", "")
    assert cells["load"] == ("1.7 %", "1.5 %", "", "0.25 %")


def test_clean_channels_share_a_line() -> None:
    values = np.hstack([tables.broken(), np.zeros((tables.ROWS, 2))])
    last = share_table(sacm.inspect(values)).rows[-1]
    assert last.cells[0] == "2 channels without a finding"
    assert last.quiet


def test_the_worst_events_are_severe_or_long(quality: sacm.Quality) -> None:
    worst = worst_events(quality, 2)
    assert [event.kind for event in worst] == ["stuck", "spike"]
    rows = [row.cells for row in event_table(quality).rows]
    assert rows[0][:5] == ("heat", "stuck", "2024-01-07 06:00", "2024-01-08 11:00", "30")
    assert len(rows) == len(quality.events)


def test_rows_are_counted_from_one_where_there_are_no_times() -> None:
    quality = sacm.inspect(tables.broken())
    cells = next(row.cells for row in event_table(quality).rows if row.cells[1] == "missing")
    assert cells[2:5] == ("61", "66", "6")


def test_a_channel_without_a_value_has_no_known_severity() -> None:
    values = tables.healthy(200)
    values[:, 1] = np.nan
    quality = sacm.inspect(values)
    assert worst_events(quality, 1)[0].severity == np.inf
    assert event_table(quality).rows[0].cells[-1] == "unknown"


def test_summary_prints_everything(
    quality: sacm.Quality, capsys: pytest.CaptureFixture[str]
) -> None:
    quality.summary()
    printed = capsys.readouterr().out
    assert printed == f"{quality}\n"
    assert all(sentence in printed for sentence in quality.sentences())
    assert "3 events:" in printed
