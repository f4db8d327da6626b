"""Find wrong labels of time-series cases: which, what they should be, and how sure that is."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sacm.errors import ArgumentError, DataError
from sacm.quality.label_model import CaseKernel, Judgement, LabelSettings, Ridge, judge_labels

if TYPE_CHECKING:
    import pandas as pd

_LISTED = 20  # suspicious cases in a summary
_DRAWN = 40  # suspicious cases on a page
_NEIGHBOURS = 3
_STEPS_DRAWN = 300


@dataclass(frozen=True, eq=False)
class LabelQuality:
    """What was found about the labels of N cases of K classes.

    Attributes:
        given: The labels as they came, `[N]`.
        suggested: The most probable true label of each case, `[N]`.
        confidence: Probability that the suggestion is right, `[N]`.
        flagged: Cases whose label should be replaced by the suggestion, `[N]`; none without trust.
        noise_rate: Estimated share of wrong labels.
        noise_interval: 95 % interval of the noise rate.
        transition: `[K, K]`, how often a true class (row) was given as another (column).
        classes: The labels that occur, sorted.
        trust: Whether labels may be replaced.
        reason: Why not, or an empty text.
        skill: Agreement of answers with given labels, beyond chance, 0 to 1.
        stability: Agreement of two ways to arrive at suggestions, beyond chance, 0 to 1.
        coherence: Agreement of suggestions with those of similar cases, beyond chance, 0 to 1.
    """

    given: np.ndarray
    suggested: np.ndarray
    confidence: np.ndarray
    flagged: np.ndarray
    noise_rate: float
    noise_interval: tuple[float, float]
    transition: np.ndarray
    classes: np.ndarray
    trust: bool
    reason: str
    skill: float = 0.0
    stability: float = 0.0
    coherence: float = 0.0
    cases: np.ndarray | None = None  # X [N, C, L], to draw
    neighbours: dict[int, list[int]] | None = None  # cases like it that have the suggested label

    @property
    def repaired(self) -> np.ndarray:
        """The labels `[N]` with suggestions in place of flagged ones."""
        return np.where(self.flagged, self.suggested, self.given)

    @property
    def suspicious(self) -> np.ndarray:
        """Positions of cases whose suggestion differs from the given label, surest first."""
        different = np.flatnonzero(self.suggested != self.given)
        return different[np.lexsort((-self.confidence[different], ~self.flagged[different]))]

    def summary(self) -> str:
        """What was found, as text.

        Example:
            >>> import numpy as np
            >>> waves = np.sin(np.outer(np.repeat([1, 3], 30), np.linspace(0, 6, 50)))[:, None]
            >>> y = np.repeat(["slow", "fast"], 30); y[:3] = "fast"
            >>> "3 of 60" in find_wrong_labels(waves, y).summary()
            True
        """
        low, high = self.noise_interval
        lines = [f"{len(self.given):,} cases, {len(self.classes):,} classes."]
        if self.trust:
            lines += [
                f"About {self.noise_rate:.0%} of the labels look wrong (95 % interval {low:.0%} to "
                f"{high:.0%}).",
                f"{int(self.flagged.sum()):,} of {len(self.given):,} labels are flagged.",
            ]
        else:
            lines.append(f"No label is flagged: {self.reason}")
        chosen = [int(case) for case in self.suspicious[:_LISTED] if self.flagged[case]]
        if chosen:
            rows = [
                (str(i), str(self.given[i]), str(self.suggested[i]), f"{self.confidence[i]:.2f}")
                for i in chosen
            ]
            lines += ["", *_align([("case", "given", "suggested", "confidence"), *rows])]
            left = int(self.flagged.sum()) - len(chosen)
            lines += [f"… and {left:,} more"] if left else []
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.summary()

    def to_frame(self) -> pd.DataFrame:
        """One row for each suspicious case, flagged ones first, the surest first."""
        import pandas as pd

        rows = self.suspicious
        return pd.DataFrame(
            {
                "case": rows,
                "given": self.given[rows],
                "suggested": self.suggested[rows],
                "confidence": self.confidence[rows],
                "flagged": self.flagged[rows],
            }
        )

    def report(self, path: str | Path) -> None:
        """Write an HTML page: each suspicious case beside the nearest cases of its suggested class.

        Args:
            path: The file to write, such as labels.html.

        Raises:
            SACMError: The file cannot be written.
        """
        from sacm.files import write_atomically
        from sacm.reports.page import Section, page, paragraph

        text = self.summary().split("\n")
        drawn = [self._draw(int(case)) for case in self.suspicious[:_DRAWN]]
        left = len(self.suspicious) - len(drawn)
        sections = [
            Section("Suspicious cases", (*drawn, paragraph(f"{left:,} more are not drawn.")))
            if drawn
            else Section("Suspicious cases", (paragraph("There are none."),)),
            Section("Given labels (columns) of true classes (rows)", (self._transition_table(),)),
        ]
        document = page("Labels", text[:3], sections, style=_STYLE)
        write_atomically(Path(path), lambda file: file.write_text(document, encoding="utf-8"))

    def _draw(self, case: int) -> str:
        """One case and its neighbours, one small drawing each."""
        verdict = "flagged" if self.flagged[case] else "not flagged"
        title = (
            f"Case {case}: given {self.given[case]}, suggested {self.suggested[case]} "
            f"(confidence {self.confidence[case]:.2f}, {verdict})"
        )
        near = (self.neighbours or {}).get(case, [])
        drawings = [_draw_case(self.cases, case, f"case {case}, given {self.given[case]}")]
        drawings += [_draw_case(self.cases, i, f"case {i}, {self.given[i]}") for i in near]
        return f'<h3>{escape(title)}</h3><div class="row">{"".join(drawings)}</div>'

    def _transition_table(self) -> str:
        names = [str(name) for name in self.classes]
        head = "".join(f"<th>{escape(name)}</th>" for name in ("", *names))
        rows = "".join(
            f"<tr><td>{escape(name)}</td>{''.join(f'<td>{value:.2f}</td>' for value in row)}</tr>"
            for name, row in zip(names, self.transition, strict=True)
        )
        return f'<div class="wide"><table><tr>{head}</tr>{rows}</table></div>'


_STYLE = (
    ".row{display:grid;grid-template-columns:repeat(4,1fr);gap:.5rem}"
    ".row svg{width:100%;height:auto;border:1px solid var(--grid)}h3{font-size:1rem}"
    ".row polyline{fill:none;stroke-width:1.2}"
)
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")


def _draw_case(cases: np.ndarray | None, case: int, caption: str) -> str:
    """The first channels of a case over time, each scaled to its own range."""
    lines = []
    for values, colour in zip(cases[case] if cases is not None else (), _COLOURS, strict=False):
        steps = np.unique(np.linspace(0, len(values) - 1, _STEPS_DRAWN).astype(int))
        steps = steps[np.isfinite(values[steps])]
        if not len(steps):
            continue
        low, high = values[steps].min(), values[steps].max()
        heights = 75 - 70 * (values[steps] - low) / (high - low if high > low else 1)
        across = 5 + 190 * steps / max(len(values) - 1, 1)
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in zip(across, heights, strict=True))
        lines.append(f'<polyline points="{points}" stroke="{colour}"/>')
    label = escape(caption)
    drawing = f'<svg viewBox="0 0 200 80" role="img" aria-label="{label}">{"".join(lines)}</svg>'
    return f"<figure>{drawing}<figcaption>{label}</figcaption></figure>"


def find_wrong_labels(
    X: np.ndarray,
    y: np.ndarray | Sequence[Any],
    *,
    groups: np.ndarray | Sequence[Any] | None = None,
    keep: Iterable[int] = (),
    seed: int = 0,
    settings: LabelSettings | None = None,
    progress: bool | None = None,
) -> LabelQuality:
    """Find cases whose label is probably wrong, and say what it should be.

    Labels that are right are rarely flagged; where the classes cannot be told apart well enough to
    judge labels, nothing is flagged and `reason` says why.

    Args:
        X: Cases `[N, C, L]`, or `[N, L]` of one channel; NaN after the end of shorter cases.
        y: Their labels `[N]`: texts or whole numbers.
        groups: What cases belong together, such as the subject, `[N]`: they are never split
            between the cases that are learnt from and those that are judged.
        keep: Positions of cases whose label was checked: they are never flagged.
        seed: Of the features and the folds.
        settings: Constants and limits.
        progress: Whether progress is shown on standard error; default: for many cases.

    Raises:
        DataError: Shapes do not match, or labels are missing or are no classes.

    Example:
        >>> import numpy as np
        >>> waves = np.sin(np.outer(np.repeat([1, 3], 30), np.linspace(0, 6, 50)))[:, None]
        >>> y = np.repeat(["slow", "fast"], 30); y[:3] = "fast"
        >>> np.flatnonzero(find_wrong_labels(waves, y).flagged)
        array([0, 1, 2])
    """
    settings = settings or LabelSettings()
    cases, labels = _check_cases(X), _check_labels(y)
    if len(cases) != len(labels):
        raise DataError(f"There are {len(cases)} cases in X but {len(labels)} labels in y.")
    members = None if groups is None else np.asarray(groups)
    if members is not None and members.shape != labels.shape:
        raise DataError(f"There are {len(cases)} cases but {members.size} groups.")
    kept = np.asarray(list(keep), dtype=np.int64)
    if len(kept) and not (kept.min() >= 0 and kept.max() < len(labels)):
        raise ArgumentError(
            f"keep= names case {kept.max()}: there are cases 0 to {len(labels) - 1}."
        )
    classes, codes = np.unique(labels, return_inverse=True)
    refusal = _too_little(len(labels), classes, members, settings)
    if refusal:
        return _nothing_found(labels, classes, cases, refusal)

    if progress is None:
        progress = len(cases) > settings.exact_cases
    tell = _Progress() if progress else lambda step, share: None
    kernel = CaseKernel(cases, settings, seed=seed)
    basis = kernel.basis(cases, tell, fitted=True)
    found = judge_labels(basis, codes, len(classes), settings, groups=members, seed=seed, tell=tell)
    return _conclude(found, labels, cases, settings, kept, _neighbours(basis, found, codes))


def _conclude(
    found: Judgement,
    labels: np.ndarray,
    cases: np.ndarray | None,
    settings: LabelSettings,
    keep: np.ndarray,
    neighbours: dict[int, list[int]],
) -> LabelQuality:
    """The public result: suggestions with their confidence, and which of them to follow."""
    classes, codes = np.unique(labels, return_inverse=True)
    confidence = _confidence(found, codes, settings)
    reason = _reason(found, settings)
    flagged = _flag(found, codes, confidence, settings) & (not reason)
    flagged[keep] = False
    return LabelQuality(
        given=labels,
        suggested=classes[found.suggested],
        confidence=confidence,
        flagged=flagged,
        noise_rate=found.rate,
        noise_interval=found.rate_interval,
        transition=found.transition,
        classes=classes,
        trust=not reason,
        reason=reason,
        skill=found.skill,
        stability=found.stability,
        coherence=found.coherence,
        cases=cases,
        neighbours=neighbours,
    )


def ridge_baseline(
    X_train: np.ndarray,
    y_train: np.ndarray,
    X_test: np.ndarray,
    *,
    most_cases: int = 2_000,
    features: int = 2_520,
    seed: int = 0,
) -> np.ndarray:
    """Labels `[n]` for test cases by random-convolution features and kernel ridge regression.

    Needs no training of a network and takes seconds; a network should do better.

    Args:
        X_train: Cases `[N, C, L]`.
        y_train: Their labels `[N]`.
        X_test: Cases `[n, C, L]`.
        most_cases: At most so many random training cases are used.
        features: Features of the series, and as many of its differences.
        seed: Of the features and of the choice of cases.
    """
    settings = LabelSettings(features=features, exact_cases=most_cases)
    chosen = np.sort(np.random.default_rng(seed).permutation(len(X_train))[:most_cases])
    classes, codes = np.unique(np.asarray(y_train)[chosen], return_inverse=True)
    kernel = CaseKernel(X_train[chosen], settings, seed=seed)
    basis = kernel.basis(X_train[chosen], fitted=True)
    _, weights = Ridge(basis, settings.penalties).fit(np.eye(len(classes))[codes])
    labels: np.ndarray = classes[(kernel.basis(X_test) @ weights).argmax(axis=1)]
    return labels


def _confidence(found: Judgement, codes: np.ndarray, settings: LabelSettings) -> np.ndarray:
    """Probability `[N]` that the suggestion is right."""
    inner = np.clip(found.cross_fitted, 1e-3, 1 - 1e-3)
    log_odds = np.log(inner / (1 - inner))
    margin, odds, constant = settings.confidence_weights
    calibrated = 1 / (1 + np.exp(-(margin * found.margins + odds * log_odds + constant)))
    confidence: np.ndarray = np.where(found.suggested == codes, found.probability, calibrated)
    return confidence


def _flag(
    found: Judgement, codes: np.ndarray, confidence: np.ndarray, settings: LabelSettings
) -> np.ndarray:
    """Cases to relabel: the surest, as many as the most confident cases let expect."""
    distance = (settings.high_rate - found.core_rate) / (settings.high_rate - settings.low_rate)
    least_margin = (
        settings.least_margin * float(np.clip(distance, 0, 1)) if distance > 0 else -np.inf
    )
    sure = (confidence >= settings.least_confidence) & (found.margins >= least_margin)
    rows = np.flatnonzero((found.suggested != codes) & sure)
    deviation = np.sqrt(found.core_rate * (1 - found.core_rate) / max(found.core_cases, 1))
    most = round(len(codes) * (found.core_rate + deviation))
    flagged = np.zeros(len(codes), dtype=bool)
    flagged[rows[np.argsort(-found.margins[rows], kind="stable")][:most]] = True
    return flagged


def _reason(found: Judgement, settings: LabelSettings) -> str:
    """Why labels must not be replaced; empty if they may."""
    for name, value, least, meaning in (
        ("skill", found.skill, settings.least_skill, "answers hardly agree with the labels"),
        ("stability", found.stability, settings.least_stability, "suggestions are not stable"),
        (
            "coherence",
            found.coherence + found.coherence_error,
            settings.least_coherence,
            "classes overlap",
        ),
    ):
        if value < least:
            return (
                f"the cases do not tell their classes well enough to judge labels: {meaning} "
                f"({name} {value:.2f}, at least {least:.2f} is needed)."
            )
    return ""


def _too_little(
    cases: int, classes: np.ndarray, groups: np.ndarray | None, settings: LabelSettings
) -> str:
    if len(classes) < 2:
        return f"there is only one class, {classes[0]!s}."
    if cases < settings.least_cases * len(classes):
        return (
            f"{cases} cases are too few for {len(classes)} classes (at least "
            f"{settings.least_cases:g} a class are needed)."
        )
    if groups is not None and len(np.unique(groups)) < 2:
        return "all cases are of one group."
    return ""


def _nothing_found(
    labels: np.ndarray, classes: np.ndarray, cases: np.ndarray, reason: str
) -> LabelQuality:
    """An answer that suggests the given labels."""
    return LabelQuality(
        given=labels,
        suggested=labels,
        confidence=np.ones(len(labels)),
        flagged=np.zeros(len(labels), dtype=bool),
        noise_rate=float("nan"),
        noise_interval=(0.0, 1.0),
        transition=np.eye(len(classes)),
        classes=classes,
        trust=False,
        reason=reason,
        cases=cases,
    )


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
        missing = np.array([each is None or each != each for each in labels], dtype=bool)
        labels = labels if missing.any() else np.array(labels.tolist())
        labels = labels.astype(str) if labels.dtype.kind == "O" and not missing.any() else labels
    else:
        missing = labels != labels
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


def _neighbours(basis: np.ndarray, found: Judgement, codes: np.ndarray) -> dict[int, list[int]]:
    """For suspicious cases, the nearest cases with their suggested label."""
    agreed = found.suggested == codes
    rows = np.flatnonzero(~agreed)
    rows = rows[np.argsort(-found.margins[rows], kind="stable")][:_DRAWN]
    nearest = {}
    for case in rows.tolist():
        others = np.flatnonzero(agreed & (codes == found.suggested[case]))
        similarity = basis[others] @ basis[case]
        nearest[case] = others[np.argsort(-similarity)[:_NEIGHBOURS]].tolist()
    return nearest


def _align(rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


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
