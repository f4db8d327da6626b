"""Find wrong labels of time-series cases: which, what they should be, and how sure that is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sacm.errors import ArgumentError, DataError
from sacm.quality.label_model import CaseKernel, Judgement, judge_labels

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from sacm.reports.table import Table

EXACT_CASES = 2_000  # more are compared with LANDMARKS random cases instead of one another
LANDMARKS = 1_000
FEATURES, MANY_FEATURES = 10_000, 1_260  # of the series, and as many of its differences
FEWEST_CASES, LEAST_CASES = 20, 3  # in all, and a class on average
# Chosen on development archives: see results/labels/README.md.
LEAST_CONFIDENCE = 0.55  # of a suggestion that replaces a label
MOST_DOUBT = 0.1  # share of contradicted labels; beyond, an answer without flags is not trusted
RATE_ERROR = 0.05  # standard error of the noise rate besides that of sampling
_LISTED, _DRAWN = 20, 12  # suspicious cases in a summary and on a page
_NEIGHBOURS = 3
_MISSING = ("None", "nan", "''", "<NA>", "NaT")  # as Python writes labels that are not there


@dataclass(frozen=True, eq=False)
class LabelQuality:
    """What was found about the labels of N cases of K classes.

    Attributes:
        given: The original labels, `[N]`.
        suggested: The most probable true label of each case, `[N]`.
        confidence: Probability that the suggestion is right, `[N]`.
        flagged: Cases whose label should be replaced by the suggestion, `[N]`; none without trust.
        transition: `[K, K]`, how often a true class (row) was given as another (column).
        classes: The labels that occur, sorted.
        reason: Why no label can be judged, or an empty text.
        names: What each case is called, `[N]`: its position, unless names were given.
        cases: `[N, C, L]`, to draw.
        neighbours: For the surest suspicious cases, those most like it with the suggested label.
    """

    given: np.ndarray
    suggested: np.ndarray
    confidence: np.ndarray
    flagged: np.ndarray
    transition: np.ndarray
    classes: np.ndarray
    reason: str
    names: np.ndarray
    cases: np.ndarray
    neighbours: dict[int, list[int]]

    @property
    def trust(self) -> bool:
        """Whether labels may be replaced."""
        return not self.reason

    @property
    def noise_rate(self) -> float:
        """Estimated share of wrong labels; NaN without trust."""
        return float(self.flagged.mean()) if self.trust else float("nan")

    @property
    def noise_interval(self) -> tuple[float, float]:
        """95 % interval of the noise rate; suspicious cases that are not flagged may be wrong."""
        if not self.trust:
            return 0.0, 1.0
        rates = np.array([self.noise_rate, (self.suggested != self.given).mean()])
        errors = 1.96 * np.sqrt(rates * (1 - rates) / len(self.given) + RATE_ERROR**2)
        return max(0.0, float(rates[0] - errors[0])), min(1.0, float(rates[1] + errors[1]))

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
            f"{self.flagged.sum():,} of {len(self.given):,} labels are flagged: about "
            f"{self.noise_rate:.0%} look wrong (95 % interval {low:.0%} to {high:.0%}).",
        ]

    def summary(self) -> str:
        """What was found, as text."""
        lines = self.sentences()
        count = int(self.flagged.sum())
        if count:
            lines += ["", self._table(min(count, _LISTED)).plain()]
        if count > _LISTED:
            lines.append(f"… and {count - _LISTED:,} more")
        return "\n".join(lines)

    __str__ = summary

    def to_frame(self) -> pd.DataFrame:
        """One row for each suspicious case, flagged ones first, the surest first.

        With its column `keep` filled in, `sacm quality --keep` takes it back.
        """
        import pandas as pd

        columns = {"case": self.names, "given": self.given, "suggested": self.suggested}
        columns |= {"confidence": self.confidence, "flagged": self.flagged}
        rows = self.suspicious
        frame = pd.DataFrame({name: values[rows] for name, values in columns.items()})
        return frame.assign(keep="")

    def _table(self, most: int | None = None) -> Table:
        """The surest suspicious cases with their given and suggested labels."""
        from sacm.reports.table import Table

        frame = self.to_frame().drop(columns=["flagged", "keep"])[:most].astype(str)
        frame["confidence"] = [f"{float(value):.2f}" for value in frame["confidence"]]
        return Table.from_frame(frame, words=3)

    def report(self, path: str | Path) -> None:
        """Write an HTML page: each suspicious case beside the nearest cases of its suggested class.

        Raises:
            SACMError: The file cannot be written.
        """
        from sacm.files import write_atomically
        from sacm.reports.page import embed_figure, page, paragraph
        from sacm.reports.table import Table

        drawn = []
        for case in self.suspicious[:_DRAWN].tolist():
            caption = (
                f"Case {self.names[case]}: given {self.given[case]}, suggested "
                f"{self.suggested[case]} (confidence {self.confidence[case]:.2f}, "
                f"{'flagged' if self.flagged[case] else 'not flagged'})"
            )
            drawn.append(embed_figure(self.draw(case), caption, name=f"case-{case}"))
        classes = [str(name) for name in self.classes]
        lines = [
            (name, *(f"{share:.2f}" for share in row))
            for name, row in zip(classes, self.transition, strict=True)
        ]
        surest = [*drawn, self._table().html()] if drawn else [paragraph("There are none.")]
        shares = Table(("true class", *classes), tuple(lines)).html()
        sections = {
            "Suspicious cases, the surest beside cases of the suggested class": surest,
            "Given labels (columns) of each true class (rows)": [shares],
        }
        document = page("Labels", self.sentences(), sections)
        write_atomically(Path(path), lambda file: file.write_text(document, encoding="utf-8"))

    def draw(self, case: int) -> Figure:
        """Draw a suspicious case, first, and the nearest cases that have its suggested label."""
        from matplotlib.figure import Figure

        from sacm.reports.style import SERIES, house_style, plain

        with house_style():
            figure = Figure(figsize=(8.0, 1.7), layout="constrained")
            axes = figure.subplots(1, 1 + _NEIGHBOURS, sharex=True, sharey=True)
            drawn = [case, *self.neighbours.get(case, ())]
            for axis, position in zip(axes, drawn, strict=False):
                for values, colour in zip(self.cases[position], SERIES, strict=False):
                    axis.plot(values, color=colour, linewidth=0.8)
                axis.set_title(plain(f"{self.names[position]}: {self.given[position]}"))
            for axis in axes[len(drawn) :]:
                axis.set_axis_off()
        return figure


def find_wrong_labels(
    X: np.ndarray,
    y: np.ndarray | Sequence[Any],
    *,
    groups: np.ndarray | Sequence[Any] | None = None,
    names: Sequence[Any] | None = None,
    keep: Iterable[Any] = (),
    seed: int = 0,
) -> LabelQuality:
    """Find cases whose label is probably wrong, and say what it should be.

    Where the classes cannot be told apart well enough to judge labels, nothing is flagged and
    `reason` says why. Progress is shown on standard error for more than 2,000 cases.

    Args:
        X: Cases `[N, C, L]`, or `[N, L]` of one channel; NaN after the end of shorter cases.
        y: Their labels `[N]`: texts or whole numbers.
        groups: What cases belong together, such as the subject, `[N]`: they are never split
            between the cases that are learnt from and those that are judged.
        names: What the cases are called, `[N]`; default: their positions.
        keep: Names of cases whose label was checked: they are never flagged.
        seed: Of the features and the division of the cases.

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
    cases, labels = _check_cases(X), _check_labels(y)
    called = np.arange(len(labels)) if names is None else np.asarray(names)
    members = None if groups is None else np.asarray(groups)
    for what, values in (("labels in y", labels), ("groups", members), ("names", called)):
        if values is not None and values.shape != (len(cases),):
            raise DataError(f"There are {len(cases)} cases in X but {values.size} {what}.")
    kept = _find_kept(called, keep)
    classes, codes = np.unique(labels, return_inverse=True)
    reason = _too_little(len(labels), classes, members)
    neighbours: dict[int, list[int]] = {}
    if reason:
        judged = Judgement(codes, np.ones(len(codes)), np.eye(len(classes)), 0.0)
    else:
        many = len(cases) > EXACT_CASES
        features, landmarks = (MANY_FEATURES, LANDMARKS) if many else (FEATURES, None)
        kernel = CaseKernel(cases, features=features, landmarks=landmarks, seed=seed)
        basis = kernel.basis(cases, progress=True) if many else kernel.own_basis
        divisions = 2 if many else 3
        judged = judge_labels(basis, codes, members, divisions=divisions, seed=seed, progress=many)
        neighbours = _neighbours(basis, judged, codes)
    sure = (judged.suggested != codes) & (judged.confidence >= LEAST_CONFIDENCE)
    if not sure.any() and judged.doubt > MOST_DOUBT:
        reason = (
            "the cases are too few or do not tell their classes well enough to judge labels: "
            f"models of other cases doubt {judged.doubt:.0%} of them, but not surely."
        )
    return LabelQuality(
        given=labels,
        suggested=classes[judged.suggested],
        confidence=judged.confidence,
        flagged=sure & ~kept,
        transition=judged.transition,
        classes=classes,
        reason=reason,
        names=called,
        cases=cases,
        neighbours=neighbours,
    )


def _neighbours(basis: np.ndarray, judged: Judgement, codes: np.ndarray) -> dict[int, list[int]]:
    """For the most suspicious cases, the nearest cases with their suggested label."""
    agreed = judged.suggested == codes
    rows = np.flatnonzero(~agreed)
    nearest = {}
    for case in rows[np.argsort(-judged.confidence[rows], kind="stable")][:_DRAWN].tolist():
        others = np.flatnonzero(agreed & (codes == judged.suggested[case]))
        similarity = basis[others] @ basis[case]
        nearest[case] = others[np.argsort(-similarity)[:_NEIGHBOURS]].tolist()
    return nearest


def _too_little(cases: int, classes: np.ndarray, groups: np.ndarray | None) -> str:
    if len(classes) < 2:
        return f"there is only one class, {classes[0]!s}."
    least = max(FEWEST_CASES, LEAST_CASES * len(classes))
    if cases < least:
        return (
            f"{cases} cases are too few for {len(classes)} classes (at least {least} are needed)."
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
    return np.isin(listed, list(wanted))


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
    missing = np.array([repr(label) in _MISSING for label in labels.tolist()], dtype=bool)
    if missing.any():
        raise DataError(
            f"{missing.sum()} of {len(labels)} labels are missing (first: case "
            f"{missing.argmax()}): leave these cases out."
        )
    if labels.dtype.kind == "O":  # numbers stay numbers, mixtures become texts
        labels = np.array(labels.tolist())
    if labels.dtype.kind == "f" and (labels != np.round(labels)).any():
        raise DataError(
            f"y holds fractions such as {labels[labels != np.round(labels)][0]:g}: labels are "
            "texts or whole numbers."
        )
    return labels
