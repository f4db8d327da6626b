"""All protocols in one table, and its place in a markdown file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sacm.display.text_table import TableRow, TextTable
from sacm.errors import DataError
from sacm.experiments.named.findings import Findings, Overall
from sacm.experiments.named.pairs import pairs
from sacm.files import write_atomically
from sacm.metrics.catalogue import metric
from sacm.reports import number_format
from sacm.reports.named.gains import format_gain
from sacm.reports.named.summary import replace_between
from sacm.reports.number_format import UNDEFINED
from sacm_lab.robust.advice import ADVICE_LEGEND, advice_table
from sacm_lab.robust.default_table import DEFAULT_LEGEND, default_table
from sacm_lab.robust.fault_places import FAULT_PLACES_LEGEND, MEASURE, fault_place_table
from sacm_lab.robust.findings import RobustFindings
from sacm_lab.robust.headline import summary_lines
from sacm_lab.robust.place_table import PLACES_LEGEND, guard_sentence, place_table
from sacm_lab.robust.protocols import REFERENCES
from sacm_lab.robust.recovered import CLEAR_LOSS, WIDEST, Recovered

BEGIN, END = "<!-- {}:begin -->", "<!-- {}:end -->"
HEADINGS = (
    "protocol",
    "metric",
    "strategy",
    "n",
    "gain",
    "95 % interval",
    "p (W, Holm)",
    "recovered",
    "its interval",
    "cost",
)
NARROW = ("protocol", "metric", "strategy", "n", "gain", "p (W, Holm)", "recovered", "cost")
LEGEND = (
    "Each protocol's first metric over all its groups, the best strategy first, references last. "
    "Gain: mean of the gains against raw of the same data, network and seed, positive is better; "
    "interval: bootstrap of that mean, from five pairs on; p: Wilcoxon's signed-rank test, "
    "Holm-corrected over the protocol. Recovered: how much of what broken training data cost is "
    f"won back over all places, where it is more than {CLEAR_LOSS:.0%} and the interval not wider "
    f"than {WIDEST:.0%}. Cost: seconds of training as a multiple of raw's."
)


def protocol_summary_table(found: Sequence[RobustFindings]) -> TextTable:
    """One line for each protocol and strategy."""
    lines: list[TableRow] = []
    for one in found:
        findings = one.findings
        name = findings.metrics[0]
        overall = [each for each in findings.overall if each.metric == name and each.n]
        overall.sort(key=lambda each: -(each.gain if each.gain is not None else -1e9))
        overall.sort(key=lambda each: each.strategy in REFERENCES)
        shares = {r.strategy: r for r in one.recovered if not r.keys and r.metric == name}
        for number, each in enumerate(overall):
            cells = _cells(findings, each, shares.get(each.strategy))
            start = (findings.name, metric(name).label) if number == 0 else ("", "")
            lines.append(TableRow((*start, *cells), group=number == 0))
    return TextTable(HEADINGS, tuple(lines), text_columns=3)


def summary_blocks(found: Sequence[RobustFindings]) -> dict[str, str]:
    """What a markdown file may hold between marks, by the name of the marks.

    `robust` is the table of all protocols, `places` that of all places of those with broken
    training data, `faults` that of all places with faults at test, `when` says which strategy
    when, `default` what the default strategies do, `robust-lines` is a list of one sentence a
    protocol.
    """
    lines = (line for one in found for line in summary_lines(one))
    measured = [one for one in found if one.recovered]
    places = [f"**{one.findings.name}**\n\n{place_table(one).markdown()}" for one in measured]
    faults = [
        fault_place_table(one).markdown()
        for one in found
        if one.findings.metrics[0] == MEASURE and not one.recovered
    ]
    said = [sentence for one in measured if (sentence := guard_sentence(one))]
    return {
        "robust": f"{protocol_summary_table(found).markdown()}\n\n{LEGEND}",
        "places": "\n\n".join([*places, *said, PLACES_LEGEND]),
        "faults": "\n\n".join([*faults, FAULT_PLACES_LEGEND]),
        "when": f"{advice_table(found).markdown()}\n\n{ADVICE_LEGEND}",
        "default": f"{default_table(found).markdown()}\n\n{DEFAULT_LEGEND}",
        "robust-lines": "\n".join(f"- {line}" for line in lines),
    }


def write_protocol_summary(found: Sequence[RobustFindings], path: Path) -> None:
    """Put every block that a markdown file has marks for between them; the rest stays as it is.

    Raises:
        DataError: The file cannot be read, or has no pair of marks.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path} cannot be read as text: {error}.") from None
    blocks = summary_blocks(found)
    wanted = [name for name in blocks if BEGIN.format(name) in text]
    if not wanted:
        marks = ", ".join(BEGIN.format(name) for name in blocks)
        raise DataError(f"{path} has none of the marks {marks}.")
    for name in wanted:
        try:
            text = replace_between(text, BEGIN.format(name), END.format(name), blocks[name])
        except DataError as error:
            raise DataError(f"{path}: {error}") from None
    write_atomically(path, lambda file: file.write_bytes(text.encode("utf-8")))


def _cells(findings: Findings, one: Overall, share: Recovered | None) -> tuple[str, ...]:
    won, ends = UNDEFINED, UNDEFINED
    if share is not None and share.clear_share is not None:
        won = f"{100 * share.clear_share:.0f} %"
        if share.low is not None and share.high is not None:
            ends = f"{100 * share.low:.0f} to {100 * share.high:.0f} %"
    return (
        one.strategy,
        str(one.n),
        format_gain(one.gain, one.metric),
        number_format.interval(one.interval),
        number_format.probability(one.adjusted_p_value),
        won,
        ends,
        _cost(findings, one.strategy),
    )


def _cost(findings: Findings, strategy: str) -> str:
    """Seconds of training, as a multiple of the baseline's."""
    raw, own = pairs(findings.groups, findings.baseline, strategy, "train_seconds")
    return f"{sum(own) / sum(raw):.1f}" if own and sum(raw) > 0 else UNDEFINED
