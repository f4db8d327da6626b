"""`check_scorer`: what a scorer must hold to be attached."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn

from sacm.core.config import SACMConfig
from sacm.inject.attach import attach
from sacm.strategies.sacm import ScorerFactory, scorers
from sacm.testing.shared import are_finite, require, run_checks, windows


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
    run_checks(f"scorer {name}", (windows_are_scored_alone, attached_training_works), factory)


def windows_are_scored_alone(factory: ScorerFactory) -> None:
    """One score a window, the same each time, whatever else is in the batch."""
    for channels, length in ((3, 96), (1, 24), (7, 25)):
        module = factory(channels, SACMConfig())
        require(isinstance(module, nn.Module), "the factory must give an nn.Module")
        x = windows(6, length=length, channels=channels)
        before, scores, what = x.clone(), _scores(module, x), f"for windows {list(x.shape)}"
        require(scores.shape == x.shape[:1], f"scores must be [{len(x)}] {what}")
        require(scores.is_floating_point(), f"scores must be floats, not {scores.dtype}")
        require(are_finite([scores]), f"scores must be finite {what}")
        require(torch.equal(x, before), "the windows must be left alone")
        require(torch.equal(_scores(module, x), scores), "two calls give different scores")
        alone = torch.cat([_scores(module, x[i : i + 1]) for i in range(len(x))])
        close = torch.allclose(alone, scores, atol=1e-5, rtol=1e-5)
        require(close, "the score of a window must not depend on the others of its batch")
        twin = _scores(copy.deepcopy(module), x)
        require(torch.equal(twin, scores), "a deep copy gives other scores")
        constant = _scores(module, torch.zeros_like(x))
        require(are_finite([constant]), "scores of constant windows must be finite")


def attached_training_works(factory: ScorerFactory) -> None:
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
        within = ((modulator.rates >= low) & (modulator.rates <= high)).all()
        require(within, f"rates leave the bounds {low} … {high}")
    gradients = [p.grad for p in modulator.parameters()]
    require(are_finite(gradients), "a gradient of the modulator is not finite")


def _scores(module: nn.Module, x: Tensor) -> Tensor:
    with torch.no_grad():
        result = module(x)
    scores = getattr(result, "scores", result)
    require(isinstance(scores, Tensor), f"scores must be a tensor, not {type(scores).__name__}")
    assert isinstance(scores, Tensor)
    return scores
