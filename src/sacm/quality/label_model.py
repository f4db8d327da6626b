"""Which class each case belongs to, judged from labels of which some are wrong.

Three parts: a kernel of random-convolution features; ridge regression of the labels on it; and a
noise model, in which the true label is hidden and a transition matrix says how often it was given
as another. Ridge and noise model are fitted in turns (`self_train`). The cases are divided into
thirds at random, a few times; models of two thirds judge the other one, so that no label takes part
in the answer on itself.

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
TEMPERATURES = np.geomspace(1, 4, 8)  # the same for held-out log-probabilities; below 1, uncertain
# answers would explain wrong labels
PARTS = 3  # into which cases are divided
SAMPLE_CASES = 500  # consistency and anchor rate are those of at most so many random cases
PART_ROUNDS, ROUNDS = 4, 8  # most rounds of self-training, without a part and in the final fit
SETTLED = 0.002  # self-training ends when posteriors change by less than this on average
BALANCE = 0.75  # how far predicted class shares are drawn to the expected ones, 0 to 1
FIRST_RATE = 0.2  # noise rate at which the estimation of transitions starts
NOISE_STEPS = 10  # of expectation-maximisation
PRIOR_CASES = 10.0  # weight of the prior on each row of the transitions, in cases
NOISE_CASES = 10_000  # the noise model is fitted to at most this many random cases
ANCHORS = 0.25  # share of the cases, those with the surest held-out answers, that bound the noise
MOST_DRIFT = 0.01  # by which self-training may predict held-out labels worse than plain ridges
MOST_ODDS = 8.0  # larger log-odds count as this
_LEAST_PROBABILITY = 1e-4  # of a held-out answer, so that no single one decides
_LEAST_SPREAD = 1e-6  # standard deviation below which a feature is dropped
_TINY = 1e-12
# Sizes of blocks that bound the memory.
_CASES_AT_ONCE, _ROWS_AT_ONCE = 500, 10_000


class CaseKernel:
    """A Gaussian kernel of random-convolution features, as a basis with the same inner products.

    Two views: the series and its first differences. Channels are z-scored over all cases; missing
    values, such as those after the end of a shorter case, count as the mean.

    Attributes:
        own_basis: The basis `[m, m + 1]` of the landmarks, which are all cases unless fewer are
            asked for.
    """

    def __init__(
        self, X: np.ndarray, *, features: int, landmarks: int | None = None, seed: int = 0
    ) -> None:
        """Fit to cases `[N, C, L]`; labels play no part.

        Args:
            X: Cases.
            features: Random-convolution features of each view.
            landmarks: The kernel is approximated from so many random cases (Nystroem); None: exact.
            seed: Of features and landmarks.
        """
        from sacm.backbones.minirocket import MiniRocketConfig, Transform

        self.type = np.float64 if landmarks is None else np.float32
        chosen = np.sort(np.random.default_rng(seed).permutation(len(X))[:landmarks])
        sample = np.asarray(X[chosen], np.float64)
        observed = np.isfinite(sample)
        count = np.maximum(observed.sum(axis=(0, 2)), 1)
        values = np.where(observed, sample, 0)
        self.mean = values.sum(axis=(0, 2)) / count
        deviations = (values - self.mean[:, None]) * observed
        std = np.sqrt((deviations**2).sum(axis=(0, 2)) / count)
        self.std = np.where(std > 0, std, 1)

        self.transforms = []
        for view, cases in enumerate(self._views(sample)):
            config, (_, steps, channels) = MiniRocketConfig(features=features), cases.shape
            transform = Transform(config, input_len=steps, channels=channels)
            transform.fit(cases, torch.Generator().manual_seed(seed + view))
            self.transforms.append(transform)

        raw = self._features(sample)
        self.center, spread = raw.mean(axis=0), raw.std(axis=0)
        used = spread > _LEAST_SPREAD
        self.scale = np.where(used, 1 / np.where(used, spread, 1), 0).astype(np.float32)
        self.points = (raw - self.center) * self.scale
        distances = _squared_distances(self.points, self.points)
        upper = distances[np.triu_indices(len(chosen), 1)]
        typical = float(np.median(upper)) if len(upper) else 0.0
        self.width = 2 * KERNEL_WIDTH**2 * max(typical, _TINY)
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
            points = (self._features(np.asarray(X[rows])) - self.center) * self.scale
            kernel = np.exp(-_squared_distances(points, self.points) / self.width)
            basis[rows] = self._with_constant(kernel.astype(self.type) @ self.whiten)
            if progress and start % (20 * _CASES_AT_ONCE) == 0:
                _say(f"features of case {start:,} of {len(X):,}")
        return basis

    def _with_constant(self, columns: np.ndarray) -> np.ndarray:
        return np.column_stack([columns, np.ones(len(columns))]).astype(self.type)

    def _views(self, cases: np.ndarray) -> list[torch.Tensor]:
        """Scaled series `[n, L, C]` and their differences, where there are any."""
        scaled = (cases - self.mean[:, None]) / self.std[:, None]
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
        self.leverage = np.empty((len(basis), len(PENALTIES)))
        for start in range(0, len(basis), _ROWS_AT_ONCE):
            rows = slice(start, start + _ROWS_AT_ONCE)
            self.leverage[rows] = self.rotated[rows] ** 2 @ self.inverse

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
    candidates = []
    for factor in factors.tolist():
        bias = np.zeros(scores.shape[1])
        if shares is not None:
            bias = _class_bias(factor * scores, shares)
        probabilities = softmax(factor * scores + bias)
        matrix = _estimate_transition(probabilities, codes) if transition is None else transition
        likelihood = (probabilities * matrix[:, codes].T).sum(axis=1)
        total = float(np.log(np.maximum(likelihood, _TINY**2)).sum())
        candidates.append((total, Noise(factor, bias, matrix)))
    return max(candidates, key=lambda candidate: candidate[0])[1]


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


class SelfTrained(NamedTuple):
    """Ridge regression on labels that it has itself corrected."""

    weights: np.ndarray  # [m, K]
    plain_weights: np.ndarray  # [m, K], of the ridge on the labels as given
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
    weights: list[np.ndarray] = []
    for turn in range(PART_ROUNDS if transition is None else ROUNDS):
        scores, fitted = ridge.fit(posterior)
        weights.append(fitted)
        shares = (posterior.sum(axis=0) + 1) / (len(codes) + classes)
        noise = fit_noise(scores, codes, SHARPNESS, shares=shares, transition=transition)
        previous = posterior
        posterior = true_label(noise.probabilities(scores), noise.transition, codes)
        if turn and np.abs(posterior - previous).sum(axis=1).mean() / 2 < SETTLED:
            break
    return SelfTrained(weights[-1], weights[0], noise, posterior)


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


def kappa(first: np.ndarray, second: np.ndarray, classes: int) -> float:
    """Agreement of two sets of codes `[N]` beyond chance (Cohen's kappa): 1 is full agreement."""
    shares = [np.bincount(codes, minlength=classes) / len(codes) for codes in (first, second)]
    chance = float(shares[0] @ shares[1])
    return float(((first == second).mean() - chance) / max(1 - chance, _TINY))


class Judgement(NamedTuple):
    """What the cases say about their labels."""

    suggested: np.ndarray  # [N]: codes of the most probable true labels
    posterior: np.ndarray  # [N]: their probability by the noise model
    odds: np.ndarray  # [N]: log-odds of the suggestion against the given label, by held-out models
    transition: np.ndarray  # [K, K]
    consistency: float  # agreement of held-out models with the suggestions, beyond chance
    anchor_rate: float  # how often the surest held-out answers differ from the given labels


def judge_labels(
    basis: np.ndarray,
    codes: np.ndarray,
    classes: int,
    *,
    divisions: int = 3,
    groups: np.ndarray | None = None,
    seed: int = 0,
    progress: bool = False,
) -> Judgement:
    """Judge each third by a model of the others, estimate transitions, then judge all cases.

    Where classes overlap, self-training may merge them: it then predicts held-out labels worse than
    plain ridges. In overlaps uncertain cases look like wrong labels and sure ones do not, while
    wrong labels are among both; so the noise is then no more than that of the surest cases.
    """
    random = np.random.default_rng(seed)
    held_out = np.zeros((divisions, len(codes), classes))
    plain_answers = np.zeros((divisions, len(codes)), dtype=np.int64)
    for number in range(divisions):
        parts = divide(codes, groups, random)
        for part in np.unique(parts).tolist():
            if progress:
                _say(f"part {number * PARTS + part + 1} of {divisions * PARTS}")
            outside, inside = parts != part, parts == part
            model = self_train(basis[outside], codes[outside], classes)
            held_out[number, inside] = model.noise.probabilities(basis[inside] @ model.weights)
            plain_answers[number, inside] = (basis[inside] @ model.plain_weights).argmax(axis=1)
    probabilities = held_out.mean(axis=0)
    answers = held_out.argmax(axis=2)
    anchor_rate = _anchor_rate(probabilities, codes)
    scores = np.log(np.maximum(probabilities, _LEAST_PROBABILITY))
    noise = fit_noise(scores, codes, TEMPERATURES)
    transition = noise.transition
    if (plain_answers == codes).mean() - (answers == codes).mean() > MOST_DRIFT:
        shares = true_label(noise.probabilities(scores), transition, codes).mean(axis=0)
        strength = min(1.0, anchor_rate / max(1 - shares @ np.diag(transition), _TINY))
        transition = np.eye(classes) + strength * (transition - np.eye(classes))
    final = self_train(basis, codes, classes, transition=transition).posterior

    cases = np.arange(len(codes))
    suggested = final.argmax(axis=1)
    by_others = np.maximum(true_label(probabilities, transition, codes), _TINY)
    odds = np.log(by_others[cases, suggested] / by_others[cases, codes])
    judged = Judgement(
        suggested=suggested,
        posterior=final[cases, suggested],
        odds=np.clip(odds, -MOST_ODDS, MOST_ODDS),
        transition=transition,
        consistency=float(np.mean([kappa(each, suggested, classes) for each in answers])),
        anchor_rate=anchor_rate,
    )
    if len(codes) <= SAMPLE_CASES:
        return judged
    # Models of many cases agree even where classes overlap; the limit was set on few cases.
    rows = random.permutation(len(codes))[:SAMPLE_CASES]
    few = judge_labels(
        basis[rows],
        codes[rows],
        classes,
        divisions=divisions,
        groups=None if groups is None else groups[rows],
        seed=seed,
    )
    return judged._replace(consistency=few.consistency, anchor_rate=few.anchor_rate)


def _say(sentence: str) -> None:
    print(f"labels: {sentence}", file=sys.stderr, flush=True)


def _anchor_rate(probabilities: np.ndarray, codes: np.ndarray) -> float:
    """How often the surest answers differ from the given labels."""
    sure = probabilities.max(axis=1)
    anchors = np.argsort(-sure, kind="stable")[: int(np.ceil(ANCHORS * len(codes)))]
    wrong = (probabilities.argmax(axis=1) != codes)[anchors].sum()
    return float((wrong + 0.5) / (len(anchors) + 1))
