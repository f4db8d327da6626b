"""What `attach` did to a model, found without looking at how it does it.

Forced rates of 0 for all windows but one must change the results of that window and of no other;
windows in another order must get their rates in that order; in evaluation the model must compute
what it computed before, bit by bit; what is still random must be named in the summary.
"""

from __future__ import annotations

import random
import warnings
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.utils._pytree import tree_flatten

import sacm
from benchmarks.third_party.case import BATCH, Case, Configuration
from benchmarks.third_party.sites import check_sites
from sacm.errors import SACMError

SEEDS = 3


@dataclass
class Verdict:
    """right, ordinary, refused, wrong, traceback, or unavailable; with a sentence."""

    library: str
    name: str
    coverage: str
    kind: str
    sentence: str = ""
    adaptive: int = 0
    sites: int = 0


def judge(configuration: Configuration) -> Verdict:
    """Attach to the model of a configuration, train one step, and check what every window gets."""
    counts = (0, 0)

    def verdict(kind: str, sentence: str = "") -> Verdict:
        fields = configuration.library, configuration.name, configuration.coverage
        return Verdict(*fields, kind, " ".join(sentence.split()), *counts)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            steady = _is_steady(_build(configuration))
            case = _build(configuration)
            before = _evaluate(case)
        except Exception as error:
            return verdict("unavailable", f"the model itself: {type(error).__name__}: {error}")
        try:
            modulator = sacm.attach(
                case.model,
                channels=case.channels,
                input_arg=case.input_arg,
                window_layout=case.window_layout,
                coverage=configuration.coverage,
            )
            problem = _find_problem(case, modulator, before, steady)
            sites, last = modulator.sites, str(modulator.summary()).splitlines()[-1]
            counts = sum(site.adaptive for site in sites), len(sites)
            live = any(site.adaptive and site.reached for site in sites)
            sacm.detach(case.model)
            if steady and not problem and not _equal(before, _evaluate(case)):
                problem = "evaluation differs after detach"
        except SACMError as error:
            return verdict("refused", str(error))
        except Exception as error:
            return verdict("traceback", f"{type(error).__name__}: {error}")
    if problem:
        return verdict("wrong", problem)
    return verdict("right") if live else verdict("ordinary", last)


def _seed(seed: int) -> None:
    """Seed torch and Python, whose numbers some models use to skip layers."""
    random.seed(seed)
    torch.manual_seed(seed)


def _build(configuration: Configuration) -> Case:
    """Make the model of a configuration, the same every time."""
    _seed(0)
    case = configuration.make()
    for module in case.model.modules():
        if isinstance(module, _BatchNorm):
            module.momentum = 0.0  # so that a training step does not move what evaluation uses
    return case


def _is_steady(case: Case) -> bool:
    """Whether the raw model's evaluation is not random, and a training step leaves it as it is."""
    before = _evaluate(case)
    _step(case)
    return _equal(before, _evaluate(case))


def _find_problem(case: Case, modulator: Any, before: list[Tensor], steady: bool) -> str:
    """Return what is wrong, or an empty text."""
    if steady and not _equal(before, _evaluate(case)):
        return "evaluation differs after attach"
    _step(case)
    if steady and not _equal(before, _evaluate(case)):
        return "evaluation differs after a training step with a learning rate of zero"
    if not any(site.adaptive and site.reached for site in modulator.sites):
        return ""
    case.model.train()
    case.run()
    if modulator.rates is None or modulator.rates.shape != (BATCH,):
        return "there is not one rate for each window"
    return _check_order(case, modulator) or _check_masks(case, modulator)


def _step(case: Case) -> None:
    """Run one training step whose learning rate is zero."""
    case.model.train()
    _seed(0)
    optimizer = torch.optim.SGD([p for p in case.model.parameters() if p.requires_grad], lr=0.0)
    loss = sum(each.float().square().mean() for each in _tensors(case.run()))
    if isinstance(loss, Tensor) and loss.requires_grad:
        loss.backward()
    optimizer.step()
    optimizer.zero_grad()


def _check_order(case: Case, modulator: Any) -> str:
    """Windows in another order must have their rates in that order."""
    rates = modulator.rates
    order = torch.tensor([3, 0, 4, 1, 2])
    case.run(order)
    if not torch.allclose(modulator.rates, rates[order], rtol=1e-4, atol=1e-6):
        return "rates do not follow their windows when the batch is reordered"
    case.run()
    return ""


def _check_masks(case: Case, modulator: Any) -> str:
    """A window alone with a rate must be the only one whose results change."""
    for module in case.model.modules():  # these mix windows in training, and so would any change
        if isinstance(module, _BatchNorm):
            module.eval()
    calm = _rows(case, modulator, torch.zeros(BATCH), seed=0)
    other = _rows(case, modulator, torch.zeros(BATCH), seed=1)
    if not calm:
        return ""
    if _distance(calm, other).max() > 1e-5 and not _names_randomness(modulator):
        return "something random is left that the summary does not name"
    if _mixes_windows(case, modulator, calm):
        return _check_mixing(case, modulator)
    effect = _changes(case, modulator, torch.full((BATCH,), 0.9))
    for window in range(BATCH):
        rates = torch.zeros(BATCH)
        rates[window] = 0.9
        changes = _changes(case, modulator, rates)
        own, rest = changes[window], torch.cat([changes[:window], changes[window + 1 :]])
        if own <= 1e-7 < effect[window]:
            return f"window {window} has a rate of 0.9 and its result does not change"
        if rest.max() > 1e-4 * max(1.0, float(own)):
            return f"the rate of window {window} changes the result of another"
    return ""


def _changes(case: Case, modulator: Any, rates: Tensor, *, typical: bool = False) -> Tensor:
    """Return how far these rates move the result of each window, over some seeds."""
    calm = torch.zeros(BATCH)
    found = [
        _distance(_rows(case, modulator, calm, seed), _rows(case, modulator, rates, seed))
        for seed in range(SEEDS)
    ]
    together = torch.stack(found)
    return together.median(dim=0).values if typical else together.amax(dim=0)


def _names_randomness(modulator: Any) -> bool:
    """Whether the summary tells of random operations that are not adaptive."""
    text = str(modulator.summary())
    ordinary = any(not site.adaptive for site in modulator.sites)
    return ordinary or "Also random" in text or "Evaluation is random" in text


def _mixes_windows(case: Case, modulator: Any, calm: list[Tensor]) -> bool:
    """Whether the raw model lets windows change each other's results (means over the batch)."""
    for window in range(BATCH):
        order = (torch.arange(BATCH) + 1) % BATCH  # all others are replaced
        order[window] = window
        _seed(0)
        with modulator.forced_rates(torch.zeros(BATCH)), torch.no_grad():
            changes = _distance(calm, _split(case.run(order)))
        if changes[window] > 1e-7:
            return True
    return False


def _check_mixing(case: Case, modulator: Any) -> str:
    """A window's rate must change its own result most; or else its own entries at all modules."""
    functional = any(":" in site.name for site in modulator.sites if site.adaptive)
    problem = check_sites(case, modulator)
    if problem or not functional:
        return problem
    for window in range(BATCH):
        rates = torch.zeros(BATCH)
        rates[window] = 0.9
        changes = _changes(case, modulator, rates, typical=True)
        if changes.argmax() != window:
            return f"the rate of window {window} changes the result of another more than its own"
    return ""


def _rows(case: Case, modulator: Any, rates: Tensor, seed: int) -> list[Tensor]:
    """Run a training forward at these rates; results `[B, …]` by window."""
    _seed(seed)
    with modulator.forced_rates(rates), torch.no_grad():
        return _split(case.run())


def _split(output: Any) -> list[Tensor]:
    """Return the tensors of an output that hold the windows in their first dimension, or folded."""
    return [
        each.float().reshape(BATCH, -1)
        for each in _tensors(output)
        if each.dim() and each.numel() and each.shape[0] % BATCH == 0
    ]


def _distance(first: list[Tensor], second: list[Tensor]) -> Tensor:
    """Return the largest difference of two results, by window."""
    pairs = [(a - b).nan_to_num(0.0).abs().amax(dim=1) for a, b in zip(first, second, strict=True)]
    return torch.stack(pairs).amax(dim=0)


def _evaluate(case: Case) -> list[Tensor]:
    """Return the results of the model in evaluation mode."""
    case.model.eval()
    _seed(7)
    with torch.no_grad():
        return _tensors(case.run())


def _equal(first: list[Tensor], second: list[Tensor]) -> bool:
    """Whether two results are the same bit by bit; NaN equals NaN."""
    return len(first) == len(second) and all(
        torch.equal(a.nan_to_num(), b.nan_to_num()) for a, b in zip(first, second, strict=True)
    )


def _tensors(output: Any) -> list[Tensor]:
    """Return all floating-point tensors of an output."""
    leaves = [output] if isinstance(output, Tensor) else _leaves(output)
    return [leaf for leaf in leaves if isinstance(leaf, Tensor) and leaf.is_floating_point()]


def _leaves(output: Any) -> list[Any]:
    """Return the leaves of an output, dataclasses and named results included."""
    if hasattr(output, "to_tuple"):
        return tree_flatten(output.to_tuple())[0]
    if hasattr(output, "__dict__") and not isinstance(output, dict | tuple | list | nn.Module):
        return tree_flatten(list(vars(output).values()))[0]
    return tree_flatten(output)[0]
