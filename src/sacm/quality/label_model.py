"""Which class each case belongs to, judged from labels of which some are wrong.

Three parts: a kernel of random-convolution features; ridge regression of the labels on it; and a
noise model, in which the true label is hidden and a transition matrix says how often it was given
as another. Ridge and noise model are fitted in turns (`self_train`). The cases are divided into
thirds at random, a few times; models of two thirds judge the other one, so that no label takes part
in the answer on itself.

Classes that overlap look like wrong labels: models and labels disagree. What tells them apart is
where: wrong labels are among sure and unsure cases alike, overlaps only among unsure ones
(`find_evidence`).

Shapes: codes of the given labels `[N]` in 0 … K-1; scores and probabilities `[N, K]`; transitions
`[K, K]`, `transition[true, given]`.
"""

from __future__ import annotations

import sys
from typing import NamedTuple

import numpy as np
import torch

KERNEL_WIDTH = 1.4  # of the Gaussian kernel, in median distances of two cases
PENALTIES = 10.0 ** np.arange(-3, 2.01, 0.5)  # of the ridge; leave-one-out squared error chooses
SHARPNESS = np.geomspace(1, 40, 5)  # candidates of the factor from scores to log-probabilities
# The same for held-out log-probabilities; below 1, uncertain answers would explain wrong labels.
TEMPERATURES = np.geomspace(1, 4, 8)
PARTS = 3  # into which cases are divided
ROUNDS = 6  # most rounds of self-training
SETTLED = 0.002  # self-training ends when posteriors change by less than this on average
BALANCE = 0.75  # how far predicted class shares are drawn to the expected ones, 0 to 1
FIRST_RATE = 0.2  # noise rate at which the estimation of transitions starts
NOISE_STEPS = 10  # of expectation-maximisation
PRIOR_CASES = 10.0  # weight of the prior on each row of the transitions, in cases
NOISE_CASES = 10_000  # the noise model is fitted to at most this many random cases
# Of the evidence, in its order, and a constant: logistic regression on development archives, see
# results/labels/README.md.
CONFIDENCE_WEIGHTS = np.array([0.05, 0.73, 0.43, -5.1, 3.2])
CONFIDENCE_CONSTANT = -2.23
MOST_CERTAIN = 0.98  # mean probabilities of a class beyond this count as this
MOST_ODDS = 8.0  # larger log-odds count as this
_LEAST_PROBABILITY = 1e-4  # of a held-out answer, so that no single one decides
_LEAST_SPREAD = 1e-6  # standard deviation below which a feature is dropped
_TINY = 1e-12
_CASES_AT_ONCE, _ROWS_AT_ONCE = 500, 10_000  # sizes of blocks, to bound the memory


class CaseKernel:
    """A Gaussian kernel of random-convolution features, as a basis with the same inner products.

    Two views: the series and its first differences. Channels are z-scored over all cases; missing
    values, such as those after the end of a shorter case, count as the mean.

    Args:
        X: Cases `[N, C, L]`.
        features: Random-convolution features of each view.
        landmarks: The kernel is approximated from so many random cases (Nystroem); None: exact.
        seed: Of features and landmarks.

    Attributes:
        own_basis: The basis `[m, m + 1]` of the landmarks, which are all cases by default.
    """

    def __init__(
        self, X: np.ndarray, *, features: int, landmarks: int | None = None, seed: int = 0
    ) -> None:
        from sacm.backbones.minirocket import MiniRocketConfig, Transform

        self.type = np.float64 if landmarks is None else np.float32
        sample = X[np.sort(np.random.default_rng(seed).permutation(len(X))[:landmarks])]
        observed = np.ma.masked_invalid(np.asarray(sample, np.float64))
        self.mean = observed.mean(axis=(0, 2)).filled(0)[:, None]
        std = observed.std(axis=(0, 2)).filled(0)[:, None]
        self.std = np.where(std > 0, std, 1)

        self.transforms = []
        for view, cases in enumerate(self._views(sample)):
            config, (_, steps, channels) = MiniRocketConfig(features=features), cases.shape
            transform = Transform(config, input_len=steps, channels=channels)
            transform.fit(cases, torch.Generator().manual_seed(seed + view))
            self.transforms.append(transform)

        raw = self._features(sample)
        self.center, spread = raw.mean(axis=0), raw.std(axis=0)
        self.scale = np.where(spread > _LEAST_SPREAD, 1 / np.maximum(spread, _LEAST_SPREAD), 0)
        self.points = self._scaled(raw)
        distances = _squared_distances(self.points, self.points)
        typical = np.median(distances[np.triu_indices(len(distances), 1)])
        self.width = 2 * KERNEL_WIDTH**2 * max(float(typical), _TINY)
        kernel = np.exp(-distances / self.width)  # [m, m]
        values, vectors = np.linalg.eigh(kernel)
        kept = values > 1e-10 * values[-1]
        self.whiten = vectors[:, kept] / np.sqrt(values[kept])
        self.own_basis = self._with_constant(kernel @ self.whiten)

    def basis(self, X: np.ndarray, *, progress: bool = False) -> np.ndarray:
        """Rows `[n, m + 1]` for cases `[n, C, L]`; the last column is a constant."""
        basis = np.empty((len(X), self.whiten.shape[1] + 1), self.type)
        for start in range(0, len(X), _CASES_AT_ONCE):
            rows = slice(start, start + _CASES_AT_ONCE)
            points = self._scaled(self._features(X[rows]))
            kernel = np.exp(-_squared_distances(points, self.points) / self.width)
            basis[rows] = self._with_constant(kernel.astype(self.type) @ self.whiten)
            if progress and start % (20 * _CASES_AT_ONCE) == 0:
                _say(f"features of case {start:,} of {len(X):,}")
        return basis

    def _with_constant(self, columns: np.ndarray) -> np.ndarray:
        return np.column_stack([columns, np.ones(len(columns))]).astype(self.type)

    def _views(self, cases: np.ndarray) -> list[torch.Tensor]:
        """Scaled series `[n, L, C]` and their differences, where there are any."""
        scaled = (np.asarray(cases, np.float64) - self.mean) / self.std
        scaled = np.nan_to_num(scaled, posinf=0, neginf=0).astype(np.float32)
        series = torch.from_numpy(scaled).transpose(1, 2).contiguous()
        return [series] if series.shape[1] < 2 else [series, series.diff(dim=1)]

    def _features(self, cases: np.ndarray) -> np.ndarray:
        columns = [
            torch.cat([transform(part) for part in transform.split(view)])
            for transform, view in zip(self.transforms, self._views(cases), strict=True)
        ]
        features: np.ndarray = torch.cat(columns, dim=1).numpy()
        return features

    def _scaled(self, features: np.ndarray) -> np.ndarray:
        return (features - self.center) * self.scale.astype(np.float32)


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
        if len(basis) < basis.shape[1]:
            values, left = np.linalg.eigh((basis @ basis.T).astype(np.float64))
            sizes = np.sqrt(np.maximum(values, _TINY))
            self.rotated, self.vectors = left * sizes, basis.T @ left / sizes
        else:
            values, self.vectors = np.linalg.eigh((basis.T @ basis).astype(np.float64))
            self.rotated = basis @ self.vectors.astype(basis.dtype)  # [n, min(n, m)]
        self.inverse = 1 / (np.maximum(values, 0)[:, None] + PENALTIES)
        blocks = range(0, len(basis), _ROWS_AT_ONCE)
        self.leverage = np.concatenate(
            [self.rotated[row : row + _ROWS_AT_ONCE] ** 2 @ self.inverse for row in blocks]
        )  # [n, penalties]

    def fit(self, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Answers `[n, K]` that leave out each case's own label, and weights `[m, K]`.

        The penalty is the one of least squared error against the labels as they are. Wrong labels
        raise that error for all penalties alike, so they do not mislead the choice.
        """
        moments = self.rotated.T @ labels.astype(self.rotated.dtype)
        best, chosen = np.inf, (labels, moments)
        for inverse, leverage in zip(self.inverse.T, self.leverage.T[:, :, None], strict=True):
            weights = inverse[:, None] * moments
            fitted = self.rotated @ weights.astype(self.rotated.dtype)
            answers = (fitted - leverage * labels) / np.maximum(1 - leverage, _TINY)
            error = float(((answers - labels) ** 2).mean())
            if error < best:
                best, chosen = error, (answers, weights)
        return chosen[0], self.vectors @ chosen[1]


def softmax(scores: np.ndarray) -> np.ndarray:
    """Row-wise probabilities."""
    return torch.from_numpy(scores).softmax(dim=1).numpy()


class Noise(NamedTuple):
    """A model of the noise: class log-probabilities are `factor * scores + bias`."""

    factor: float
    bias: np.ndarray
    transition: np.ndarray

    def probabilities(self, scores: np.ndarray) -> np.ndarray:
        """Class probabilities `[n, K]`, from scores alone."""
        return softmax(self.factor * scores + self.bias)


def true_label(probabilities: np.ndarray, transition: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Probabilities `[n, K]` of the true label, from those without the given label."""
    joint = probabilities * transition[:, codes].T
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
    """The noise model, among `factors`, under which the given labels are most likely.

    Scores `[n, K]` are of models that did not see the case's own label. Predicted class shares are
    drawn to `shares` `[K]`, if there are any; transitions are estimated, unless they are known.
    """
    if len(codes) > NOISE_CASES:
        chosen = np.random.default_rng(0).permutation(len(codes))[:NOISE_CASES]
        scores, codes = scores[chosen], codes[chosen]
    candidates = {}
    for factor in factors.tolist():
        bias = np.zeros(scores.shape[1]) if shares is None else _class_bias(factor * scores, shares)
        probabilities = softmax(factor * scores + bias)
        matrix = _estimate_transition(probabilities, codes) if transition is None else transition
        likelihood = (probabilities * matrix[:, codes].T).sum(axis=1)
        total = float(np.log(np.maximum(likelihood, _TINY**2)).sum())
        candidates[total] = Noise(factor, bias, matrix)
    return candidates[max(candidates)]


def _estimate_transition(probabilities: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Transitions `[K, K]` by expectation-maximisation, from class probabilities `[n, K]`.

    The prior of each row is noise that goes to the same classes from everywhere.
    """
    classes = probabilities.shape[1]
    eye = np.eye(classes)
    member = eye[codes]
    matrix = np.where(eye > 0, 1 - FIRST_RATE, FIRST_RATE / (classes - 1))
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


def self_train(
    basis: np.ndarray, codes: np.ndarray, classes: int, *, transition: np.ndarray | None = None
) -> tuple[np.ndarray, Noise, np.ndarray]:
    """Fit ridge and noise model in turns, the ridge to the posterior of the noise model.

    Expected class shares start as those of the given labels and follow the posterior, because
    one-sided noise changes them.

    Returns:
        Weights `[m, K]` of the ridge, the noise model, and the posterior `[n, K]`.
    """
    ridge = Ridge(basis)
    posterior = np.eye(classes)[codes]
    for turn in range(ROUNDS):
        scores, weights = ridge.fit(posterior)
        shares = (posterior.sum(axis=0) + 1) / (len(codes) + classes)
        noise = fit_noise(scores, codes, SHARPNESS, shares=shares, transition=transition)
        previous = posterior
        posterior = true_label(noise.probabilities(scores), noise.transition, codes)
        if turn and np.abs(posterior - previous).sum(axis=1).mean() / 2 < SETTLED:
            break
    return weights, noise, posterior


def divide(codes: np.ndarray, groups: np.ndarray | None, random: np.random.Generator) -> np.ndarray:
    """A number `[N]` of the third that each case is in.

    Groups are dealt in turn, the largest first; cases without groups are dealt class by class.
    """
    members = np.arange(len(codes)) if groups is None else np.unique(groups, return_inverse=True)[1]
    _, first, sizes = np.unique(members, return_index=True, return_counts=True)
    shuffled = random.permutation(len(sizes))
    order = shuffled[np.lexsort((codes[first[shuffled]], -sizes[shuffled]))]
    numbers = np.empty(len(sizes), dtype=np.int64)
    numbers[order] = np.arange(len(sizes)) % PARTS
    return numbers[members]


class Judgement(NamedTuple):
    """What the cases say about their labels."""

    suggested: np.ndarray  # [N]: codes of the most probable true labels
    confidence: np.ndarray  # [N]: probability that the suggestion is right
    transition: np.ndarray  # [K, K]
    doubt: float  # share of labels that models of other cases contradict


def judge_labels(
    basis: np.ndarray,
    codes: np.ndarray,
    groups: np.ndarray | None = None,
    *,
    divisions: int = 3,
    seed: int = 0,
    progress: bool = False,
) -> Judgement:
    """Judge each third by a model of the others, estimate transitions, then judge all cases."""
    classes = int(codes.max()) + 1
    random = np.random.default_rng(seed)
    held_out = np.zeros((len(codes), classes))
    for number in range(divisions):
        parts = divide(codes, groups, random)
        for part in np.unique(parts).tolist():
            if progress:
                _say(f"part {number * PARTS + part + 1} of {divisions * PARTS}")
            outside, inside = parts != part, parts == part
            weights, noise, _ = self_train(basis[outside], codes[outside], classes)
            held_out[inside] += noise.probabilities(basis[inside] @ weights) / divisions
    held_out = np.maximum(held_out, _LEAST_PROBABILITY)
    transition = fit_noise(np.log(held_out), codes, TEMPERATURES).transition
    _, _, posterior = self_train(basis, codes, classes, transition=transition)
    suggested = posterior.argmax(axis=1)
    log_odds = find_evidence(held_out, suggested, codes) @ CONFIDENCE_WEIGHTS + CONFIDENCE_CONSTANT
    confidence = np.where(suggested == codes, posterior.max(axis=1), 1 / (1 + np.exp(-log_odds)))
    doubt = float((held_out.argmax(axis=1) != codes).mean())
    return Judgement(suggested, confidence, transition, doubt)


def find_evidence(held_out: np.ndarray, suggested: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """What speaks for each suggestion `[N]` against the given label, from held-out probabilities.

    Returns:
        `[N, 5]`: log-odds of the suggestion against the given label; how certain held-out models
        are of cases of the suggested class, and of those of the given class (log-odds of the mean
        probability); how much surer they are of suggestions that agree with the given labels than
        of others (0.5 for wrong labels, 1 for overlaps); and how many cases classes keep on
        average. The last two are the same for all cases.
    """
    classes, cases = held_out.shape[1], np.arange(len(codes))
    given, kept = (np.bincount(each, minlength=classes) for each in (codes, suggested))
    of_suggested = held_out[cases, suggested]
    certain = np.bincount(suggested, of_suggested, minlength=classes) / np.maximum(kept, 1)
    certain = np.clip(certain, 1 - MOST_CERTAIN, MOST_CERTAIN)
    certain = np.log(certain / (1 - certain))
    odds = np.clip(np.log(of_suggested / held_out[cases, codes]), -MOST_ODDS, MOST_ODDS)
    surer = _share_above(of_suggested[suggested == codes], of_suggested[suggested != codes])
    survival = (kept[given > 0] / given[given > 0]).mean()
    whole = np.full((len(codes), 2), (surer, survival))
    return np.column_stack([odds, certain[suggested], certain[codes], whole])


def _share_above(first: np.ndarray, second: np.ndarray) -> float:
    """How often a value of the first is above one of the second (the area under the ROC curve)."""
    if not (len(first) and len(second)):
        return 0.5
    ordered = np.sort(second)
    places = [np.searchsorted(ordered, first, side=side) for side in ("left", "right")]
    return float(np.mean(places)) / len(second)


def _say(sentence: str) -> None:
    print(f"labels: {sentence}", file=sys.stderr, flush=True)
