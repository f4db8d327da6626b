"""Find wrong labels of time-series cases: which, what they should be, and how sure that is."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sacm.errors import ArgumentError, DataError
from sacm.quality.label_model import CaseKernel, Judgement, LabelSettings, judge_labels

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from sacm.reports.table import Table

# Fitted to development archives: see results/labels/README.md.
LEAST_CASES = 3.0  # a class, on average
LEAST_AGREEMENT = 0.7  # of two models, beyond chance: below, the cases do not tell their classes
LEAST_SKILL = 0.25  # agreement of a model with labels it did not see, beyond chance
LEAST_CONFIDENCE = 0.6  # of a suggestion that replaces a label
LEAST_RATE, MOST_AGREEMENT = 0.1, 0.98  # values beyond count as these in the confidence
CONFIDENCE_WEIGHTS = (4.06, 1.80, 1.37, -1.17)  # see `_confidence`
RATE_ERROR = 0.06  # standard error of the noise rate besides that of sampling
_LISTED = 20  # suspicious cases in a summary
_DRAWN = 12  # suspicious cases on a page
_NEIGHBOURS = 3


@dataclass(frozen=True, eq=False)
class LabelQuality:
    """What was found about the labels of N cases of K classes.

    Attributes:
        given: The labels as they came, `[N]`.
        suggested: The most probable true label of each case, `[N]`.
        confidence: Probability that the suggestion is right, `[N]`.
        flagged: Cases whose label should be replaced by the suggestion, `[N]`; none without trust.
        noise_rate: Estimated share of wrong labels; NaN without trust.
        noise_interval: 95 % interval of the noise rate.
        transition: `[K, K]`, how often a true class (row) was given as another (column).
        classes: The labels that occur, sorted.
        reason: Why no label can be judged, or an empty text.
        agreement: How well models of different cases agree with one another, beyond chance.
        skill: How well they agree with given labels that they did not see, beyond chance.
        names: What each case is called, `[N]`: its position, unless names were given.
    """

    given: np.ndarray
    suggested: np.ndarray
    confidence: np.ndarray
    flagged: np.ndarray
    noise_rate: float
    noise_interval: tuple[float, float]
    transition: np.ndarray
    classes: np.ndarray
    reason: str
    agreement: float
    skill: float
    names: np.ndarray
    cases: np.ndarray  # X [N, C, L], to draw
    neighbours: dict[int, list[int]]  # cases like it that have the suggested label

    @property
    def trust(self) -> bool:
        """Whether labels may be replaced."""
        return not self.reason

    @property
    def repaired(self) -> np.ndarray:
        """The labels `[N]` with suggestions in place of flagged ones."""
        return np.where(self.flagged, self.suggested, self.given)

    @property
    def suspicious(self) -> np.ndarray:
        """Positions of cases whose suggestion differs from the given label, surest first."""
        different = np.flatnonzero(self.suggested != self.given)
        return different[np.lexsort((-self.confidence[different], ~self.flagged[different]))]

    def sentences(self) -> list[str]:
        """How many cases there are, how many labels look wrong, or why that cannot be said."""
        kinds = "1 class" if len(self.classes) == 1 else f"{len(self.classes):,} classes"
        first = f"{len(self.given):,} cases, {kinds}."
        if not self.trust:
            return [first, f"No label is flagged: {self.reason}"]
        low, high = self.noise_interval
        return [
            first,
            f"About {self.noise_rate:.0%} of the labels look wrong (95 % interval {low:.0%} to "
            f"{high:.0%}).",
            f"{int(self.flagged.sum()):,} of {len(self.given):,} labels are flagged.",
        ]

    def case_table(self, rows: np.ndarray) -> Table:
        """Some cases with their given and suggested labels."""
        from sacm.reports.table import Table

        listed = zip(
            map(str, self.names[rows]),
            map(str, self.given[rows]),
            map(str, self.suggested[rows]),
            [f"{value:.2f}" for value in self.confidence[rows]],
            strict=True,
        )
        return Table(("case", "given", "suggested", "confidence"), tuple(listed), words=3)

    def summary(self) -> str:
        """What was found, as text.

        Example:
            >>> import numpy as np
            >>> waves = np.sin(np.outer(np.repeat([1, 3], 30), np.linspace(0, 6, 50)))[:, None]
            >>> y = np.repeat(["slow", "fast"], 30); y[:3] = "fast"
            >>> "3 of 60" in find_wrong_labels(waves, y).summary()
            True
        """
        lines = self.sentences()
        count = int(self.flagged.sum())
        if count:
            lines += ["", self.case_table(self.suspicious[: min(count, _LISTED)]).plain()]
            lines += [f"… and {count - _LISTED:,} more"] if count > _LISTED else []
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.summary()

    def to_frame(self) -> pd.DataFrame:
        """One row for each suspicious case, flagged ones first, the surest first.

        With its column `keep` filled in, `sacm quality --keep` takes it back.
        """
        import pandas as pd

        rows = self.suspicious
        columns = {"case": self.names, "given": self.given, "suggested": self.suggested}
        columns |= {"confidence": self.confidence, "flagged": self.flagged}
        return pd.DataFrame({name: values[rows] for name, values in columns.items()}).assign(
            keep=""
        )

    def report(self, path: str | Path) -> None:
        """Write an HTML page: each suspicious case beside the nearest cases of its suggested class.

        Args:
            path: The file to write, such as labels.html.

        Raises:
            SACMError: The file cannot be written.
        """
        from sacm.files import write_atomically
        from sacm.reports.page import Section, embed_figure, page, paragraph
        from sacm.reports.table import Table

        rows = self.suspicious
        if len(rows):
            drawn = [
                embed_figure(self.draw(case), self._caption(case), name=f"case-{case}")
                for case in rows[:_DRAWN].tolist()
            ]
            sections = [
                Section("The surest, beside cases of the suggested class", tuple(drawn)),
                Section(f"{len(rows):,} suspicious cases", (self.case_table(rows).html(),)),
            ]
        else:
            sections = [Section("Suspicious cases", (paragraph("There are none."),))]
        names = [str(name) for name in self.classes]
        shares = [[f"{share:.2f}" for share in row] for row in self.transition]
        lines = tuple((name, *row) for name, row in zip(names, shares, strict=True))
        table = Table(("true class", *names), lines, words=1).html()
        sections.append(Section("Given labels (columns) of each true class (rows)", (table,)))
        document = page("Labels", self.sentences(), sections)
        write_atomically(Path(path), lambda file: file.write_text(document, encoding="utf-8"))

    def _caption(self, case: int) -> str:
        verdict = "flagged" if self.flagged[case] else "not flagged"
        return (
            f"Case {self.names[case]}: given {self.given[case]}, suggested {self.suggested[case]} "
            f"(confidence {self.confidence[case]:.2f}, {verdict})"
        )

    def draw(self, case: int) -> Figure:
        """Draw a suspicious case, first, and the nearest cases that have its suggested label."""
        from matplotlib.figure import Figure

        from sacm.reports.style import SERIES, house_style, plain

        drawn = [case, *self.neighbours.get(case, ())]
        with house_style():
            figure = Figure(figsize=(8.0, 1.7), layout="constrained")
            axes = figure.subplots(1, 1 + _NEIGHBOURS, sharex=True, sharey=True)
            for place, position in enumerate(drawn):
                for values, colour in zip(self.cases[position], SERIES, strict=False):
                    axes[place].plot(values, color=colour, linewidth=0.8)
                axes[place].set_title(plain(f"{self.names[position]}: {self.given[position]}"))
            for each in axes[len(drawn) :]:
                each.set_axis_off()
        return figure


def find_wrong_labels(
    X: np.ndarray,
    y: np.ndarray | Sequence[Any],
    *,
    groups: np.ndarray | Sequence[Any] | None = None,
    names: Sequence[Any] | None = None,
    keep: Iterable[Any] = (),
    seed: int = 0,
    settings: LabelSettings | None = None,
    progress: bool | None = None,
) -> LabelQuality:
    """Find cases whose label is probably wrong, and say what it should be.

    Where the classes cannot be told apart well enough to judge labels, nothing is flagged and
    `reason` says why.

    Args:
        X: Cases `[N, C, L]`, or `[N, L]` of one channel; NaN after the end of shorter cases.
        y: Their labels `[N]`: texts or whole numbers.
        groups: What cases belong together, such as the subject, `[N]`: they are never split
            between the cases that are learnt from and those that are judged.
        names: What the cases are called, `[N]`; default: their positions.
        keep: Names of cases whose label was checked: they are never flagged.
        seed: Of the features and the division of the cases.
        settings: The size of the model.
        progress: Whether progress is shown on standard error; default: for many cases.

    Raises:
        DataError: Shapes do not match, or labels are missing or are no classes.
        ArgumentError: `keep` names a case that is not there.

    Example:
        >>> import numpy as np
        >>> waves = np.sin(np.outer(np.repeat([1, 3], 30), np.linspace(0, 6, 50)))[:, None]
        >>> y = np.repeat(["slow", "fast"], 30); y[:3] = "fast"
        >>> np.flatnonzero(find_wrong_labels(waves, y).flagged)
        array([0, 1, 2])
    """
    settings = settings or LabelSettings()
    cases, labels = _check_cases(X), _check_labels(y)
    known = np.arange(len(labels)) if names is None else np.asarray(names)
    members = None if groups is None else np.asarray(groups)
    for what, values in (("labels in y", labels), ("groups", members), ("names", known)):
        if values is not None and values.shape != (len(cases),):
            raise DataError(f"There are {len(cases)} cases in X but {values.size} {what}.")
    kept = _find_kept(known, keep)
    classes, codes = np.unique(labels, return_inverse=True)
    refusal = _too_little(len(labels), classes, members)
    if refusal:
        zeros = np.zeros(len(codes))
        nothing = Judgement(codes, zeros + 1, zeros, np.eye(len(classes)), 0.0, 0.0, 0.0)
        return _conclude(nothing, labels, cases, known, kept, {}, refusal)

    exact = len(cases) <= settings.exact_cases
    tell = _Progress() if (not exact if progress is None else progress) else _say_nothing
    kernel = CaseKernel(cases, settings, seed=seed)
    basis = kernel.basis(cases, tell, fitted=True)
    divisions = settings.divisions if exact else settings.many_divisions
    found = judge_labels(
        basis, codes, len(classes), divisions=divisions, groups=members, seed=seed, tell=tell
    )
    near = _neighbours(basis, found, codes)
    return _conclude(found, labels, cases, known, kept, near, _weakness(found))


def _conclude(
    found: Judgement,
    labels: np.ndarray,
    cases: np.ndarray,
    names: np.ndarray,
    kept: np.ndarray,
    neighbours: dict[int, list[int]],
    reason: str,
) -> LabelQuality:
    """The public result: suggestions with their confidence, and which of them to follow."""
    classes, codes = np.unique(labels, return_inverse=True)
    different = found.suggested != codes
    confidence = np.where(different, _confidence(found), found.posterior)
    rate, interval = float("nan"), (0.0, 1.0)
    if not reason:
        rate = float(np.where(different & ~kept, confidence, 0).mean())
        error = 1.96 * np.sqrt(rate * (1 - rate) / len(codes) + RATE_ERROR**2)
        interval = (max(0.0, rate - error), min(1.0, rate + error))
    return LabelQuality(
        given=labels,
        suggested=classes[found.suggested],
        confidence=confidence,
        flagged=different & (confidence >= LEAST_CONFIDENCE) & ~kept & (not reason),
        noise_rate=rate,
        noise_interval=interval,
        transition=found.transition,
        classes=classes,
        reason=reason,
        agreement=found.agreement,
        skill=found.skill,
        names=names,
        cases=cases,
        neighbours=neighbours,
    )


def _confidence(found: Judgement) -> np.ndarray:
    """Probability `[N]` that a suggestion other than the given label is right.

    Logistic regression on the margin against the label, the log-odds of the rough noise rate (how
    likely labels of these cases are wrong at all) and those of the agreement (how well the cases
    tell their classes).
    """
    rate = float(np.clip(found.rough_rate, LEAST_RATE, 1 - LEAST_RATE))
    agreement = float(np.clip(found.agreement, 1 - MOST_AGREEMENT, MOST_AGREEMENT))
    margin_weight, rate_weight, agreement_weight, constant = CONFIDENCE_WEIGHTS
    log_odds = (
        margin_weight * found.margins
        + rate_weight * np.log(rate / (1 - rate))
        + agreement_weight * np.log(agreement / (1 - agreement))
        + constant
    )
    confidence: np.ndarray = 1 / (1 + np.exp(-log_odds))
    return confidence


def _weakness(found: Judgement) -> str:
    """Why labels must not be replaced; empty if they may."""
    for value, least, meaning in (
        (found.agreement, LEAST_AGREEMENT, "models of different cases agree too little"),
        (found.skill, LEAST_SKILL, "models agree too little with labels they did not see"),
    ):
        if value < least:
            return (
                "the cases are too few or do not tell their classes well enough to judge labels: "
                f"{meaning} ({value:.2f} beyond chance, at least {least:.2f} is needed)."
            )
    return ""


def _too_little(cases: int, classes: np.ndarray, groups: np.ndarray | None) -> str:
    if len(classes) < 2:
        return f"there is only one class, {classes[0]!s}."
    if cases < LEAST_CASES * len(classes):
        return (
            f"{cases} cases are too few for {len(classes)} classes (at least {LEAST_CASES:g} a "
            "class are needed)."
        )
    if groups is not None and len(np.unique(groups)) < 2:
        return "all cases are of one group."
    return ""


def _find_kept(names: np.ndarray, keep: Iterable[Any]) -> np.ndarray:
    """Which cases `[N]` are named by `keep`."""
    wanted = {str(name) for name in keep}
    listed = [str(name) for name in names]
    unknown = sorted(wanted - set(listed))
    if unknown:
        raise ArgumentError(
            f"keep= names case {unknown[0]}, which is not there: the first is {listed[0]}, the "
            f"last {listed[-1]}."
        )
    return np.array([name in wanted for name in listed], dtype=bool)


def _check_cases(X: Any) -> np.ndarray:
    """Cases `[N, C, L]`."""
    cases = np.asarray(X)
    if cases.dtype.kind not in "fiub":
        raise DataError(f"X must hold numbers, got {cases.dtype}.")
    if cases.ndim == 2:
        cases = cases[:, None]
    if cases.ndim != 3 or 0 in cases.shape:
        raise DataError(f"X must be [cases, channels, steps], got {list(np.shape(X))}.")
    return cases


def _check_labels(y: Any) -> np.ndarray:
    """Labels `[N]`, none missing."""
    labels = np.asarray(y)
    if labels.ndim != 1:
        raise DataError(f"y must hold one label a case, got shape {list(labels.shape)}.")
    if labels.dtype.kind == "O":
        missing = np.array([_is_missing(each) for each in labels], dtype=bool)
        labels = labels if missing.any() else np.array(labels.tolist())
        labels = labels.astype(str) if labels.dtype.kind == "O" and not missing.any() else labels
    else:
        missing = labels == "" if labels.dtype.kind in "US" else labels != labels
    if missing.any():
        raise DataError(
            f"{int(missing.sum())} of {len(labels)} labels are missing (first: case "
            f"{int(missing.argmax())}): leave these cases out."
        )
    if labels.dtype.kind == "f" and (labels != np.round(labels)).any():
        raise DataError(
            f"y holds fractions such as {labels[labels != np.round(labels)][0]:g}: labels are "
            "texts or whole numbers."
        )
    return labels


def _is_missing(label: Any) -> bool:
    try:
        return label is None or label == "" or bool(label != label)
    except TypeError:  # pandas.NA, which is neither equal nor unequal
        return True


def _neighbours(basis: np.ndarray, found: Judgement, codes: np.ndarray) -> dict[int, list[int]]:
    """For the most suspicious cases, the nearest cases with their suggested label."""
    agreed = found.suggested == codes
    rows = np.flatnonzero(~agreed)
    rows = rows[np.argsort(-found.margins[rows], kind="stable")][:_DRAWN]
    nearest = {}
    for case in rows.tolist():
        others = np.flatnonzero(agreed & (codes == found.suggested[case]))
        similarity = basis[others] @ basis[case]
        nearest[case] = others[np.argsort(-similarity)[:_NEIGHBOURS]].tolist()
    return nearest


def _say_nothing(step: str, share: float) -> None:
    """Progress that nobody watches."""


class _Progress:
    """Prints steps on standard error, at most every few seconds."""

    interval = 2.0

    def __init__(self) -> None:
        self.last = time.monotonic()

    def __call__(self, step: str, share: float) -> None:
        now = time.monotonic()
        if now - self.last >= self.interval:
            self.last = now
            print(f"labels: {step}, {share:.0%}", file=sys.stderr, flush=True)
