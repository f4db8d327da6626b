"""`check_scorer`: what a scorer must hold to be attached."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn

from sacm.core.config import SACMConfig
from sacm.inject.attach import attach
from sacm.strategies.sacm import ScorerFactory, scorers
from sacm.testing.backbones import windows


def check_scorer(scorer: str | ScorerFactory) -> None:
    """Check that a scorer gives one finite, repeatable score a window and can be trained with.

    Args:
        scorer: A registered name, or a factory `(channels, config) -> module` from windows
            `[B, L, C]` to scores `[B]`.

    Raises:
        AssertionError: If something does not hold; one sentence that says what.
        ArgumentError: If no scorer of that name is registered.

    Example:
        >>> from sacm.testing import check_scorer
        >>> check_scorer("spectral")
    """
    factory = scorers.get(scorer) if isinstance(scorer, str) else scorer
    name = scorer if isinstance(scorer, str) else getattr(scorer, "__name__", "scorer")
    with torch.random.fork_rng(devices=[]):
        for channels, length in ((3, 96), (1, 24), (7, 25)):
            module = factory(channels, SACMConfig())
            _require(isinstance(module, nn.Module), name, "the factory must give an nn.Module")
            _check_scores(module, windows(6, length=length, channels=channels), name)
        _check_training(factory, name)


def _check_scores(module: nn.Module, x: Tensor, name: str) -> None:
    """One score a window, the same each time, whatever else is in the batch."""
    before = x.clone()
    scores = _scores(module, x)
    what = f"for windows {list(x.shape)}"
    _require(scores.shape == x.shape[:1], name, f"scores must be [{len(x)}] {what}")
    _require(scores.is_floating_point(), name, f"scores must be floats, not {scores.dtype}")
    _require(bool(scores.isfinite().all()), name, f"scores must be finite {what}")
    _require(torch.equal(x, before), name, "the windows must be left alone")
    _require(torch.equal(_scores(module, x), scores), name, "two calls give different scores")
    alone = torch.cat([_scores(module, x[i : i + 1]) for i in range(len(x))])
    close = torch.allclose(alone, scores, atol=1e-5, rtol=1e-5)
    _require(close, name, "the score of a window must not depend on the others of its batch")
    twin = _scores(copy.deepcopy(module), x)
    _require(torch.equal(twin, scores), name, "a deep copy gives other scores")
    constant = _scores(module, torch.zeros_like(x))
    _require(bool(constant.isfinite().all()), name, "scores of constant windows must be finite")


def _check_training(factory: ScorerFactory, name: str) -> None:
    """Attached, it gives rates in bounds and finite gradients, under autocast too."""
    torch.manual_seed(0)
    model, x = nn.Sequential(nn.Dropout(0.1), nn.Linear(3, 1)), windows(8)
    modulator = attach(model, channels=3, scorer=factory(3, SACMConfig()), example_inputs=x)
    for enabled in (False, True):
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=enabled):
            loss = model(x).square().mean()
        loss.backward()
        assert modulator.rates is not None
        low, high = SACMConfig.p_min, SACMConfig.p_max
        within = bool(((modulator.rates >= low) & (modulator.rates <= high)).all())
        _require(within, name, f"rates leave the bounds {low} … {high}")
    gradients = [p.grad for p in modulator.parameters() if p.grad is not None]
    finite = all(bool(each.isfinite().all()) for each in gradients)
    _require(finite, name, "a gradient of the modulator is not finite")


def _scores(module: nn.Module, x: Tensor) -> Tensor:
    with torch.no_grad():
        result = module(x)
    scores = getattr(result, "scores", result)
    kind = type(scores).__name__
    assert isinstance(scores, Tensor), f"the scorer must give a tensor, not {kind}."
    return scores


def _require(condition: bool, name: str, sentence: str) -> None:
    if not condition:
        raise AssertionError(f"scorer {name}: {sentence}.")
