"""Which class each case belongs to, judged from labels of which some are wrong.

A kernel of random-convolution features, ridge regression of the labels on it, and a noise model, in
which the true label is hidden; docs/labels.md says how they work together. Shapes: codes of the
given labels `[N]` in 0 … K-1; scores and probabilities `[N, K]`; `transition[true, given]`.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch

from sacm.quality.predictor import Array

KERNEL_WIDTH = 1.4  # of the Gaussian kernel, in median distances of two cases
PENALTIES = 10.0 ** np.arange(-3, 2.01, 0.5)  # of the ridge; errors of left-out cases choose
SHARPNESS = np.geomspace(1, 40, 5)  # candidates of the factor from scores to log-probabilities
TEMPERATURES = np.geomspace(1, 4, 8)  # of held-out answers; below 1 unsure ones would explain noise
PARTS = 3  # into which cases are divided
ROUNDS = 6  # of self-training, at most
GIVEN_SHARES = (0.0, 0.5)  # candidates of the weight of given class shares in the expected ones
BALANCE = 0.75  # how far predicted class shares are drawn to the expected ones, 0 to 1
FIRST_RATE = 0.2  # noise rate at which the estimation of transitions starts
NOISE_STEPS = 10  # of expectation-maximisation
PRIOR_CASES = 4.0  # weight of the prior on each row of the transitions, in cases
NOISE_CASES = 10_000  # the noise model is fitted to at most this many random cases
# Of the evidence of `_log_odds`: logistic regression on development archives (results/labels).
CONFIDENCE_WEIGHTS = np.array([0.05, 0.73, 0.43, -5.1, 3.2])
CONFIDENCE_CONSTANT = -2.23
MOST_CERTAIN = 0.98  # mean probabilities of a class beyond this count as this
MOST_ODDS = 8.0  # larger log-odds count as this
_LEAST_PROBABILITY = 1e-4  # of a held-out answer, so that no single one decides
_TINY = 1e-12
_CASES_AT_ONCE = 500  # to bound the memory


class CaseKernel:
    """A Gaussian kernel of random-convolution features, as a basis with the same inner products.

    Features are of the series `[N, C, L]` and of its differences; missing values count as the mean.
    With `landmarks`, so many random cases approximate the kernel (Nystroem). `own_basis`
    `[m, m + 1]` is the basis of the landmarks, or of all cases.
    """

    def __init__(
        self, X: Array, *, features: int, landmarks: int | None = None, seed: int = 0
    ) -> None:
        from sklearn.metrics.pairwise import euclidean_distances
        from sklearn.preprocessing import StandardScaler

        from sacm.backbones.minirocket import MiniRocketConfig, Transform

        self.dtype = np.float64 if landmarks is None else np.float32
        sample = X[np.sort(np.random.default_rng(seed).permutation(len(X))[:landmarks])]
        observed = np.ma.masked_invalid(np.asarray(sample, np.float64))
        self.mean = observed.mean(axis=(0, 2)).filled(0)[:, None]
        std = observed.std(axis=(0, 2)).filled(0)[:, None]
        self.std = np.where(std > 0, std, 1)
        self.transforms, config = [], MiniRocketConfig(features=features)
        for view, cases in enumerate(self._views(sample)):
            transform = Transform(config, input_len=cases.shape[1], channels=len(std))
            transform.fit(cases, torch.Generator().manual_seed(seed + view))
            self.transforms.append(transform)
        self.scaler = StandardScaler()
        self.points = self.scaler.fit_transform(self._features(sample))
        distances = euclidean_distances(self.points, squared=True)
        typical = np.median(distances[np.triu_indices(len(distances), 1)])
        self.sharpness = 1 / (2 * KERNEL_WIDTH**2 * max(float(typical), _TINY))
        kernel = np.exp(-self.sharpness * distances.astype(np.float64))  # [m, m]
        values, vectors = np.linalg.eigh(kernel)
        kept = values > 1e-10 * values[-1]
        self.whiten = vectors[:, kept] / np.sqrt(values[kept])
        self.own_basis = np.pad(kernel @ self.whiten, ((0, 0), (0, 1)), constant_values=1)

    def basis(self, X: Array, *, progress: bool = False) -> Array:
        """Rows `[n, m + 1]` for cases `[n, C, L]`; the last column is a constant."""
        from sklearn.metrics.pairwise import rbf_kernel

        basis = np.ones((len(X), self.whiten.shape[1] + 1), self.dtype)
        for start in range(0, len(X), _CASES_AT_ONCE):
            if progress and start % (20 * _CASES_AT_ONCE) == 0:
                _say(f"features of case {start:,} of {len(X):,}")
            rows = slice(start, start + _CASES_AT_ONCE)
            points = self.scaler.transform(self._features(X[rows]))
            kernel = rbf_kernel(points, self.points, gamma=self.sharpness)
            basis[rows, :-1] = kernel.astype(self.dtype) @ self.whiten
        return basis

    def _views(self, cases: Array) -> list[torch.Tensor]:
        """Scaled series `[n, L, C]` and their differences, where there are any."""
        scaled = (np.asarray(cases, np.float64) - self.mean) / self.std
        scaled = np.nan_to_num(scaled, posinf=0, neginf=0).astype(np.float32)
        series = torch.from_numpy(scaled).transpose(1, 2).contiguous()
        return [series] if series.shape[1] < 2 else [series, series.diff(dim=1)]

    def _features(self, cases: Array) -> Array:
        """Features `[n, F]` of both views."""
        views = zip(self.transforms, self._views(cases), strict=True)
        columns = [torch.cat([each(part) for part in each.split(view)]) for each, view in views]
        return torch.cat(columns, dim=1).numpy()


class Ridge:
    """Ridge regression of (soft) labels `[n, K]` on a basis `[n, m]`, which is decomposed once."""

    def __init__(self, basis: Array) -> None:
        if len(basis) < basis.shape[1]:
            values, left = np.linalg.eigh((basis @ basis.T).astype(np.float64))
            sizes = np.sqrt(np.maximum(values, _TINY))
            self.rotated, self.vectors = left * sizes, basis.T @ left / sizes
        else:
            values, self.vectors = np.linalg.eigh((basis.T @ basis).astype(np.float64))
            self.rotated = basis @ self.vectors.astype(basis.dtype)  # [n, min(n, m)]
        self.inverse = 1 / (np.maximum(values, 0)[:, None] + PENALTIES)
        self.leverage = self.rotated**2 @ self.inverse.astype(basis.dtype)  # [n, penalties]

    def fit(self, labels: Array) -> tuple[Array, Array]:
        """Answers `[n, K]` that leave out each case's own label, and weights `[m, K]`."""
        moments = self.rotated.T @ labels.astype(self.rotated.dtype)
        best = np.inf, labels, moments
        for inverse, leverage in zip(self.inverse.T, self.leverage.T[:, :, None], strict=True):
            weights = inverse[:, None] * moments
            fitted = self.rotated @ weights.astype(self.rotated.dtype)
            answers = (fitted - leverage * labels) / np.maximum(1 - leverage, _TINY)
            error = float(((answers - labels) ** 2).mean())
            best = (error, answers, weights) if error < best[0] else best
        return best[1], self.vectors @ best[2]


def softmax(scores: Array) -> Array:
    """Probabilities along the last axis; on small arrays faster than SciPy's."""
    return torch.from_numpy(scores).softmax(dim=-1).numpy()


class Noise(NamedTuple):
    """A model of the noise: class log-probabilities are `factor * scores + bias`."""

    likelihood: float  # mean log-likelihood of the given labels
    factor: float
    bias: Array
    transition: Array

    def probabilities(self, scores: Array) -> Array:
        """Class probabilities `[n, K]`, from scores alone."""
        return softmax(self.factor * scores + self.bias)


def true_label(probabilities: Array, transition: Array, codes: Array) -> Array:
    """Probabilities `[n, K]` of the true label, from those without the given label."""
    joint = probabilities * transition[:, codes].T
    return np.asarray(joint / np.maximum(joint.sum(axis=1, keepdims=True), _TINY**2))


def fit_noise(
    scores: Array, codes: Array, factors: Array, shares: Array | None, known: Array | None
) -> Noise:
    """The likeliest noise model of scores that did not see a case's own label.

    Predicted class shares are drawn to `shares` `[K]`; transitions are estimated if not known.
    """
    if len(codes) > NOISE_CASES:
        chosen = np.random.default_rng(0).permutation(len(codes))[:NOISE_CASES]
        scores, codes = scores[chosen], codes[chosen]
    candidates = []
    for factor in factors.tolist():
        bias = np.zeros(scores.shape[1]) if shares is None else _class_bias(factor * scores, shares)
        probabilities = softmax(factor * scores + bias)
        matrix = _estimate_transition(probabilities, codes) if known is None else known
        likelihood = (probabilities * matrix[:, codes].T).sum(axis=1)
        mean = float(np.log(np.maximum(likelihood, _TINY**2)).mean())
        candidates.append(Noise(mean, factor, bias, matrix))
    return max(candidates, key=lambda noise: noise.likelihood)


def _estimate_transition(probabilities: Array, codes: Array) -> Array:
    """Transitions by expectation-maximisation; the prior of a row is noise with common targets."""
    eye = np.eye(probabilities.shape[1])
    member = eye[codes]
    matrix = np.where(eye > 0, 1 - FIRST_RATE, FIRST_RATE / (len(eye) - 1))
    for _ in range(NOISE_STEPS):
        counts = true_label(probabilities, matrix, codes).T @ member  # [true, given]
        rows = counts.sum(axis=1)
        wrong = counts.sum(axis=0) - np.diag(counts)  # where wrong labels go
        goes_to = (wrong + 1) / (wrong + 1).sum()
        rate = np.clip(wrong.sum() / rows.sum(), 1e-4, 0.9)
        strength = min(0.98, rate / max((rows / rows.sum() * (1 - goes_to)).sum(), _TINY))
        prior = (1 - strength) * eye + strength * goes_to
        matrix = (counts + PRIOR_CASES * prior) / (rows + PRIOR_CASES)[:, None]
    return matrix


def _class_bias(scores: Array, shares: Array) -> Array:
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


def find_clusters(basis: Array, classes: int) -> Array:
    """Divide cases into as many clusters as there are classes; labels play no part."""
    from sklearn.cluster import KMeans

    chosen = np.random.default_rng(0).permutation(len(basis))[:NOISE_CASES]
    with warnings.catch_warnings(action="ignore"):  # there may be fewer distinct cases
        means = KMeans(classes, n_init=10, random_state=0).fit(basis[chosen])
    return np.asarray(means.predict(basis))


def join_clusters(member: Array, clusters: Array) -> Array:
    """Half the given label, one-hot `[n, K]`, and half the class that most of a cluster are."""
    from scipy.optimize import linear_sum_assignment

    eye = np.eye(member.shape[1])
    _, names = linear_sum_assignment(eye[clusters].T @ member, maximize=True)
    return np.asarray((member + eye[names[clusters]]) / 2)


def self_train(
    ridge: Ridge, member: Array, start: Array, given_shares: float, transition: Array | None
) -> Iterator[tuple[Array, Noise, Array]]:
    """Fit a ridge to the posterior of a noise model and the noise model to its answers, in turns.

    `member` are the given labels, one-hot `[n, K]`, `start` the first posterior. Yields weights of
    the ridge, the noise model and the posterior after each round.
    """
    posterior, codes, given = start, member.argmax(axis=1), np.log(member.sum(axis=0) + 1)
    for _ in range(ROUNDS):
        scores, weights = ridge.fit(posterior)
        believed = np.log(posterior.sum(axis=0) + 1)
        shares = softmax(given_shares * given + (1 - given_shares) * believed)
        noise = fit_noise(scores, codes, SHARPNESS, shares, transition)
        posterior = true_label(noise.probabilities(scores), noise.transition, codes)
        yield weights, noise, posterior


def divide(codes: Array, groups: Array, random: np.random.Generator) -> Array:
    """The third `[N]` each case is in: groups dealt in turn, the largest first, or by class."""
    _, first, members, sizes = np.unique(groups, True, True, True)
    shuffled = random.permutation(len(sizes))
    order = shuffled[np.lexsort((codes[first[shuffled]], -sizes[shuffled]))]
    return (np.argsort(order) % PARTS)[members]


def judge_labels(
    basis: Array, codes: Array, groups: Array, *, many: bool
) -> tuple[Array, Array, Array, float, float]:
    """Judge each third by models of the others, estimate transitions, then judge all cases.

    Of both starts, both expectations of class shares and all rounds, those held-out answers count
    under which the given labels are likeliest. Returns codes of the most probable labels and how
    sure they are `[N]`; transitions; the share of labels that models of other cases contradict; and
    the log-likelihood of labels that cases add to class shares, for each class.
    """
    random, divisions = np.random.default_rng(0), 2 if many else 3
    member = np.eye(int(codes.max()) + 1)[codes]
    clusters = find_clusters(basis, member.shape[1])
    ways = [(clustered, shares) for clustered in (False, True) for shares in GIVEN_SHARES]
    answers = np.zeros((len(ways), ROUNDS, *member.shape), np.float32)
    for number in range(divisions):
        parts = divide(codes, groups, random)
        for part in np.unique(parts).tolist():
            if many:
                _say(f"part {number * PARTS + part + 1} of {divisions * PARTS}")
            outside, inside = parts != part, parts == part
            ridge, cases, given = Ridge(basis[outside]), basis[inside], member[outside]
            starts = given, join_clusters(given, clusters[outside])
            for (clustered, shares), rounds in zip(ways, answers, strict=True):
                models = self_train(ridge, given, starts[clustered], shares, None)
                for answer, (weights, noise, _) in zip(rounds, models, strict=True):
                    answer[inside] += noise.probabilities(cases @ weights) / divisions
    answers = np.maximum(answers, _LEAST_PROBABILITY)
    candidates = [
        (fit_noise(np.log(answer), codes, TEMPERATURES, None, None), way, answer)
        for way, rounds in zip(ways, answers, strict=True)
        for answer in rounds
    ]
    noise, (clustered, shares), held_out = max(candidates, key=lambda each: each[0].likelihood)
    start = join_clusters(member, clusters) if clustered else member
    *_, (_, _, posterior) = self_train(Ridge(basis), member, start, shares, noise.transition)
    suggested = posterior.argmax(axis=1)
    right = 1 / (1 + np.exp(-_log_odds(held_out, suggested, codes)))
    confidence = np.where(suggested == codes, posterior.max(axis=1), right)
    doubt = float((held_out.argmax(axis=1) != codes).mean())
    alone = member.mean(axis=0)
    gain = noise.likelihood - float(np.log(alone) @ alone)
    evidence = gain * len(codes) / member.shape[1]
    return suggested, confidence, noise.transition, doubt, evidence


def _log_odds(held_out: Array, suggested: Array, codes: Array) -> Array:
    """Log-odds `[N]` that a suggestion, not the given label, is right, from held-out answers.

    Their weights are of: the odds of the two labels; how certain models are of the suggested class,
    and of the given one; how much surer they are of suggestions that agree with the given labels
    than of others (0.5: wrong labels, 1: overlapping classes); how many cases classes keep.
    """
    from scipy.stats import rankdata

    classes, cases = held_out.shape[1], np.arange(len(codes))
    given, kept = (np.bincount(each, minlength=classes) for each in (codes, suggested))
    sure = held_out[cases, suggested]
    certain = np.bincount(suggested, sure, minlength=classes) / np.maximum(kept, 1)
    certain = np.clip(certain, 1 - MOST_CERTAIN, MOST_CERTAIN)
    certain = np.log(certain / (1 - certain))
    odds = np.clip(np.log(sure / held_out[cases, codes]), -MOST_ODDS, MOST_ODDS)
    agreed = suggested == codes
    surer, pairs = 0.5, agreed.sum() * (~agreed).sum()
    if pairs:  # area under the ROC curve
        surer = (rankdata(sure)[agreed].sum() - agreed.sum() * (agreed.sum() + 1) / 2) / pairs
    survival = (kept[given > 0] / given[given > 0]).mean()
    evidence = np.column_stack([odds, certain[suggested], certain[codes]])
    same = CONFIDENCE_CONSTANT + CONFIDENCE_WEIGHTS[3:] @ (surer, survival)
    return np.asarray(evidence @ CONFIDENCE_WEIGHTS[:3] + same)


def _say(sentence: str) -> None:
    print(f"labels: {sentence}", file=sys.stderr, flush=True)
