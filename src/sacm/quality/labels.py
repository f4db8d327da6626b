"""Find wrong labels of time-series cases: which, what they should be, and how sure that is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sacm.errors import ArgumentError, DataError
from sacm.quality.label_model import CaseKernel, judge_labels

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

EXACT_CASES = 2_000  # more are compared with LANDMARKS random cases instead of one another
LANDMARKS = 1_000
FEATURES, MANY_FEATURES = 10_000, 1_260  # of the series, and as many of its differences
FEWEST_CASES, LEAST_CASES = 20, 3  # in all, and a class on average
LEAST_CONFIDENCE = 0.5  # of a suggestion that replaces a label
LEAST_EVIDENCE = 1.5  # of all cases, in nats a class; random labels reach up to 3
MOST_DOUBT = 0.1  # share of contradicted labels; beyond, an answer without flags is not trusted
RATE_ERROR = 0.05  # standard error of the noise rate besides that of sampling
_LISTED, _DRAWN = 20, 12  # suspicious cases in a summary and on a page
_NEIGHBOURS = 3


@dataclass(frozen=True, eq=False)
class LabelQuality:
    """What was found about the labels of N cases of K classes."""

    given: np.ndarray  # [N]: the original labels
    suggested: np.ndarray  # [N]: the most probable true labels
    confidence: np.ndarray  # [N]: probability that the suggestion is right
    flagged: np.ndarray  # [N]: whether the suggestion should replace the label; none without trust
    transition: np.ndarray  # [K, K]: how often a true class (row) was given as another (column)
    classes: np.ndarray  # [K]: the labels that occur, sorted
    reason: str  # why no label can be judged, or empty
    names: np.ndarray  # [N]: what the cases are called
    cases: np.ndarray  # [N, C, L], to draw

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
        cases, classes, (low, high) = len(self.given), len(self.classes), self.noise_interval
        share = f"about {self.noise_rate:.0%} look wrong (95 % interval {low:.0%} to {high:.0%})"
        found = f"{self.flagged.sum():,} of {cases:,} labels are flagged: {share}."
        return [
            f"{cases:,} cases, {classes:,} class{'es' if classes > 1 else ''}.",
            found if self.trust else f"No label is flagged: {self.reason}",
        ]

    def summary(self) -> str:
        """What was found, as text."""
        from sacm.reports.table import Table

        lines, count = self.sentences(), int(self.flagged.sum())
        if count:
            flagged = self.to_frame().iloc[: min(count, _LISTED), :4].astype(str)
            lines += ["", Table.from_frame(flagged, words=3).plain()]
        lines += [f"… and {count - _LISTED:,} more"] if count > _LISTED else []
        return "\n".join(lines)

    __str__ = summary

    def to_frame(self) -> pd.DataFrame:
        """One row for each suspicious case, flagged ones first, the surest first."""
        import pandas as pd

        columns = {"case": self.names, "given": self.given, "suggested": self.suggested}
        columns |= {"confidence": self.confidence.round(2), "flagged": self.flagged}
        return pd.DataFrame(columns).iloc[self.suspicious].reset_index(drop=True).assign(keep="")

    def report(self, path: str | Path) -> None:
        """Write an HTML page: suspicious cases beside the nearest ones of their suggested class."""
        from sacm.files import write_text
        from sacm.reports.page import embed_figure, page
        from sacm.reports.table import Table

        drawn = []
        for case in self.suspicious[:_DRAWN].tolist():
            caption = (
                f"Case {self.names[case]}: given {self.given[case]}, suggested "
                f"{self.suggested[case]} (confidence {self.confidence[case]:.2f})"
            )
            drawn.append(embed_figure(self.draw(case), caption, name=f"case-{case}"))
        frame = self.to_frame().drop(columns="keep").astype(str)
        sections = {
            "Suspicious cases, the surest beside cases of the suggested class": drawn,
            f"All {len(frame):,} suspicious cases": [Table.from_frame(frame, words=3).html()],
        }
        write_text(Path(path), page("Labels", self.sentences(), sections))

    def draw(self, case: int) -> Figure:
        """Draw a suspicious case, first, and the nearest cases that have its suggested label."""
        from matplotlib.figure import Figure

        from sacm.reports.style import SERIES, house_style, plain

        others = np.flatnonzero((self.given == self.suggested[case]) & ~self.flagged)
        spread = np.maximum(np.nanstd(self.cases, axis=(0, 2)), 1e-12)[:, None]
        scaled = np.nan_to_num(self.cases / spread)
        distances = ((scaled[others] - scaled[case]) ** 2).sum(axis=(1, 2))
        drawn = [case, *others[np.argsort(distances)[:_NEIGHBOURS]]]
        with house_style():
            figure = Figure(figsize=(2.0 * len(drawn), 1.7), layout="constrained")
            axes = figure.subplots(1, len(drawn), sharex=True, sharey=True, squeeze=False)[0]
            for axis, position in zip(axes, drawn, strict=True):
                for values, colour in zip(self.cases[position], SERIES, strict=False):
                    axis.plot(values, color=colour, linewidth=0.8)
                axis.set_title(plain(f"{self.names[position]}: {self.given[position]}"))
        return figure


def find_wrong_labels(
    X: np.ndarray,
    y: np.ndarray | Sequence[Any],
    *,
    groups: np.ndarray | Sequence[Any] | None = None,
    names: Sequence[Any] | None = None,
    keep: Iterable[Any] = (),
) -> LabelQuality:
    """Find cases whose label is probably wrong, and say what it should be.

    Where cases tell their classes too badly to judge labels, nothing is flagged and `reason` says
    why. Progress is shown on standard error for more than 2,000 cases.

    Args:
        X: Cases `[N, C, L]`, or `[N, L]` of one channel; NaN after the end of shorter cases.
        y: Their labels `[N]`: texts or whole numbers.
        groups: What cases belong together, such as the subject, `[N]`: none is judged by its own.
        names: What the cases are called, `[N]`; default: their positions.
        keep: Names of cases whose label was checked: they are never flagged.

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
    called, members = (np.asarray(range(len(y)) if a is None else a) for a in (names, groups))
    for what, values in (("labels in y", labels), ("groups", members), ("names", called)):
        if values.shape != (len(cases),):
            raise DataError(f"There are {len(cases)} cases in X but {values.size} {what}.")
    listed, kept = called.astype(str), list(map(str, keep))
    if unknown := sorted(set(kept) - set(listed)):
        known = f"the first is {listed[0]}, the last {listed[-1]}"
        raise ArgumentError(f"keep= names case {unknown[0]}, which is not there: {known}.")
    classes, codes = np.unique(labels, return_inverse=True)
    least = max(FEWEST_CASES, LEAST_CASES * len(classes))
    reasons = {
        f"there is only one class, {classes[0]!s}.": len(classes) < 2,
        f"{len(cases)} cases are too few for {len(classes)} classes.": len(cases) < least,
        "all cases are of one group.": len(np.unique(members)) < 2,
    }
    reason = next((text for text, holds in reasons.items() if holds), "")
    suggested, confidence, transition = codes, np.ones(len(codes)), np.eye(len(classes))
    doubt = evidence = 0.0
    if not reason:
        many = len(cases) > EXACT_CASES
        features, landmarks = (MANY_FEATURES, LANDMARKS) if many else (FEATURES, None)
        kernel = CaseKernel(cases, features=features, landmarks=landmarks)
        basis = kernel.basis(cases, progress=True) if many else kernel.own_basis
        judged = judge_labels(basis, codes, members, many=many)
        suggested, confidence, transition, doubt, evidence = judged
    sure = (suggested != codes) & (confidence >= LEAST_CONFIDENCE) & (evidence >= LEAST_EVIDENCE)
    if not sure.any() and doubt > MOST_DOUBT:
        reason = "the cases are too few or do not tell their classes well enough: models of other "
        reason += f"cases doubt {doubt:.0%} of the labels, but not surely."
    answer = classes[suggested], confidence, sure & ~np.isin(listed, kept), transition
    return LabelQuality(labels, *answer, classes, reason, called, cases)


def _check_cases(X: Any) -> np.ndarray:
    """Cases `[N, C, L]`."""
    cases = np.asarray(X)
    if cases.dtype.kind not in "fiub":
        raise DataError(f"X must hold numbers, got {cases.dtype}.")
    cases = cases[:, None] if cases.ndim == 2 else cases
    if cases.ndim != 3 or 0 in cases.shape:
        raise DataError(f"X must be [cases, channels, steps], got {list(np.shape(X))}.")
    return cases


def _check_labels(y: Any) -> np.ndarray:
    """Labels `[N]`, none missing; numbers stay numbers, mixtures become texts."""
    import pandas as pd

    values = np.asarray(y, dtype=object)
    if values.ndim != 1:
        raise DataError(f"y must hold one label a case, got shape {list(values.shape)}.")
    missing = np.array([pd.isna(label) or label == "" for label in values], dtype=bool)
    if missing.any():
        count = f"{missing.sum()} of {len(values)} labels are missing"
        raise DataError(f"{count} (first: case {missing.argmax()}): leave these cases out.")
    labels = np.array(values.tolist())
    if labels.dtype.kind == "f" and (broken := labels[labels != np.round(labels)]).size:
        raise DataError(f"y holds fractions such as {broken[0]:g}; use texts or whole numbers.")
    return labels
