"""Which class each case belongs to, judged from labels of which some are wrong.

Three parts: a kernel of random-convolution features; ridge regression of the labels on it; and a
model of the noise, in which the true label is hidden and a transition matrix says how often it was
written down as another. Ridge and noise model are fitted in turns (`self_train`). The cases are
divided into thirds at random, a few times; models of two thirds judge the other one, so that no
label takes part in the answer on itself.

Shapes: codes of the given labels `[N]` in 0 … K-1; scores and probabilities `[N, K]`; transitions
`[K, K]`, `transition[true, given]`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch

Tell = Callable[[str, float], None]
"""Called with the name of a step and the share of it that is done."""

PENALTIES = 10.0 ** np.arange(-3, 2.01, 0.5)  # of the ridge; leave-one-out squared error chooses
SHARPNESS = np.geomspace(1, 40, 5)  # candidates of the factor from scores to log-probabilities
TEMPERATURES = np.geomspace(1, 4, 8)  # the same for held-out log-probabilities; below 1, uncertain
# answers would explain wrong labels
PARTS = 3  # into which cases are divided
SAMPLE_CASES = 500  # agreement, skill and rough rate are those of at most so many random cases
PART_ROUNDS, ROUNDS = 4, 8  # most rounds of self-training, without a part and in the final fit
SETTLED = 0.002  # self-training ends when posteriors change by less than this on average
BALANCE = 0.75  # how far predicted class shares are drawn to the expected ones, 0 to 1
FIRST_RATE = 0.2  # noise rate at which the estimation of transitions starts
NOISE_STEPS = 10  # of expectation-maximisation
PRIOR_CASES = 10.0  # weight of the prior on each row of the transitions, in cases
NOISE_CASES = 10_000  # the noise model is fitted to at most this many random cases
_LEAST_PROBABILITY = 1e-4  # of a held-out answer, so that no single one decides
_LEAST_SPREAD = 1e-6  # standard deviation below which a feature is dropped
_TINY = 1e-12
# Sizes of blocks that bound the memory.
_CASES_AT_ONCE, _ROWS_AT_ONCE, _COMPARISONS_AT_ONCE = 500, 10_000, 30_000_000


@dataclass(frozen=True)
class LabelSettings:
    """How large the model of the labels is.

    Attributes:
        features: Random-convolution features of the series, and as many of its first differences.
        kernel_width: Width of the Gaussian kernel in median distances of two cases.
        exact_cases: Up to this many cases the kernel is exact.
        landmarks: Beyond, the kernel is approximated from this many random cases (Nystroem).
        many_features: Features of each view where the kernel is approximated.
        divisions: How often the cases are divided at random, at least twice.
        many_divisions: The same where the kernel is approximated.
    """

    features: int = 10_000
    kernel_width: float = 1.4
    exact_cases: int = 2_000
    landmarks: int = 1_000
    many_features: int = 1_260
    divisions: int = 3
    many_divisions: int = 2


class CaseKernel:
    """A Gaussian kernel of random-convolution features, as a basis with the same inner products.

    Two views: the series and its first differences. Channels are z-scored over all cases; missing
    values, such as those after the end of a shorter case, count as the mean.
    """

    def __init__(self, X: np.ndarray, settings: LabelSettings, *, seed: int = 0) -> None:
        """Fit to cases `[N, C, L]`; labels play no part."""
        from sacm.backbones.minirocket import MiniRocketConfig, Transform

        exact = len(X) <= settings.exact_cases
        self.type = np.float64 if exact else np.float32
        count = len(X) if exact else settings.landmarks
        self.landmarks = np.sort(np.random.default_rng(seed).permutation(len(X))[:count])
        sample = np.asarray(X[self.landmarks], np.float64)
        with np.errstate(invalid="ignore"):
            observed = np.isfinite(sample)
            total = np.maximum(observed.sum(axis=(0, 2)), 1)
            self.mean = np.where(observed, sample, 0).sum(axis=(0, 2)) / total
            square = np.where(observed, (sample - self.mean[:, None]) ** 2, 0).sum(axis=(0, 2))
        self.std = np.where(square > 0, np.sqrt(square / total), 1)

        self.transforms = []
        features = settings.features if exact else settings.many_features
        for view, cases in enumerate(self._views(sample)):
            transform = Transform(
                MiniRocketConfig(features=features),
                input_len=cases.shape[1],
                channels=cases.shape[2],
            )
            transform.fit(cases, torch.Generator().manual_seed(seed + view))
            self.transforms.append(transform)

        raw = self._features(sample)
        self.center, spread = raw.mean(axis=0), raw.std(axis=0)
        used = spread > _LEAST_SPREAD
        self.scale = np.where(used, 1 / np.where(used, spread, 1), 0).astype(np.float32)
        self.points = (raw - self.center) * self.scale
        distances = _squared_distances(self.points, self.points)
        upper = distances[np.triu_indices(count, 1)]
        typical = float(np.median(upper)) if len(upper) else 0.0
        self.width = 2 * settings.kernel_width**2 * max(typical, _TINY)
        self.kernel = np.exp(-distances / self.width)  # [m, m]
        values, vectors = np.linalg.eigh(self.kernel)
        kept = values > 1e-10 * values[-1]
        self.whiten = vectors[:, kept] / np.sqrt(values[kept])

    def basis(self, X: np.ndarray, tell: Tell | None = None, *, fitted: bool = False) -> np.ndarray:
        """Rows `[n, m + 1]` for cases `[n, C, L]`; the last column is a constant.

        Args:
            X: Cases.
            tell: Told the share that is done.
            fitted: Whether these are the cases that the kernel was fitted to.
        """
        basis = np.empty((len(X), self.whiten.shape[1] + 1), self.type)
        basis[:, -1] = 1
        rest = np.arange(len(X))
        if fitted:
            basis[self.landmarks, :-1] = self.kernel @ self.whiten
            rest = np.setdiff1d(rest, self.landmarks)
        for start in range(0, len(rest), _CASES_AT_ONCE):
            rows = rest[start : start + _CASES_AT_ONCE]
            points = (self._features(np.asarray(X[rows])) - self.center) * self.scale
            kernel = np.exp(-_squared_distances(points, self.points) / self.width)
            basis[rows, :-1] = kernel.astype(self.type) @ self.whiten.astype(self.type)
            if tell is not None:
                tell("features", (start + len(rows)) / len(rest))
        return basis

    def _views(self, cases: np.ndarray) -> list[torch.Tensor]:
        """Scaled series `[n, L, C]` and their differences, where there are any."""
        scaled = (cases - self.mean[:, None]) / self.std[:, None]
        scaled = np.nan_to_num(scaled, posinf=0, neginf=0).astype(np.float32)
        series = torch.from_numpy(scaled).transpose(1, 2).contiguous()
        return [series] if series.shape[1] < 2 else [series, series.diff(dim=1)]

    def _features(self, cases: np.ndarray) -> np.ndarray:
        from sacm.backbones.minirocket import KERNEL_COUNT

        columns = []
        for transform, view in zip(self.transforms, self._views(cases), strict=True):
            values = KERNEL_COUNT * max(transform.plan.values()) * transform.length
            parts = view.split(max(1, _COMPARISONS_AT_ONCE // values))
            columns.append(torch.cat([transform(part) for part in parts]))
        features: np.ndarray = torch.cat(columns, dim=1).numpy()
        return features


def _squared_distances(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Mean squared differences `[n, m]` of rows."""
    products = (a @ b.T).astype(np.float64)
    squares = (a**2).sum(axis=1)[:, None] + (b**2).sum(axis=1)[None].astype(np.float64)
    distances: np.ndarray = np.maximum(squares - 2 * products, 0) / a.shape[1]
    return distances


class Ridge:
    """Ridge regression of (soft) labels `[n, K]` on a basis `[n, m]`."""

    def __init__(self, basis: np.ndarray) -> None:
        """Decompose the basis once; each penalty and each set of labels is then cheap."""
        values, self.vectors = np.linalg.eigh((basis.T @ basis).astype(np.float64))
        self.inverse = 1 / (np.maximum(values, 0)[:, None] + PENALTIES)  # [m, P]
        self.rotated = basis @ self.vectors.astype(basis.dtype)  # [n, m]
        self.leverage = np.empty((len(basis), len(PENALTIES)))
        for start in range(0, len(basis), _ROWS_AT_ONCE):
            rows = slice(start, start + _ROWS_AT_ONCE)
            self.leverage[rows] = self.rotated[rows] ** 2 @ self.inverse

    def fit(self, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Answers `[n, K]` that leave out each case's own label, and weights `[m, K]`.

        The penalty is the one of least squared error against the labels as they are. Wrong labels
        raise that error for all penalties alike, so they do not mislead the choice.
        """
        moments = self.rotated.T @ labels.astype(self.rotated.dtype)  # [m, K]
        best, chosen = np.inf, (labels, moments)
        for inverse, leverage in zip(self.inverse.T, self.leverage.T[:, :, None], strict=True):
            weights = inverse[:, None] * moments
            fitted = self.rotated @ weights.astype(self.rotated.dtype)
            answers = (fitted - leverage * labels) / np.maximum(1 - leverage, _TINY)
            error = float(((answers - labels) ** 2).mean())
            if error < best:
                best, chosen = error, (answers, weights)
        answers, weights = chosen
        return answers, self.vectors @ weights


def softmax(scores: np.ndarray) -> np.ndarray:
    """Row-wise probabilities."""
    grown = np.exp(scores - scores.max(axis=1, keepdims=True))
    probabilities: np.ndarray = grown / grown.sum(axis=1, keepdims=True)
    return probabilities


class Noise(NamedTuple):
    """A model of the noise: class log-probabilities are `factor * scores + bias`."""

    factor: float
    bias: np.ndarray
    transition: np.ndarray

    def probabilities(self, scores: np.ndarray) -> np.ndarray:
        """Class probabilities `[n, K]`, from scores alone."""
        return softmax(self.factor * scores + self.bias)

    def posterior(self, scores: np.ndarray, codes: np.ndarray) -> np.ndarray:
        """Probabilities `[n, K]` of the true label, from scores and the given label."""
        joint = self.probabilities(scores) * self.transition[:, codes].T
        posterior: np.ndarray = joint / np.maximum(joint.sum(axis=1, keepdims=True), _TINY**2)
        return posterior


def fit_noise(
    scores: np.ndarray,
    codes: np.ndarray,
    factors: np.ndarray,
    *,
    shares: np.ndarray | None = None,
    transition: np.ndarray | None = None,
) -> Noise:
    """The noise model under which the given labels are most likely.

    Args:
        scores: `[n, K]`, of models that did not see the case's own label.
        codes: The given labels `[n]`.
        factors: Candidates of `Noise.factor`.
        shares: Expected class shares `[K]`, to which predicted ones are drawn; None for no bias.
        transition: Known transitions; None to estimate them.
    """
    if len(codes) > NOISE_CASES:
        chosen = np.random.default_rng(0).permutation(len(codes))[:NOISE_CASES]
        scores, codes = scores[chosen], codes[chosen]
    best, fitted = -np.inf, None
    for factor in factors.tolist():
        bias = np.zeros(scores.shape[1])
        if shares is not None:
            bias = _class_bias(factor * scores, shares)
        probabilities = softmax(factor * scores + bias)
        matrix = _estimate_transition(probabilities, codes) if transition is None else transition
        likelihood = (probabilities * matrix[:, codes].T).sum(axis=1)
        total = float(np.log(np.maximum(likelihood, _TINY**2)).sum())
        if fitted is None or total > best:
            best, fitted = total, Noise(factor, bias, matrix)
    assert fitted is not None
    return fitted


def _estimate_transition(probabilities: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Transitions `[K, K]` by expectation-maximisation, from class probabilities `[n, K]`.

    The prior of each row is noise that goes to the same classes from everywhere.
    """
    classes = probabilities.shape[1]
    eye = np.eye(classes)
    member = eye[codes]
    matrix = np.where(eye > 0, 1 - FIRST_RATE, FIRST_RATE / (classes - 1))
    for _ in range(NOISE_STEPS):
        joint = probabilities * matrix[:, codes].T
        joint /= np.maximum(joint.sum(axis=1, keepdims=True), _TINY**2)
        counts = joint.T @ member  # [true, given]
        rows = counts.sum(axis=1)
        wrong = counts.sum(axis=0) - np.diag(counts)  # where wrong labels go
        goes_to = (wrong + 1) / (wrong + 1).sum()
        rate = np.clip(wrong.sum() / rows.sum(), 1e-4, 0.9)
        strength = min(0.98, rate / max((rows / rows.sum() * (1 - goes_to)).sum(), _TINY))
        prior = (1 - strength) * eye + strength * goes_to
        matrix = (counts + PRIOR_CASES * prior) / (rows + PRIOR_CASES)[:, None]
    return matrix


def _class_bias(scores: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """A bias `[K]` with which mean probabilities are `shares^BALANCE * predicted^(1-BALANCE)`."""
    bias = np.zeros(scores.shape[1])
    predicted = np.maximum(softmax(scores).mean(axis=0), 1e-6)
    goal = BALANCE * np.log(shares) + (1 - BALANCE) * np.log(predicted)
    goal -= np.log(np.exp(goal).sum())
    for _ in range(20):
        step = goal - np.log(np.maximum(softmax(scores + bias).mean(axis=0), 1e-9))
        bias += step
        if np.abs(step).max() < 1e-3:
            break
    return bias


class SelfTrained(NamedTuple):
    """Ridge regression on labels that it has itself corrected."""

    weights: np.ndarray  # [m, K]
    first_weights: np.ndarray  # [m, K], of the ridge on the labels as given
    noise: Noise
    posterior: np.ndarray  # [n, K]


def self_train(
    basis: np.ndarray, codes: np.ndarray, classes: int, *, transition: np.ndarray | None = None
) -> SelfTrained:
    """Fit ridge and noise model in turns, the ridge to the posterior of the noise model.

    Expected class shares start as those of the given labels and follow the posterior, because
    one-sided noise changes them.
    """
    ridge = Ridge(basis)
    posterior = np.eye(classes)[codes]
    scores, first_weights = ridge.fit(posterior)
    weights = first_weights
    for turn in range(PART_ROUNDS if transition is None else ROUNDS):
        if turn:
            scores, weights = ridge.fit(posterior)
        shares = (posterior.sum(axis=0) + 1) / (len(codes) + classes)
        noise = fit_noise(scores, codes, SHARPNESS, shares=shares, transition=transition)
        previous, posterior = posterior, noise.posterior(scores, codes)
        if turn and np.abs(posterior - previous).sum(axis=1).mean() / 2 < SETTLED:
            break
    return SelfTrained(weights, first_weights, noise, posterior)


def divide(codes: np.ndarray, groups: np.ndarray | None, random: np.random.Generator) -> np.ndarray:
    """A number `[N]` of the third that each case is in: by whole groups, or evenly by class."""
    numbers = np.zeros(len(codes), dtype=np.int64)
    if groups is not None:
        _, members, sizes = np.unique(groups, return_inverse=True, return_counts=True)
        filled = np.zeros(min(PARTS, len(sizes)))
        for group in sorted(random.permutation(len(sizes)), key=lambda each: -sizes[each]):
            part = int(filled.argmin())
            filled[part] += sizes[group]
            numbers[members == group] = part
        return numbers
    placed = 0
    for code in np.unique(codes):
        rows = random.permutation(np.flatnonzero(codes == code))
        numbers[rows] = (np.arange(len(rows)) + placed) % PARTS
        placed += len(rows)
    return numbers


def kappa(first: np.ndarray, second: np.ndarray, classes: int) -> float:
    """Agreement of two sets of codes `[N]` beyond chance (Cohen's kappa): 1 is full agreement."""
    shares = [np.bincount(codes, minlength=classes) / len(codes) for codes in (first, second)]
    chance = float(shares[0] @ shares[1])
    return float(((first == second).mean() - chance) / max(1 - chance, _TINY))


class Judgement(NamedTuple):
    """What the cases say about their labels, by models that did not see them.

    `margins` and `rough_rate` are of ridges on the labels as given, `agreement` and `skill` of
    self-trained models.
    """

    suggested: np.ndarray  # [N]: codes of the most probable true labels
    posterior: np.ndarray  # [N]: their probability by the noise model
    margins: np.ndarray  # [N]: score of the suggestion above that of the given label
    transition: np.ndarray  # [K, K]
    agreement: float  # of two models, beyond chance
    skill: float  # agreement of a model with the given labels, beyond chance
    rough_rate: float  # share of wrong labels if models err independently: too high if they do not


def judge_labels(
    basis: np.ndarray,
    codes: np.ndarray,
    classes: int,
    *,
    divisions: int,
    groups: np.ndarray | None = None,
    seed: int = 0,
    tell: Tell = lambda step, share: None,
) -> Judgement:
    """Judge each third by a model of the others, learn transitions so, then judge all cases.

    Models of many cases agree even where classes overlap. Their limits were set on few cases, so
    agreement, skill and rough rate are measured on few.
    """
    random = np.random.default_rng(seed)
    probabilities, scores = np.zeros((2, len(codes), classes))
    answers, first_answers = np.zeros((2, divisions, len(codes)), dtype=np.int64)
    for number in range(divisions):
        parts = divide(codes, groups, random)
        for part in np.unique(parts).tolist():
            outside, inside = parts != part, parts == part
            model = self_train(basis[outside], codes[outside], classes)
            held_out = model.noise.probabilities(basis[inside] @ model.weights)
            first_scores = basis[inside] @ model.first_weights
            probabilities[inside] += held_out / divisions
            scores[inside] += first_scores / divisions
            answers[number, inside] = held_out.argmax(axis=1)
            first_answers[number, inside] = first_scores.argmax(axis=1)
            tell("parts", (number * PARTS + part + 1) / (divisions * PARTS))
    log_probabilities = np.log(np.maximum(probabilities, _LEAST_PROBABILITY))
    transition = fit_noise(log_probabilities, codes, TEMPERATURES).transition
    tell("final fit", 0.0)
    final = self_train(basis, codes, classes, transition=transition)
    tell("final fit", 1.0)

    cases = np.arange(len(codes))
    suggested = final.posterior.argmax(axis=1)
    agreement, skill = _agreements(answers, codes, classes)
    first_agreement, first_skill = _agreements(first_answers, codes, classes)
    # If models and labels err independently, agreement is accuracy², skill accuracy * (1 - noise).
    reliability = first_skill / np.sqrt(max(first_agreement, _TINY))
    judged = Judgement(
        suggested=suggested,
        posterior=final.posterior[cases, suggested],
        margins=scores[cases, suggested] - scores[cases, codes],
        transition=transition,
        agreement=agreement,
        skill=skill,
        rough_rate=float(1 - np.clip(reliability, 0, 1)) * (1 - 1 / classes),
    )
    if len(codes) <= SAMPLE_CASES:
        return judged
    rows = random.permutation(len(codes))[:SAMPLE_CASES]
    few = judge_labels(
        basis[rows],
        codes[rows],
        classes,
        divisions=divisions,
        groups=None if groups is None else groups[rows],
        seed=seed,
    )
    return judged._replace(agreement=few.agreement, skill=few.skill, rough_rate=few.rough_rate)


def _agreements(answers: np.ndarray, codes: np.ndarray, classes: int) -> tuple[float, float]:
    """Mean agreement of answers `[R, N]` with one another, and with the given labels."""
    pairs = itertools.combinations(answers, 2)
    return (
        float(np.mean([kappa(first, second, classes) for first, second in pairs])),
        float(np.mean([kappa(each, codes, classes) for each in answers])),
    )
