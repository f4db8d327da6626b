"""Which class each case belongs to, judged from labels of which some are wrong.

Random-convolution features, ridge regression of the labels on a kernel of them, and a model of the
noise: the true label is hidden, and a transition matrix says how often it was written down as
another. Answers are cross-fitted, so that no case takes part in the answer on its own label.

Shapes: codes of the given labels `[N]` in 0 … K-1; scores and probabilities `[N, K]`; transitions
`[K, K]`, `transition[true, given]`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch

Tell = Callable[[str, float], None]
"""Called with the name of a step and the share of it that is done."""
_TINY = 1e-12
_LEAST_PROBABILITY = 1e-4  # of a cross-fitted answer, so that no single one decides
_LEAST_SPREAD = 1e-6  # of a feature that is used
# Sizes of blocks that bound the memory.
_CASES_AT_ONCE, _ROWS_AT_ONCE, _COMPARISONS_AT_ONCE = 500, 10_000, 30_000_000


@dataclass(frozen=True)
class LabelSettings:
    """Every constant of the search for wrong labels, and when its result is trusted.

    Attributes:
        features: Random-convolution features of the series, and as many of its first differences.
        kernel_width: Width of the Gaussian kernel in median distances of two cases.
        exact_cases: Up to this many cases the kernel is exact.
        landmarks: Beyond, the kernel is approximated from this many random cases (Nystroem).
        many_features: Features of each view where the kernel is approximated.
        penalties: Candidates of the ridge penalty; leave-one-out squared error chooses.
        sharpness: Candidates of the factor that turns scores into log-probabilities.
        temperatures: The same for cross-fitted log-probabilities. Below 1, uncertain answers would
            explain wrong labels.
        folds: Parts of the cross-fitting; `folds_of_many` where the kernel is approximated.
        fold_rounds: Most rounds of self-training in a fold; `rounds` in the final fit.
        settled: Self-training ends when posteriors change by less than this on average.
        balance: How far predicted class shares are drawn to the expected ones, 0 to 1.
        first_rate: Noise rate at which the estimation of transitions starts.
        noise_steps: Steps of expectation-maximisation.
        prior_cases: Weight of the prior on each row of the transitions, in cases. The prior is
            noise that goes to the same classes from everywhere.
        model_cases: The noise model is fitted to at most this many random cases.
        resamples: Bootstrap samples for the interval of the noise rate.
        core_share: Share of the cases of each predicted class, the most confident ones, whose
            disagreement with the given labels limits how many labels are flagged.
        least_cases: Least cases a class, on average.
        least_skill: Least agreement of cross-fitted answers with given labels, beyond chance.
        least_stability: Least agreement of final and cross-fitted suggestions, beyond chance.
        least_coherence: Least agreement of suggestions with those of similar cases, beyond chance,
            with a standard error added: where it is lower, classes overlap, and disagreement does
            not mean wrong labels.
        confidence_weights: Logistic regression that turns (margin of the cross-fitted ridge,
            cross-fitted log-odds, 1) into the probability that a suggestion is right.
        least_confidence: Cases below it are not flagged.
        least_margin: Where few labels are wrong, cases below it are not flagged: such cases are
            rather at the border of two classes. It is asked for in full up to a noise rate of
            `low_rate` among the most confident cases, and not at all from `high_rate` on.
    """

    features: int = 10_000
    kernel_width: float = 1.4
    exact_cases: int = 2_000
    landmarks: int = 1_000
    many_features: int = 2_520
    penalties: tuple[float, ...] = tuple((10.0 ** np.arange(-3, 2.01, 0.5)).tolist())
    sharpness: tuple[float, ...] = tuple(np.geomspace(1, 40, 9).tolist())
    temperatures: tuple[float, ...] = tuple(np.geomspace(1, 4, 8).tolist())
    folds: int = 10
    folds_of_many: int = 5
    fold_rounds: int = 6
    rounds: int = 8
    settled: float = 0.002
    balance: float = 0.75
    first_rate: float = 0.2
    noise_steps: int = 20
    prior_cases: float = 10.0
    model_cases: int = 10_000
    resamples: int = 100
    core_share: float = 0.3
    least_cases: float = 3.0
    least_skill: float = 0.15
    least_stability: float = 0.75
    least_coherence: float = 0.96
    confidence_weights: tuple[float, ...] = (3.33, 0.13, -0.08)
    least_confidence: float = 0.5
    least_margin: float = 0.7
    low_rate: float = 0.1
    high_rate: float = 0.25


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
        random = np.random.default_rng(seed)
        count = len(X) if exact else settings.landmarks
        self.landmarks = np.sort(random.permutation(len(X))[:count])
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
            basis[rows, :-1] = kernel @ self.whiten
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

    def __init__(self, basis: np.ndarray, penalties: tuple[float, ...]) -> None:
        """Decompose the basis once; each penalty and each set of labels is then cheap."""
        values, self.vectors = np.linalg.eigh((basis.T @ basis).astype(np.float64))
        self.inverse = 1 / (np.maximum(values, 0)[:, None] + np.asarray(penalties))  # [m, P]
        self.rotated = basis @ self.vectors.astype(basis.dtype)  # [n, m]
        self.leverage = np.empty((len(basis), len(penalties)))
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

    def posterior(self, scores: np.ndarray, codes: np.ndarray) -> np.ndarray:
        """Probabilities `[n, K]` of the true label, from scores and the given label."""
        joint = softmax(self.factor * scores + self.bias) * self.transition[:, codes].T
        posterior: np.ndarray = joint / np.maximum(joint.sum(axis=1, keepdims=True), _TINY**2)
        return posterior


def fit_noise(
    scores: np.ndarray,
    codes: np.ndarray,
    factors: tuple[float, ...],
    settings: LabelSettings,
    *,
    shares: np.ndarray | None = None,
    transition: np.ndarray | None = None,
) -> Noise:
    """The noise model under which the given labels are most likely.

    Args:
        scores: `[n, K]`, of models that did not see the case's own label.
        codes: The given labels `[n]`.
        factors: Candidates of `Noise.factor`.
        settings: Constants.
        shares: Expected class shares `[K]`, to which predicted ones are drawn; None for no bias.
        transition: Known transitions; None to estimate them.
    """
    if len(codes) > settings.model_cases:
        chosen = np.random.default_rng(0).permutation(len(codes))[: settings.model_cases]
        scores, codes = scores[chosen], codes[chosen]
    best, fitted = -np.inf, None
    for factor in factors:
        bias = np.zeros(scores.shape[1])
        if shares is not None:
            bias = _class_bias(factor * scores, shares, settings.balance)
        probabilities = softmax(factor * scores + bias)
        matrix = transition
        if matrix is None:
            matrix = estimate_transition(probabilities, codes, settings)
        likelihood = (probabilities * matrix[:, codes].T).sum(axis=1)
        total = float(np.log(np.maximum(likelihood, _TINY**2)).sum())
        if fitted is None or total > best:
            best, fitted = total, Noise(factor, bias, matrix)
    assert fitted is not None
    return fitted


def estimate_transition(
    probabilities: np.ndarray,
    codes: np.ndarray,
    settings: LabelSettings,
    *,
    start: np.ndarray | None = None,
    steps: int | None = None,
    weights: np.ndarray | None = None,
) -> np.ndarray:
    """Transitions `[K, K]` by expectation-maximisation, from class probabilities `[n, K]`."""
    classes = probabilities.shape[1]
    eye = np.eye(classes)
    member = eye[codes] if weights is None else eye[codes] * weights[:, None]
    matrix = start
    if matrix is None:
        other = settings.first_rate / (classes - 1)
        matrix = np.where(eye > 0, 1 - settings.first_rate, other)
    for _ in range(steps or settings.noise_steps):
        joint = probabilities * matrix[:, codes].T
        joint /= np.maximum(joint.sum(axis=1, keepdims=True), _TINY**2)
        counts = joint.T @ member  # [true, given]
        rows = counts.sum(axis=1)
        wrong = counts.sum(axis=0) - np.diag(counts)  # where wrong labels go
        goes_to = (wrong + 1) / (wrong + 1).sum()
        rate = np.clip(wrong.sum() / rows.sum(), 1e-4, 0.9)
        strength = min(0.98, rate / max((rows / rows.sum() * (1 - goes_to)).sum(), _TINY))
        prior = (1 - strength) * eye + strength * goes_to
        matrix = (counts + settings.prior_cases * prior) / (rows + settings.prior_cases)[:, None]
    return matrix


def _class_bias(scores: np.ndarray, shares: np.ndarray, strength: float) -> np.ndarray:
    """A bias `[K]` with which the mean probabilities are `shares^strength * own^(1-strength)`."""
    bias = np.zeros(scores.shape[1])
    own = np.maximum(softmax(scores).mean(axis=0), 1e-6)
    goal = strength * np.log(shares) + (1 - strength) * np.log(own)
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
    noise: Noise
    posterior: np.ndarray  # [n, K]
    answers: np.ndarray  # [n, K], leave-one-out scores of the ridge on the posterior
    first_weights: np.ndarray  # [m, K], of the ridge on the labels as given


def self_train(
    basis: np.ndarray,
    codes: np.ndarray,
    classes: int,
    settings: LabelSettings,
    *,
    transition: np.ndarray | None = None,
) -> SelfTrained:
    """Fit ridge and noise model in turns, the ridge to the posterior of the noise model.

    Expected class shares start as those of the given labels and follow the posterior, because
    one-sided noise changes them.
    """
    ridge = Ridge(basis, settings.penalties)
    posterior = np.eye(classes)[codes]
    rounds = settings.fold_rounds if transition is None else settings.rounds
    first_weights = None
    for turn in range(rounds):
        scores, weights = ridge.fit(posterior)
        first_weights = weights if first_weights is None else first_weights
        shares = (posterior.sum(axis=0) + 1) / (len(codes) + classes)
        noise = fit_noise(
            scores, codes, settings.sharpness, settings, shares=shares, transition=transition
        )
        previous, posterior = posterior, noise.posterior(scores, codes)
        change = np.abs(posterior - previous).sum(axis=1).mean() / 2
        if turn and change < settings.settled:
            break
    assert first_weights is not None
    answers = ridge.fit(posterior)[0]
    return SelfTrained(weights, noise, posterior, answers, first_weights)


def make_folds(
    codes: np.ndarray, count: int, groups: np.ndarray | None, random: np.random.Generator
) -> np.ndarray:
    """A fold number `[N]` for each case: by whole groups, or evenly from each class."""
    folds = np.zeros(len(codes), dtype=np.int64)
    if groups is not None:
        names, members, sizes = np.unique(groups, return_inverse=True, return_counts=True)
        filled = np.zeros(min(count, len(names)))
        for group in sorted(random.permutation(len(names)), key=lambda each: -sizes[each]):
            fold = int(filled.argmin())
            filled[fold] += sizes[group]
            folds[members == group] = fold
        return folds
    placed = 0
    for code in np.unique(codes):
        rows = random.permutation(np.flatnonzero(codes == code))
        folds[rows] = (np.arange(len(rows)) + placed) % count
        placed += len(rows)
    return folds


class CrossFitted(NamedTuple):
    """Answers of models that were fitted without the fold of a case."""

    log_probabilities: np.ndarray  # [N, K], after self-training
    scores: np.ndarray  # [N, K], of the ridge on the labels as given


def cross_fit(
    basis: np.ndarray,
    codes: np.ndarray,
    classes: int,
    folds: np.ndarray,
    settings: LabelSettings,
    tell: Tell,
) -> CrossFitted:
    """Self-train without each fold in turn and answer for its cases."""
    log_probabilities, scores = np.zeros((2, len(codes), classes))
    numbers = np.unique(folds)
    for number in numbers:
        inside = folds == number
        model = self_train(basis[~inside], codes[~inside], classes, settings)
        held_out = basis[inside]
        logits = model.noise.factor * (held_out @ model.weights) + model.noise.bias
        log_probabilities[inside] = np.log(np.maximum(softmax(logits), _LEAST_PROBABILITY))
        scores[inside] = held_out @ model.first_weights
        tell("cross-fitting", (number + 1) / len(numbers))
    return CrossFitted(log_probabilities, scores)


class Judgement(NamedTuple):
    """What the cases say about their labels."""

    suggested: np.ndarray  # [N]: codes of the most probable true labels
    probability: np.ndarray  # [N]: posterior of the suggestion
    cross_fitted: np.ndarray  # [N]: the same by models that never saw the case's own label
    margins: np.ndarray  # [N]: cross-fitted score of the suggestion above that of the given label
    transition: np.ndarray  # [K, K]
    rate: float
    rate_interval: tuple[float, float]
    core_rate: float  # disagreement of the most confident cases with given labels
    core_cases: int
    skill: float
    stability: float
    coherence: float
    coherence_error: float  # standard error of the coherence


def judge_labels(
    basis: np.ndarray,
    codes: np.ndarray,
    classes: int,
    settings: LabelSettings,
    *,
    groups: np.ndarray | None = None,
    seed: int = 0,
    tell: Tell = lambda step, share: None,
) -> Judgement:
    """Cross-fit, learn the transitions from those answers, then judge every case with them."""
    random = np.random.default_rng(seed)
    exact = len(codes) <= settings.exact_cases
    count = settings.folds if exact else settings.folds_of_many
    folds = make_folds(codes, count, groups, random)
    log_probabilities, scores = cross_fit(basis, codes, classes, folds, settings, tell)
    noise = fit_noise(log_probabilities, codes, settings.temperatures, settings)
    honest = noise.posterior(log_probabilities, codes)
    tell("final fit", 0.0)
    final = self_train(basis, codes, classes, settings, transition=noise.transition)
    tell("final fit", 1.0)

    cases = np.arange(len(codes))
    suggested = final.posterior.argmax(axis=1)
    coherent = float((final.answers.argmax(axis=1) == suggested).mean())
    core_rate, core_cases = _core_disagreement(scores, codes, settings.core_share)
    return Judgement(
        suggested=suggested,
        probability=final.posterior[cases, suggested],
        cross_fitted=honest[cases, suggested],
        margins=scores[cases, suggested] - scores[cases, codes],
        transition=noise.transition,
        rate=float(1 - honest[cases, codes].mean()),
        rate_interval=_rate_interval(noise, log_probabilities, codes, settings, random),
        core_rate=core_rate,
        core_cases=core_cases,
        skill=_beyond_chance((log_probabilities.argmax(axis=1) == codes).mean(), classes),
        stability=_beyond_chance((suggested == honest.argmax(axis=1)).mean(), classes),
        coherence=_beyond_chance(coherent, classes),
        coherence_error=float(np.sqrt(coherent * (1 - coherent) / len(codes)) / (1 - 1 / classes)),
    )


def _beyond_chance(agreement: float, classes: int) -> float:
    """1 for full agreement, 0 for that of guessing among the classes."""
    return float((agreement - 1 / classes) / (1 - 1 / classes))


def _core_disagreement(scores: np.ndarray, codes: np.ndarray, share: float) -> tuple[float, int]:
    """Disagreement with given labels among the most confident cases of each predicted class."""
    predicted = scores.argmax(axis=1)
    ordered = np.sort(scores, axis=1)
    margin = ordered[:, -1] - ordered[:, -2]
    wrong, used = 0.0, 0
    for code in np.unique(predicted):
        rows = np.flatnonzero(predicted == code)
        core = rows[np.argsort(-margin[rows], kind="stable")][: int(np.ceil(share * len(rows)))]
        wrong += len(rows) * float((codes[core] != code).mean())
        used += len(core)
    return wrong / len(codes), used


def _rate_interval(
    noise: Noise,
    log_probabilities: np.ndarray,
    codes: np.ndarray,
    settings: LabelSettings,
    random: np.random.Generator,
) -> tuple[float, float]:
    """95 % interval of the noise rate: the noise model fitted to resampled cases."""
    chosen = random.permutation(len(codes))[: settings.exact_cases]
    probabilities = softmax(noise.factor * log_probabilities[chosen] + noise.bias)
    codes, rates = codes[chosen], []
    for _ in range(settings.resamples):
        weights = random.multinomial(len(codes), np.full(len(codes), 1 / len(codes)))
        matrix = estimate_transition(
            probabilities, codes, settings, start=noise.transition, steps=5, weights=weights
        )
        resampled = noise._replace(transition=matrix)
        right = resampled.posterior(log_probabilities[chosen], codes)
        rates.append(1 - right[np.arange(len(codes)), codes] @ weights / len(codes))
    low, high = np.quantile(rates, (0.025, 0.975))
    return float(low), float(high)
